"""The contacts of an account as they stand: the seeded ones, overlaid with what was written; which of them a
list shows.

A contact that was never written to is computed; one that was has a Card. A seeded contact whose list, status
or existence was changed stops following its seeded fate at that moment (`quiet_from`): nothing more is sent
to it, nor to one that was added. `Activity` is what they did. Not here: the wording of responses
(`contacts`)."""

import bisect
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from marketing_api.sandbox.mailing import (
    Campaign,
    Clicks,
    Outcome,
    Source,
    Totals,
    clickers,
    left,
)
from marketing_api.sandbox.seed import DAY, Moments
from marketing_api.sandbox.seeded_account import Account
from marketing_api.sandbox.seeded_contacts import (
    CHARACTERS,
    contact_id,
    field_ids,
    list_id,
    roll_and_index,
)

UNCONFIRMED, ACTIVE, UNSUBSCRIBED, BOUNCED = range(4)
FIRST_WRITTEN_ID = 900_000_001
_BATCH = 600
_NEVER = 1 << 62
_UTC = Moments("UTC")


class Contact(NamedTuple):
    """A contact as it stands at some moment; `values` are custom-field values by field id, without the empty
    ones."""

    contact_id: int
    list_id: int
    email: str
    status: int
    registered_at: int
    values: dict[str, str]


@dataclass(slots=True)
class Card:
    """What was written to one contact. None: as seeded."""

    contact_id: int
    list_id: int
    registered_at: int
    email: str | None = None
    status: int | None = None
    values: dict[str, str] = field(default_factory=dict)
    quiet_from: int = _NEVER
    deleted_at: int = _NEVER
    tags: dict[str, int] = field(default_factory=dict)  # when each was added
    activities: list[tuple[int, str]] = field(default_factory=list)

    @property
    def is_seeded(self) -> bool:
        return self.contact_id < FIRST_WRITTEN_ID


class Change(NamedTuple):
    """A write that gave somebody a status on a list. `before`: those of everybody with the address there;
    `elsewhere`: on other lists; `gone`: the last ones of those who were deleted from it."""

    email: str
    list_id: int
    contact_id: int
    before: tuple[int, ...]
    elsewhere: tuple[int, ...]
    gone: tuple[int, ...]
    after: int


