"""What becomes of campaigns: who receives, opens, clicks, leaves; the totals of it.

Within a slot of the register the recipients of a campaign are a contiguous range of blocks, its openers a
shuffled prefix of that range in the order of opening, and its clickers an even share of the openers. So a
contact's outcome and a campaign's totals are read off the same formulas: they agree for every size of account
and at every moment, and nobody is counted one by one. Not here: the seeded calendar (`seeded_account`), what
contacts written through the interface receive (`subscribers`)."""

import bisect
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from marketing_api.sandbox.seed import DAY, Share, Shuffle, Thing, salt, spread
from marketing_api.sandbox.seeded_contacts import CHARACTERS, SLOTS, Roll

#: (address, text) each.
Links = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Campaign:
    """One mailing. `lists` are list ids; `sent_at` is 0 for a draft; times are unix seconds."""

    campaign_id: int
    name: str
    subject: str
    body: str
    lists: tuple[int, ...]
    created_at: int
    scheduled_at: int = 0
    sent_at: int = 0
    links: Links = ()
    appeal: int = 1024  # of 1024: how much better or worse than usual it is opened
    has_coupon: bool = False
    trigger: Thing = field(default_factory=dict)  # of a seeded automation, as in `words.toml`
    reply_to: str = "hello@example.com"
    from_email: str = "news@example.com"
    from_name: str = ""
    is_automated: bool = False
    ended_at: int = 1 << 40  # when an automation was deleted

    @property
    def slug(self) -> str:
        words = "-".join(word for word in self.subject.lower().split() if word.isalpha())
        return f"c{self.campaign_id}-{words[:24].rstrip('-')}"

    def group(self, moment: int) -> str:
        if self.is_automated:
            return "Automation"
        if not self.sent_at or moment < self.scheduled_at:
            return "Draft"
        return "Sent" if self.sent_at <= moment else "Scheduled"


#: Nobody opens a campaign later than this, nor the mail of an automation.
LONGEST = 14 * DAY
_LONGEST = 2 * DAY
_BOUNCES_AFTER = 45  # seconds
_LEAVES_WITHIN = 120  # seconds from opening to the click on "unsubscribe"
#: Primes above any length of a shuffle.
_STRIDES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)

#: (link position, times) of one contact.
Clicks = tuple[tuple[int, int], ...]


class Outcome(NamedTuple):
    """What one contact did with one mail, whether or not it has happened yet (0: never)."""

    sent_at: int
    opened_at: int = 0
    clicked_at: int = 0
    clicks: Clicks = ()
    left_at: int = 0
    bounced_at: int = 0


class Totals(NamedTuple):
    sent: int = 0
    bounced: int = 0
    opened: int = 0
    unsubscribed: int = 0


def delay(place: int, of: int, draw: float) -> int:
    """Seconds from sending to the `place`-th opening of `of`: half of them within an hour and a half, with a
    long tail."""
    part = (place + draw) / of
    return min(60 + int(5400 * (part / (1 - part)) ** 1.1), LONGEST)


def _opened_within(passed: int, openers: int, draw: float) -> int:
    if passed >= LONGEST:
        return openers
    return bisect.bisect_right(range(openers), passed, key=lambda place: delay(place, openers, draw))


def clicks(draw: int, links: int) -> Clicks:
    """Which of the links are clicked, and how often."""
    first = (0 if draw % 100 < 62 else 1 if draw % 100 < 88 else 2) % links
    times = 1 + (not draw >> 12 & 7) + 2 * (not draw >> 16 & 31)
    if draw >> 8 & 3 or links == 1:
        return ((first, times),)
    return (first, times), ((first + 1) % links, 1)


def _clicked(draw: int, sent: int, opened: int, links: Links) -> Outcome:
    return Outcome(sent, opened, opened + 30 + draw % 1200, clicks(draw, len(links)))


class Reach(NamedTuple):
    """A slot's recipients of one campaign, as blocks: the leaving are first … stay-1, the others stay …
    end-1."""

    first: int
    stay: int
    end: int
    openers: int  # of the others: those at places 0 … openers-1 of the shuffle, in the order of opening
    order: Shuffle
    draw: float
    clickers: Share


