"""What becomes of campaigns: who receives, opens, clicks and leaves. Each mail has one outcome, which the
timeline of its recipient and the statistics of its campaign both show."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from marketing_api.sandbox.seed import DAY, Thing
from marketing_api.sandbox.subscribers import BOUNCED, UNSUBSCRIBED, Contact

#: (address, text) each.
Links = Sequence[tuple[str, str]]
#: (link position, times) of one contact.
Clicks = tuple[tuple[int, int], ...]
#: Nobody opens a campaign later than this, nor the mail of an automation.
_LONGEST_S, _LONGEST_AUTOMATED_S = 14 * DAY, 2 * DAY
_BOUNCES_AFTER_S = 45
_LEAVES_AFTER_S = 120  # from opening to the click on "unsubscribe"


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
    appeal: float = 1.0  # how much better or worse than usual it is opened
    has_coupon: bool = False
    trigger: Thing = field(default_factory=dict)  # of a seeded automation, as in `words.toml`
    reply_to: str = "hello@example.com"
    from_email: str = "news@example.com"
    from_name: str = ""
    is_automated: bool = False

    def group(self, moment: int) -> str:
        if self.is_automated:
            return "Automation"
        if not self.sent_at or moment < self.scheduled_at:
            return "Draft"
        return "Sent" if self.sent_at <= moment else "Scheduled"


class Outcome(NamedTuple):
    """What one contact does with one mail, whether or not it has happened yet (0: never)."""

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


class Mailings:
    """The outcomes of every mail that is, or will be, sent: by campaign and contact."""

    def __init__(self) -> None:
        self.campaigns: dict[int, Campaign] = {}
        self._outcomes: dict[int, dict[int, Outcome]] = {}

    def add(self, campaign: Campaign) -> dict[int, Outcome]:
        """The campaign's outcomes, to be filled in; those that there are already."""
        self.campaigns[campaign.campaign_id] = campaign
        return self._outcomes.setdefault(campaign.campaign_id, {})

    def send(self, campaign: Campaign, contacts: Iterable[Contact]) -> None:
        """A campaign that was written goes to contacts of its lists, at its time."""
        outcomes, chance = self.add(campaign), random.Random(campaign.campaign_id)
        for contact in contacts:
            if contact.list_id in campaign.lists and contact.receives(campaign.sent_at):
                outcomes[contact.contact_id] = draw_outcome(chance, campaign, contact)

    def stop(self, now: int, campaign_id: int = 0, contact_id: int = 0) -> None:
        """Nothing more of the campaign, or to the contact, is sent."""
        for outcomes in [self._outcomes.get(campaign_id, {})] if campaign_id else self._outcomes.values():
            for one in [contact_id] if contact_id else list(outcomes):
                if one in outcomes and outcomes[one].sent_at >= now:
                    del outcomes[one]

    def received(self, contact_id: int, now: int) -> list[tuple[Campaign, Outcome]]:
        """Every campaign that was sent to the contact by `now`, oldest first, and then every automation."""
        found = (
            (campaign, outcomes[contact_id])
            for campaign in self.campaigns.values()
            if contact_id in (outcomes := self._outcomes[campaign.campaign_id])
        )
        sent = [(campaign, outcome) for campaign, outcome in found if outcome.sent_at <= now]
        return sorted(sent, key=lambda mail: (mail[0].is_automated, mail[1].sent_at))

    def totals(self, campaign: Campaign, now: int) -> Totals:
        every = self._outcomes.get(campaign.campaign_id, {}).values()
        sent = [outcome for outcome in every if outcome.sent_at <= now]
        times = (
            [one.bounced_at for one in sent],
            [one.opened_at for one in sent],
            [one.left_at for one in sent],
        )
        return Totals(len(sent), *(sum(0 < at <= now for at in happened) for happened in times))

    def clickers(self, campaign: Campaign, now: int) -> Iterator[tuple[int, Clicks]]:
        """(contact id, clicks) of everybody who clicked by `now`."""
        for contact_id, outcome in self._outcomes.get(campaign.campaign_id, {}).items():
            if 0 < outcome.clicked_at <= now:
                yield contact_id, outcome.clicks


def mail_contact(
    chance: random.Random, contact: Contact, campaigns: Sequence[Campaign], mailings: Mailings
) -> None:
    """Draw what a seeded contact does with the campaigns of its list, in the order of sending; it leaves with
    the one after which its character does."""
    character = contact.character
    if character is None or character.fate == "unconfirmed":
        return
    received = 0
    for campaign in campaigns:
        if not campaign.is_automated and contact.receives(campaign.sent_at):
            received += 1
            outcome = draw_outcome(chance, campaign, contact)
            if received == character.leaves_after:
                outcome = _leave(outcome, contact, chance)
            mailings.add(campaign)[contact.contact_id] = outcome
    for campaign in campaigns:
        mail = _automated(chance, campaign, contact) if campaign.is_automated else None
        if mail is not None:
            mailings.add(campaign)[contact.contact_id] = mail


def _leave(outcome: Outcome, contact: Contact, chance: random.Random) -> Outcome:
    sent = outcome.sent_at
    if contact.character and contact.character.fate == "bounces":
        contact.leaves_as, contact.leaves_at = BOUNCED, sent + _BOUNCES_AFTER_S
        return Outcome(sent, bounced_at=contact.leaves_at)
    opened = outcome.opened_at or sent + _draw_delay(chance)
    contact.leaves_as, contact.leaves_at = UNSUBSCRIBED, opened + _LEAVES_AFTER_S
    return Outcome(sent, opened, left_at=contact.leaves_at)


def _draw_delay(chance: random.Random) -> int:
    """Seconds from sending to opening: half of them within an hour and a half, with a long tail."""
    part = chance.random()
    return min(60 + int(5400 * (part / (1 - part)) ** 1.1), _LONGEST_S)


def draw_outcome(chance: random.Random, campaign: Campaign, contact: Contact) -> Outcome:
    character = contact.character
    if character is None or chance.random() >= character.opens / 1024 * campaign.appeal:
        return Outcome(campaign.sent_at)
    return _opened(chance, campaign, campaign.sent_at, _draw_delay(chance), character.clicks)


def _opened(chance: random.Random, campaign: Campaign, sent: int, delay_s: int, clicking: int) -> Outcome:
    if not campaign.links or chance.random() >= clicking / 1024:
        return Outcome(sent, sent + delay_s)
    places = chance.sample(
        range(len(campaign.links)), 2 if len(campaign.links) > 1 and chance.random() < 0.25 else 1
    )
    clicked = tuple((place, chance.choice((1, 1, 1, 1, 1, 1, 2, 4))) for place in places)
    return Outcome(sent, sent + delay_s, sent + delay_s + chance.randrange(30, 1230), clicked)


def _automated(chance: random.Random, campaign: Campaign, contact: Contact) -> Outcome | None:
    """What goes to each contact of certain characters so long after it registered; None if it does not."""
    trigger, character = campaign.trigger, contact.character
    sent = contact.registered_at + trigger["after"]
    is_meant = character is not None and character.name in trigger["characters"] and not contact.is_imported
    if character is None or not is_meant or sent < campaign.created_at or not contact.receives(sent):
        return None
    # A text message can't be seen to be opened.
    if trigger["kind"] == "sms" or chance.random() >= character.opens / 1024 * 1.25:
        return Outcome(sent)
    return _opened(chance, campaign, sent, 60 + chance.randrange(_LONGEST_AUTOMATED_S), character.clicks)
