"""An account of any size by formulas: nothing is stored, so that a million contacts take no memory. The sandbox's
own is made at its start and holds at most some ten thousand; its characters, words and calendar are the same."""

from __future__ import annotations

import bisect
import datetime as dt
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

from marketing_api.sandbox.seed import DAY, WORDS, Moments, Thing, pick, salt
from marketing_api.sandbox.seeded_account import Origin

#: Shares and probabilities are whole parts of this, so that counting and picking can never disagree by a
#: rounding error.
WHOLE = 1024


def spread(salt: int, index: int) -> int:
    """32 well-mixed bits for the `index`-th draw of a series."""
    mixed = (index + salt) * 0x9E3779B1 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return mixed ^ mixed >> 16


@dataclass(frozen=True, slots=True)
class Share:
    """Picks `parts`/1024 of a sequence, evenly spread; `offset` (0 … 1023) shifts which ones.

    How many of the first n are picked is a formula, and so is the t-th pick: a million need not be looked at.
    """

    parts: int
    offset: int

    def count(self, first: int) -> int:
        return (first * self.parts + self.offset) // WHOLE

    def has(self, index: int) -> bool:
        return self.count(index + 1) > self.count(index)

    def nth(self, ordinal: int) -> int:
        """The position of the `ordinal`-th pick, from 0."""
        return -((self.offset - (ordinal + 1) * WHOLE) // self.parts) - 1


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A one-to-one map of 0 … length-1 onto itself, in both directions; `stride` has no divisor in common
    with the length."""

    length: int
    stride: int
    shift: int

    def place(self, index: int) -> int:
        return (index * self.stride + self.shift) % self.length

    def at(self, place: int) -> int:
        """The index that stands at `place`."""
        return (place - self.shift) * pow(self.stride, -1, self.length) % self.length


SLOTS = 50
HISTORY_DAYS = 730
#: The part of a list that was uploaded on its first day; these contacts saw no sign-up form.
IMPORTED = 0.3
#: Registrations gather pace: by the fraction f of the history, f ** GROWTH of the later sign-ups are in.
GROWTH = 1.3


@dataclass(frozen=True, slots=True)
class Character:
    """What a slot's contacts do. Parts are of 1024; `leaves_after` counts received campaigns (0: stays)."""

    name: str
    opens: int
    clicks: int  # of the opened
    fate: str = "stays"  # or unsubscribes, bounces, unconfirmed
    leaves_after: int = 0
    deleted_after: int = 0  # seconds after registration; 0: never
    domains: str = "common"  # kind of domains in `words.toml`


#: One block of fifty, by slot.
CHARACTERS = tuple(
    character for slots, one in WORDS["characters"] for character in [Character(**one)] * slots
)

#: All the ways in which a block deals its slots: index within the block → slot.
DEALS = [
    Shuffle(SLOTS, step, shift) for step in range(SLOTS) if step % 2 and step % 5 for shift in range(SLOTS)
]


class Roll:
    """The register of list number `number`, which holds `size` seeded entries two years after `start` (unix
    seconds)."""

    def __init__(self, seed: int, number: int, size: int, start: int) -> None:
        self.number = number
        self.size = size
        self.imported = int(size * IMPORTED)
        self.salt = salt(seed, "roll", number)
        self._start, self._import_at = start, start + 9 * 3600 + number * 1800
        self.registered = functools.lru_cache(maxsize=4096)(self._registered)
        self._deal = functools.lru_cache(maxsize=4096)(
            lambda block: DEALS[spread(self.salt, block) % len(DEALS)]
        )

    def registered_at(self, index: int) -> int:
        """Unix seconds; never decreasing with the index."""
        if index < self.imported:
            return self._import_at + index * 1500 // self.imported
        jitter = spread(self.salt, index) / 0x100000000
        grown = (index - self.imported + jitter) / max(1, self.size - self.imported)
        past = grown ** (1 / GROWTH) if grown < 1 else 1 + (grown - 1) / GROWTH
        return self._start + DAY + _waking(past * (HISTORY_DAYS - 1))

    def _registered(self, moment: int) -> int:
        top = max(64, self.size * 2)
        while self.registered_at(top) <= moment:
            top *= 2
        return bisect.bisect_right(range(top), moment, key=self.registered_at)

    def slot(self, index: int) -> int:
        return self._deal(index // SLOTS).place(index % SLOTS)

    def index(self, slot: int, block: int) -> int:
        return block * SLOTS + self._deal(block).at(slot)

    def blocks(self, slot: int, moment: int) -> int:
        """How many of the slot have registered by `moment`: they are blocks 0 up to, not including, this."""
        return self.blocks_of_first(slot, self.registered(moment))

    def blocks_of_first(self, slot: int, count: int) -> int:
        """How many of the slot are among the first `count` contacts."""
        full, rest = divmod(count, SLOTS)
        return full + (rest > 0 and self.index(slot, full) < count)

    def is_deleted(self, index: int, moment: int) -> bool:
        after = CHARACTERS[self.slot(index)].deleted_after
        return bool(after) and self.registered_at(index) + after <= moment

    def deleted(self, moment: int, first: int = 1 << 40) -> int:
        """How many of the first `first` have been deleted by `moment`."""
        lives = [(slot, one.deleted_after) for slot, one in enumerate(CHARACTERS) if one.deleted_after]
        return sum(
            min(self.blocks(slot, moment - after), self.blocks_of_first(slot, first)) for slot, after in lives
        )


def _waking(days: float) -> int:
    """Seconds of a moment `days` after a start, with the day's hours bent so that nine of ten fall between 7
    and 22 o'clock."""
    day = int(days)
    part = days - day
    if part < 0.05:
        second = part * 504_000
    elif part < 0.95:
        second = 25_200 + (part - 0.05) * 60_000
    else:
        second = 79_200 + (part - 0.95) * 144_000
    return day * DAY + int(second)


#: Room for so many seeded lists in the numbering of people and contacts.
LISTS = 8
FIRST_CONTACT_ID = 310_000
_ADDRESS = re.compile(r"[a-z]+\.[a-z]+?(\d+)@[a-z.]+")
_PHONE = re.compile(r"(?:\+|00)?1[ -]*555[ -]*(\d{7,})")

FIRST_LIST_ID = 1801


def list_id(number: int) -> int:
    return FIRST_LIST_ID + number * 13


@functools.cache
def field_ids(list_number: int) -> tuple[str, ...]:
    return tuple(str(9100 + list_number * 10 + position) for position in range(len(WORDS["fields"])))


def contact_id(roll_number: int, index: int) -> int:
    return FIRST_CONTACT_ID + index * LISTS + roll_number


def roll_and_index(contact_id: int) -> tuple[int, int]:
    """(list number, index) of a seeded contact's id; the index is negative when it is none."""
    index, number = divmod(contact_id - FIRST_CONTACT_ID, LISTS)
    return number, index


class Person(NamedTuple):
    """What does not change about a person. `first` and `last` may hold letters beyond ASCII; the address
    never does."""

    number: int
    first: str
    last: str
    email: str
    phone: str  # "" for about a third
    city: str
    visit_period: int  # days between visits
    visit_phase: int

    def last_visit(self, registered_at: int, moment: int) -> int | None:
        """Unix day number (UTC) of the last visit by `moment`, None before the first: what changes about a
        contact from day to day."""
        today = moment // DAY
        visit = today - (today + self.visit_phase) % self.visit_period
        return visit if visit > registered_at // DAY else None


class People:
    """Everybody of one seed. `rolls` are the seeded lists, the first being the largest."""

    def __init__(self, seed: int, rolls: list[Roll]) -> None:
        self._rolls = rolls
        self.salt = salt(seed, "people")

    def number(self, roll_number: int, index: int) -> int:
        """The person behind an entry of a list: every eighth of a smaller list is somebody of the first
        list."""
        shared = index * 2 + roll_number
        if roll_number and index % 8 == 0 and shared < self._rolls[0].size:
            return shared * LISTS
        return index * LISTS + roll_number

    def person(self, number: int) -> Person:
        """Their address is at a domain that suits the character of their first entry."""
        index, home = divmod(number, LISTS)
        mixed, more = spread(self.salt, number), spread(self.salt ^ 0x5BD1E995, number)
        first, plain_first = pick("first_names", mixed)
        last, plain_last = pick("last_names", mixed >> 10)
        domains = WORDS["domains"][CHARACTERS[self._rolls[home].slot(index)].domains]
        email = f"{plain_first}.{plain_last}{number}@{domains[more % len(domains)]}"
        phone = f"+1555{number:07d}" if more >> 8 & 3 else ""
        return Person(
            number, first, last, email, phone, pick("cities", more >> 10), 20 + (more >> 16 & 127), more >> 23
        )

    def of_contact(self, roll_number: int, index: int) -> Person:
        return self.person(self.number(roll_number, index))

    def by_email(self, email: str) -> list[int]:
        """Ids of all entries of the person with that address in lower case, registered yet or not."""
        person = self._numbered(_ADDRESS.fullmatch(email))
        return self._entries(person.number) if person and person.email == email else []

    def by_phone(self, phone: str) -> list[int]:
        person = self._numbered(_PHONE.fullmatch(phone.strip()))
        return self._entries(person.number) if person and person.phone else []

    def _numbered(self, match: re.Match[str] | None) -> Person | None:
        return self.person(int(match[1])) if match and int(match[1]) % LISTS < len(self._rolls) else None

    def _entries(self, number: int) -> list[int]:
        index, home = divmod(number, LISTS)
        others = () if home else range(1, len(self._rolls))
        every = [(home, index), *((other, (index - other) // 2) for other in others)]
        return [contact_id(*one) for one in every if self.number(*one) == number]


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


#: Mailings are planned so far ahead of the moment that is shown.
_AHEAD = 45 * DAY
_SENT_IN_HISTORY = 20


T = TypeVar("T")


class Shelf(Generic[T]):
    """Things of one kind that an account owns: the seeded ones, overlaid with what was written.

    `seeded` gives (id, thing) of all that stand at a moment, oldest first; `ids` are those of written things,
    above all seeded ones. Not here: contacts, of which there may be a million (`subscribers`)."""

    def __init__(self, seeded: Callable[[int], Iterable[tuple[int, T]]], first_id: int) -> None:
        self.ids = itertools.count(first_id)
        #: Is asked for often in one moment.
        self._seeded = functools.lru_cache(maxsize=1)(lambda now: dict(seeded(now)))
        self._written: dict[int, T | None] = {}  # None: deleted

    def all(self, now: int) -> dict[int, T]:
        """Every thing that stands, by id; added ones last."""
        found = self._seeded(now) | self._written
        return {wanted: thing for wanted, thing in found.items() if thing is not None}

    def put(self, wanted: int, thing: T | None) -> None:
        self._written[wanted] = thing

    def add(self, thing: T) -> int:
        new = next(self.ids)
        self.put(new, thing)
        return new


class Account:
    """Mailings (in the order of sending) and automations are by list number."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        moments = Moments(origin.timezone)
        self.start = moments.midnight(moments.date(origin.base) - dt.timedelta(days=HISTORY_DAYS))
        self.rolls = _calibrated(origin, self.start)
        self.people = People(origin.seed, self.rolls)
        self.business_id = 4000 + origin.seed % 1000
        self.business, self.contact, self.service_name = pick("businesses", salt(origin.seed, "business"))
        self.campaigns = Shelf(self._seeded_campaigns, 60_001)
        self._deleted: list[Campaign] = []  # which were sent, or are automations
        self._sent = functools.cache(self._sent_campaign)
        self._unsent = [*self._drafts(), *self._automations()]
        self._replan(origin.base)

    def plan(self, moment: int) -> None:
        """Make sure that all mailings by `moment` are known; cheap when they are."""
        if moment + 15 * DAY > self._planned_until:
            self._replan(moment)

    def _replan(self, moment: int) -> None:
        """After a campaign was written: the past stays, the future is planned anew."""
        self._planned_until = moment + _AHEAD
        campaigns = [*self.campaigns.all(self._planned_until + _AHEAD).values(), *self._deleted]
        sends = sorted(
            (one for one in campaigns if one.sent_at), key=lambda one: (one.sent_at, one.campaign_id)
        )
        self.mailings: list[list[Mailing]] = []
        self.automations: list[list[Automation]] = []
        for roll in self.rolls:
            wanted, seed = list_id(roll.number), self.origin.seed
            here = [one for one in sends if wanted in one.lists]
            times = [one.sent_at for one in here]
            automations = [one for one in campaigns if one.trigger and wanted in one.lists]
            self.mailings.append([Mailing(roll, seed, one, place, times) for place, one in enumerate(here)])
            self.automations.append([Automation(roll, seed, one) for one in automations])

    def put_campaign(self, campaign: Campaign, now: int) -> None:
        self.campaigns.put(campaign.campaign_id, campaign)
        self._replan(now)

    def delete_campaign(self, campaign: Campaign, now: int) -> None:
        """It shows no more; what was not sent yet never will be."""
        self.campaigns.put(campaign.campaign_id, None)
        if campaign.is_automated or campaign.sent_at <= now:
            self._deleted.append(replace(campaign, ended_at=now))
        self._replan(now)

    # seeded campaigns

    def _seeded_campaigns(self, now: int) -> Iterator[tuple[int, Campaign]]:
        """In order of creation within each kind."""
        every = map(self._sent, itertools.count())
        for one in (*itertools.takewhile(lambda one: one.created_at <= now, every), *self._unsent):
            if one.created_at <= now:
                yield one.campaign_id, one

    def _sent_campaign(self, ordinal: int) -> Campaign:
        draw = spread(salt(self.origin.seed, "campaigns"), ordinal)
        # Days from the start to a send: ever closer together within the history, every eighth day after it.
        days = HISTORY_DAYS + 6 + 8 * (ordinal - _SENT_IN_HISTORY)
        if ordinal < _SENT_IN_HISTORY:
            days = int(HISTORY_DAYS * (1 - (1 - (ordinal + 0.5) / _SENT_IN_HISTORY) ** 1.25))
        sent = self.start + days * DAY + (9 + draw % 8) * 3600 + (draw >> 4 & 3) * 900
        month = dt.datetime.fromtimestamp(sent, dt.UTC).strftime("%B %Y")
        subject, opening = (text.format(month=month) for text in pick("campaigns", ordinal))
        links = [pick("links", ordinal + position) for position in range(2 + draw % 3)]
        return Campaign(
            campaign_id=41_000 + ordinal * 7 + (draw >> 8) % 5,
            name=subject,
            subject=subject,
            body=self._body(opening, links),
            lists=_list_ids(pick("campaign_lists", ordinal)),
            created_at=sent - 24 * DAY - draw % 40_000,
            scheduled_at=sent - 12 * DAY - draw % 30_000,
            sent_at=sent,
            links=links,
            appeal=800 + (draw >> 12) % 420,
            has_coupon="coupon" in (subject + opening).lower(),
            from_name=self.business,
        )

    def _body(self, opening: str, links: Links) -> str:
        anchors = "".join(f'<p><a href="{url}">{text}</a></p>' for url, text in links)
        return (
            f"<html><body><h1>{self.business}</h1><p>Hello "
            f"[first_name],</p><p>{opening}</p>{anchors}<p>[unsubscribe]</p></body></html>"
        )

    def _drafts(self) -> Iterator[Campaign]:
        first, body = self.start + 90 * DAY + 40_000, self._body("", ())
        for place, subject in enumerate(WORDS["drafts"]):
            wanted, created = 47_000 + place * 3, first + place * 170 * DAY
            yield Campaign(wanted, subject, subject, body, (), created, from_name=self.business)

    def _automations(self) -> Iterator[Campaign]:
        for place, one in enumerate(WORDS["automations"]):
            yield Campaign(
                campaign_id=52_000 + place * 11,
                name=one["name"],
                subject=one["subject"],
                body=self._body(one["subject"] + ".", WORDS["links"][:2]),
                lists=_list_ids(one["lists"]),
                created_at=self.start + (20 + place * 45) * DAY + 36_000,
                links=WORDS["links"][place : place + 2],
                trigger=one,
                is_automated=True,
                from_name=self.business,
            )


def _list_ids(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(map(list_id, numbers))


def _calibrated(origin: Origin, start: int) -> list[Roll]:
    """Rolls of which exactly `contacts` entries stand at the base: the larger lists make up for deletions and
    rounding."""
    rolls = [
        Roll(origin.seed, number, int(origin.contacts * one["share"]), start)
        for number, one in enumerate(WORDS["lists"])
    ]
    for number, _ in itertools.product((0, 1, 2), range(20)):
        shown = sum(roll.registered(origin.base) - roll.deleted(origin.base) for roll in rolls)
        if shown == origin.contacts:
            break
        rolls[number] = Roll(origin.seed, number, rolls[number].size + origin.contacts - shown, start)
    return rolls