class Mailing:
    """A campaign on one list: the `place`-th of those sent to it at `times`, which may lie in the future."""

    def __init__(self, roll: Roll, seed: int, campaign: Campaign, place: int, times: list[int]) -> None:
        self.roll, self.campaign = roll, campaign
        self._salt = salt(seed, "mailing", roll.number, campaign.campaign_id)
        self._place, self._times = place, times
        self._reach = functools.cache(self._reached)

    def _reached(self, slot: int) -> Reach:
        character, place, sent = CHARACTERS[slot], self._place, self.campaign.sent_at
        draw = spread(self._salt, slot)
        end = self.roll.blocks(slot, sent)
        first = stay = 0
        if character.fate == "unconfirmed":
            first = stay = end
        elif character.deleted_after:
            first = stay = self.roll.blocks(slot, sent - character.deleted_after)
        elif (after := character.leaves_after) and place + 1 >= after:
            first = self.roll.blocks(slot, self._times[place - after]) if place >= after else 0
            stay = self.roll.blocks(slot, self._times[place - after + 1])
        appeal = min(1000, character.opens * self.campaign.appeal // 1024)
        openers = Share(appeal, draw & 1023).count(end - stay)
        order = Shuffle(max(1, end - stay), _STRIDES[(draw >> 3) % 5], draw >> 3)
        clickers = Share(character.clicks if self.campaign.links else 0, draw >> 20 & 1023)
        return Reach(first, stay, end, openers, order, (draw >> 8 & 255) / 256, clickers)

    def outcome(self, index: int, slot: int) -> Outcome | None:
        """What the contact at `index` does with it; None when it is not sent to it."""
        reach, sent = self._reach(slot), self.campaign.sent_at
        block = index // SLOTS
        if not reach.first <= block < reach.end:
            return None
        if block < reach.stay:
            if CHARACTERS[slot].fate == "bounces":
                return Outcome(sent, bounced_at=sent + _BOUNCES_AFTER)
            opened = sent + delay(block - reach.first, reach.stay - reach.first, reach.draw)
            return Outcome(sent, opened, left_at=opened + _LEAVES_WITHIN)
        if (standing := reach.order.place(block - reach.stay)) >= reach.openers:
            return Outcome(sent)
        opened = sent + delay(standing, reach.openers, reach.draw)
        if not reach.clickers.has(standing):
            return Outcome(sent, opened)
        return _clicked(spread(self._salt, index), sent, opened, self.campaign.links)

    def totals(self, moment: int) -> Totals:
        passed = moment - self.campaign.sent_at
        sent = bounced = opened = unsubscribed = 0
        for slot, character in enumerate(CHARACTERS) if passed >= 0 else ():
            reach = self._reach(slot)
            leaving = reach.stay - reach.first
            if character.fate == "bounces":
                bounced += leaving if passed >= _BOUNCES_AFTER else 0
            elif leaving:
                opened += _opened_within(passed, leaving, reach.draw)
                unsubscribed += _opened_within(passed - _LEAVES_WITHIN, leaving, reach.draw)
            opened += _opened_within(passed, reach.openers, reach.draw)
            sent += reach.end - reach.first
        return Totals(sent, bounced, opened, unsubscribed)

    def clicking(self, slot: int, _: int) -> Iterator[int]:
        """The blocks of a slot's contacts who click it sooner or later."""
        reach = self._reach(slot)
        for ordinal in range(reach.clickers.count(reach.openers)):
            yield reach.stay + reach.order.at(reach.clickers.nth(ordinal))


def left(mailings: Sequence[Mailing], roll: Roll, index: int, slot: int) -> int:
    """When the contact unsubscribes or bounces; 0 when it does not (as far as the mailings of its list are
    known)."""
    after = CHARACTERS[slot].leaves_after
    if not after:
        return 0
    registered = roll.registered_at(index)
    first = bisect.bisect_left(mailings, registered, key=lambda one: one.campaign.sent_at)
    place = first + after - 1
    outcome = mailings[place].outcome(index, slot) if place < len(mailings) else None
    return (outcome.left_at or outcome.bounced_at) if outcome else 0


class Automation:
    """What goes to each contact of certain characters so long after it registered."""

    def __init__(self, roll: Roll, seed: int, campaign: Campaign) -> None:
        self.roll, self.campaign = roll, campaign
        self._salt = salt(seed, "automation", roll.number, campaign.campaign_id)
        self.after: int = campaign.trigger["after"]  # seconds from the registration
        #: Below this index a contact was there before the automation, or was uploaded.
        self._from = max(roll.imported, roll.registered(campaign.created_at - self.after))

    def outcome(self, index: int, slot: int) -> Outcome | None:
        sent = self.roll.registered_at(index) + self.after
        is_meant = CHARACTERS[slot].name in self.campaign.trigger["characters"] and index >= self._from
        if not is_meant or self.roll.is_deleted(index, sent) or sent > self.campaign.ended_at:
            return None
        opens, clickers = self._shares(slot)
        block = index // SLOTS
        if not opens.has(block):
            return Outcome(sent)
        draw = spread(self._salt, index)
        opened = sent + 60 + draw % _LONGEST
        if not clickers.has(opens.count(block)):
            return Outcome(sent, opened)
        return _clicked(draw, sent, opened, self.campaign.links)

    def _shares(self, slot: int) -> tuple[Share, Share]:
        """Who opens, and who of these clicks; a text message cannot be seen to be opened."""
        draw, character = spread(self._salt, slot), CHARACTERS[slot]
        opens = 0 if self.campaign.trigger["kind"] == "sms" else min(1000, character.opens * 5 // 4)
        return Share(opens, draw & 1023), Share(character.clicks, draw >> 10 & 1023)

    def _range(self, slot: int, moment: int) -> range:
        """The blocks of a slot to which it was sent by `moment`."""
        character = CHARACTERS[slot]
        is_gone = 0 < character.deleted_after <= self.after
        if is_gone or character.name not in self.campaign.trigger["characters"]:
            return range(0)
        last = min(moment, self.campaign.ended_at) - self.after
        return range(self.roll.blocks_of_first(slot, self._from), self.roll.blocks(slot, last))

    def totals(self, moment: int) -> Totals:
        ranges = [(slot, self._range(slot, moment)) for slot in range(SLOTS)]
        return Totals(
            sum(len(blocks) for _, blocks in ranges), opened=sum(self._opened(*one, moment) for one in ranges)
        )

    def _opened(self, slot: int, blocks: range, moment: int) -> int:
        """The old ones by formula, those within the longest delay one by one."""
        opens, _ = self._shares(slot)
        recent = self.roll.blocks(slot, moment - self.after - 60 - _LONGEST)
        settled = min(max(blocks.start, recent), blocks.stop)
        total = opens.count(settled) - opens.count(blocks.start)
        for block in range(settled, blocks.stop):
            outcome = self.outcome(self.roll.index(slot, block), slot)
            total += outcome is not None and 0 < outcome.opened_at <= moment
        return total

    def clicking(self, slot: int, moment: int) -> Iterator[int]:
        """The blocks of a slot's contacts to whom it was sent by `moment` and who click sooner or later."""
        blocks = self._range(slot, moment)
        opens, clickers = self._shares(slot)
        first, last = clickers.count(opens.count(blocks.start)), clickers.count(opens.count(blocks.stop))
        return (opens.nth(clickers.nth(ordinal)) for ordinal in range(first, last))


#: A campaign on one list.
Source = Mailing | Automation


def clickers(source: Source, moment: int) -> Iterator[tuple[int, Clicks]]:
    """(index, clicks) of every contact of the list that clicked by `moment`."""
    for slot in range(SLOTS):
        for block in source.clicking(slot, moment):
            index = source.roll.index(slot, block)
            outcome = source.outcome(index, slot)
            if outcome is not None and 0 < outcome.clicked_at <= moment:
                yield index, outcome.clicks