class Subscribers:
    """Every contact of an account. Times are unix seconds of the account's clock."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.cards: dict[int, Card] = {}
        self._by_email: dict[str, list[int]] = {}
        self.ids = itertools.count(FIRST_WRITTEN_ID)  # of contacts that are added
        self.deleted_lists: set[int] = set()
        self.changes: list[Change] = []  # of statuses, oldest first

    # reading

    def get(self, wanted: int, now: int) -> Contact | None:
        """The contact, None when there is none (any more)."""
        card, contact = self.cards.get(wanted), self._seeded(wanted, now)
        if card is not None:
            base = contact or Contact(wanted, card.list_id, "", ACTIVE, card.registered_at, {})
            is_gone = card.deleted_at <= now or (card.is_seeded and contact is None)
            values = {key: value for key, value in {**base.values, **card.values}.items() if value}
            status = base.status if card.status is None else card.status
            email = card.email or base.email
            written = Contact(wanted, card.list_id, email, status, card.registered_at, values)
            contact = None if is_gone else written
        return contact if contact and contact.list_id not in self.deleted_lists else None

    def _seeded(self, wanted: int, now: int) -> Contact | None:
        number, index = roll_and_index(wanted)
        if index < 0 or number >= len(self.account.rolls):
            return None
        roll, card = self.account.rolls[number], self.cards.get(wanted)
        registered = roll.registered_at(index)
        if registered > now or roll.is_deleted(index, min(now, card.quiet_from) if card else now):
            return None
        person = self.account.people.of_contact(number, index)
        visit = person.last_visit(registered, now)
        texts = (person.first, person.last, person.phone, person.city, _UTC.day(visit * DAY) if visit else "")
        values = {key: text for key, text in zip(field_ids(number), texts, strict=True) if text}
        status = self._fate(number, index, now)
        return Contact(wanted, list_id(number), person.email, status, registered, values)

    def _fate(self, number: int, index: int, now: int) -> int:
        """The status of a seeded contact that was never written to."""
        roll = self.account.rolls[number]
        slot = roll.slot(index)
        fate = CHARACTERS[slot].fate
        if fate == "unconfirmed":
            return UNCONFIRMED
        if not 0 < left(self.account.mailings[number], roll, index, slot) <= now:
            return ACTIVE
        return BOUNCED if fate == "bounces" else UNSUBSCRIBED

    def by_email(self, email: str, now: int) -> list[Contact]:
        """The contacts with that address, one per list at most (unless written otherwise)."""
        word = email.strip().lower()
        return [contact for contact in self._there(self._ids(word), now) if contact.email.lower() == word]

    def by_phone(self, phone: str, now: int) -> list[Contact]:
        return self._there(self.account.people.by_phone(phone), now)

    def _ids(self, word: str) -> Iterable[int]:
        """Contacts that ever had the address, or were given it."""
        return dict.fromkeys([*self._by_email.get(word, ()), *self.account.people.by_email(word)])

    def _there(self, ids: Iterable[int], now: int) -> list[Contact]:
        return [contact for wanted in ids if (contact := self.get(wanted, now)) is not None]

    def email(self, wanted: int) -> str:
        """The address of a contact, of one that was deleted too."""
        card = self.cards.get(wanted)
        return (card.email if card else "") or self.account.people.of_contact(*roll_and_index(wanted)).email

    # writing

    def add(
        self, where: int, email: str, status: int, now: int, values: dict[str, str], reserved: int = 0
    ) -> int:
        """A new contact on a list; returns its id."""
        new = reserved or next(self.ids)
        self._note(email, where, new, status, now)
        self.cards[new] = Card(new, where, now, email, status, dict(values))
        self._by_email.setdefault(email.lower(), []).append(new)
        return new

    def edit(
        self,
        contact: Contact,
        now: int,
        email: str = "",
        status: int | None = None,
        values: dict[str, str] | None = None,
    ) -> None:
        """Change what is given; a new status ends the receiving of mails."""
        card = self.card(contact)
        if email and email.lower() != contact.email.lower():
            self._by_email.setdefault(email.lower(), []).append(card.contact_id)
        card.email = email or card.email
        card.values.update(values or {})
        if status is not None and status != contact.status:
            self._note(contact.email, contact.list_id, contact.contact_id, status, now)
            self._quiet(contact, status, now)

    def leave(self, email: str, status: int, now: int) -> None:
        """The person unsubscribes, or the address bounces, on every list: no write of ours."""
        for contact in self.by_email(email, now):
            self._quiet(contact, status, now)

    def move(self, contact: Contact, where: int, now: int) -> None:
        self._note(contact.email, where, contact.contact_id, contact.status, now)
        card = self._quiet(contact, contact.status, now)
        card.list_id = where
        card.values.update(contact.values)

    def delete(self, contact: Contact, now: int) -> None:
        self._quiet(contact, contact.status, now).deleted_at = now

    def _quiet(self, contact: Contact, status: int, now: int) -> Card:
        """The card of a contact that has this status from now on, whatever was seeded."""
        card = self.card(contact)
        card.status, card.quiet_from = status, min(card.quiet_from, now)
        return card

    def _note(self, email: str, where: int, wanted: int, status: int, now: int) -> None:
        word = email.lower()
        found = self.by_email(word, now)
        before = tuple(one.status for one in found if one.list_id == where)
        elsewhere = tuple(one.status for one in found if one.list_id != where)
        cards = [self.cards[one] for one in self._ids(word) if one in self.cards]
        gone = tuple(card.status or 0 for card in cards if card.deleted_at <= now and card.list_id == where)
        self.changes.append(Change(word, where, wanted, before, elsewhere, gone, status))

    def card(self, contact: Contact) -> Card:
        """Where tags and activities are written, too."""
        new = Card(contact.contact_id, contact.list_id, contact.registered_at)
        return self.cards.setdefault(contact.contact_id, new)


class Listing:
    """The contacts of one list at one moment, in the order of their ids; where a page begins is a search in a
    formula."""

    def __init__(self, subscribers: Subscribers, wanted: int, now: int) -> None:
        self._subscribers, self._wanted, self._now = subscribers, wanted, now
        rolls = () if wanted in subscribers.deleted_lists else subscribers.account.rolls
        self._roll = roll = next((one for one in rolls if list_id(one.number) == wanted), None)
        self._registered = roll.registered(now) if roll else 0
        #: By how much writes changed the number of seeded contacts, by index; and who else stands on the
        #: list, oldest first.
        self._changes: dict[int, int] = {}
        self._guests: list[int] = []
        for one, card in subscribers.cards.items():
            number, index = roll_and_index(one)
            is_listed = card.list_id == wanted and self._get(one) is not None
            if card.is_seeded and roll and number == roll.number:
                self._changes[index] = is_listed - (not roll.is_deleted(index, now))
            elif is_listed:
                self._guests.append(one)
        self._seeded = self._before(self._registered)
        self.count = self._seeded + len(self._guests)

    def _get(self, wanted: int) -> Contact | None:
        contact = self._subscribers.get(wanted, self._now)
        return contact if contact is not None and contact.list_id == self._wanted else None

    def _before(self, index: int) -> int:
        """How many listed seeded contacts have a lower index."""
        deleted = self._roll.deleted(self._now, index) if self._roll else 0
        return index - deleted + sum(change for one, change in self._changes.items() if one < index)

    def batches(self, offset: int, limit: int) -> Iterator[list[Contact]]:
        """At most `limit` contacts from `offset` on, some hundred at a time."""
        seeded = range(self._registered)
        first = bisect.bisect_right(seeded, offset, key=lambda index: self._before(index + 1))
        ids = (contact_id(self._roll.number, index) for index in seeded[first:] if self._roll)
        every = itertools.chain(ids, self._guests[max(0, offset - self._seeded) :])
        listed = (contact for one in every if (contact := self._get(one)) is not None)
        contacts = itertools.islice(listed, limit)
        while batch := list(itertools.islice(contacts, _BATCH)):
            yield batch


#: What the mails of a contact are: campaigns, each with what the contact did.
Mail = tuple[Campaign, Outcome]


class Activity:
    """Outcomes by contact and by campaign. Times are unix seconds of the account's clock."""

    def __init__(self, subscribers: Subscribers) -> None:
        self._subscribers, self._account = subscribers, subscribers.account

    def received(self, wanted: int, now: int) -> list[Mail]:
        """Every campaign that was sent to the contact by `now`, oldest first, and then every automation."""
        card, (number, index) = self._subscribers.cards.get(wanted), roll_and_index(wanted)
        if card is not None:
            if not card.is_seeded:
                return []
            now = min(now, card.quiet_from - 1)
        slot = self._account.rolls[number].slot(index)
        sources: list[Source] = [*self._account.mailings[number], *self._account.automations[number]]
        outcomes = ((source.campaign, source.outcome(index, slot)) for source in sources)
        return [(campaign, done) for campaign, done in outcomes if done is not None and done.sent_at <= now]

    def _sources(self, campaign: Campaign) -> dict[int, Source]:
        """The campaign on each of its lists, by list number."""
        every: Iterator[Source] = itertools.chain(*self._account.mailings, *self._account.automations)
        return {one.roll.number: one for one in every if one.campaign.campaign_id == campaign.campaign_id}

    def totals(self, campaign: Campaign, now: int) -> Totals:
        """The campaign's totals by `now`, over all its lists."""
        found = [source.totals(now) for source in self._sources(campaign).values()]
        for _, prevented in self._prevented(campaign, now):
            times = (prevented.bounced_at, prevented.opened_at, prevented.left_at)
            found.append(Totals(-1, *(-(0 < at <= now) for at in times)))
        return Totals(*map(sum, zip(*found, strict=True)))

    def clickers(self, campaign: Campaign, now: int) -> Iterator[tuple[int, Clicks]]:
        """(contact id, clicks) of everybody who clicked by `now`."""
        gone = {wanted for wanted, _ in self._prevented(campaign, now)}
        for number, source in self._sources(campaign).items():
            for index, clicked in clickers(source, now):
                if (wanted := contact_id(number, index)) not in gone:
                    yield wanted, clicked

    def _prevented(self, campaign: Campaign, now: int) -> Iterator[tuple[int, Outcome]]:
        """Seeded outcomes that a write prevented, by contact id."""
        sources = self._sources(campaign)
        for card in self._subscribers.cards.values():
            number, index = roll_and_index(card.contact_id)
            if card.is_seeded and number in sources:
                outcome = sources[number].outcome(index, self._account.rolls[number].slot(index))
                if outcome is not None and card.quiet_from <= outcome.sent_at <= now:
                    yield card.contact_id, outcome
