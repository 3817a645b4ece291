"""The contacts of an account: the seeded ones and those that were written, in one dictionary. Not here: the
wording of responses (`contacts`), what is mailed to them (`mailing`)."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from marketing_api.sandbox.seed import DAY, WORDS, Moments

UNCONFIRMED, ACTIVE, UNSUBSCRIBED, BOUNCED = range(4)
NEVER = 1 << 40
FIRST_WRITTEN_ID = 900_000_001
_UTC = Moments("UTC")


@dataclass(frozen=True, slots=True)
class Character:
    """What a seeded contact does. Parts are of 1024; `leaves_after` counts received campaigns (0: stays)."""

    name: str
    opens: int
    clicks: int  # of the opened
    fate: str = "stays"  # or unsubscribes, bounces, unconfirmed
    leaves_after: int = 0
    deleted_after: int = 0  # seconds after registration; 0: never
    domains: str = "common"  # kind of domains in `words.toml`


#: As often as they come about among fifty contacts.
CHARACTERS = [Character(**one) for count, one in WORDS["characters"] for _ in range(count)]


@dataclass(slots=True)
class Contact:
    """An entry of a list. Times are unix seconds; `values` are custom-field values by field id, without the
    empty ones."""

    contact_id: int
    list_id: int
    email: str
    registered_at: int
    values: dict[str, str]
    status: int = ACTIVE
    deleted_at: int = NEVER
    #: When the status becomes that of a contact that left.
    leaves_at: int = NEVER
    leaves_as: int = UNSUBSCRIBED
    character: Character | None = None  # None: nothing is sent to it (any more)
    is_imported: bool = False
    visit_field: str = ""
    visit_days: int = 1  # between visits
    visit_phase: int = 0
    tags: dict[str, int] = field(default_factory=dict)  # when each was added
    activities: list[tuple[int, str]] = field(default_factory=list)
    is_written: bool = False

    def exists(self, now: int) -> bool:
        return self.registered_at <= now < self.deleted_at

    def receives(self, moment: int) -> bool:
        """Whether a mail that is sent then reaches it."""
        return self.character is not None and self.exists(moment) and moment < self.leaves_at

    def status_at(self, now: int) -> int:
        return self.leaves_as if self.leaves_at <= now else self.status

    def values_at(self, now: int) -> dict[str, str]:
        """With the day of the last visit: what changes about a contact from day to day."""
        today = now // DAY
        visit = today - (today + self.visit_phase) % self.visit_days
        if self.visit_field in self.values or not self.visit_field or visit <= self.registered_at // DAY:
            return {name: value for name, value in self.values.items() if value}
        return {**self.values, self.visit_field: _UTC.day(visit * DAY)}


class Subscribers:
    """Every contact of an account, of the past and of the time ahead too; `contacts` are by id. `stop` is
    called with the id of a contact to which nothing more is to be sent, and the time."""

    def __init__(self, contacts: Iterable[Contact], stop: Callable[[int, int], None]) -> None:
        self.contacts: dict[int, Contact] = {}
        self._by_email: dict[str, list[Contact]] = defaultdict(list)
        self._by_list: dict[int, dict[int, Contact]] = defaultdict(dict)
        self._stop = stop
        self.ids = itertools.count(FIRST_WRITTEN_ID)  # of contacts that are added
        for contact in contacts:
            self._put(contact)

    def _put(self, contact: Contact) -> None:
        self.contacts[contact.contact_id] = contact
        self._by_email[contact.email.lower()].append(contact)
        self._by_list[contact.list_id][contact.contact_id] = contact

    # reading

    def get(self, contact_id: int, now: int) -> Contact | None:
        """The contact, None when there is none (any more)."""
        contact = self.contacts.get(contact_id)
        return contact if contact is not None and contact.exists(now) else None

    def on_list(self, list_id: int, now: int) -> list[Contact]:
        """The seeded ones in the order of their ids, and then the others."""
        return [contact for contact in self._by_list[list_id].values() if contact.exists(now)]

    def by_email(self, email: str, now: int) -> list[Contact]:
        """The contacts with that address, one per list at most (unless written otherwise)."""
        return [one for one in self._by_email.get(email.strip().lower(), ()) if one.exists(now)]

    def by_phone(self, phone: str, now: int) -> list[Contact]:
        digits = _digits(phone)
        every = (contact for contact in self.contacts.values() if digits and contact.exists(now))
        return [contact for contact in every if digits in map(_digits, contact.values.values())]

    # writing

    def add(
        self, where: int, email: str, status: int, now: int, values: dict[str, str], reserved: int = 0
    ) -> int:
        """A new contact on a list; returns its id."""
        new = reserved or next(self.ids)
        self._put(Contact(new, where, email, now, dict(values), status, is_written=True))
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
        contact.is_written = True
        if status is not None and status != contact.status_at(now):
            self._quiet(contact, status, now)
        if email:
            self._by_email[contact.email.lower()].remove(contact)
            contact.email = email
            self._by_email[email.lower()].append(contact)
        contact.values.update(values or {})

    def move(self, contact: Contact, where: int, now: int) -> None:
        status = contact.status_at(now)
        contact.values = contact.values_at(now)
        self._quiet(contact, status, now)
        del self._by_list[contact.list_id][contact.contact_id]
        contact.list_id = where
        self._by_list[where][contact.contact_id] = contact

    def delete(self, contact: Contact, now: int) -> None:
        self._quiet(contact, contact.status_at(now), now)
        contact.deleted_at = now

    def delete_list(self, list_id: int, now: int) -> None:
        """And nobody registers on it any more."""
        for contact in self._by_list.pop(list_id, {}).values():
            contact.deleted_at = min(contact.deleted_at, now)
            self._stop(contact.contact_id, now)

    def _quiet(self, contact: Contact, status: int, now: int) -> None:
        """The contact has this status from now on, whatever was seeded."""
        contact.status, contact.leaves_at, contact.is_written = status, NEVER, True
        if contact.character is not None:
            contact.deleted_at, contact.character = NEVER, None
            self._stop(contact.contact_id, now)


def _digits(text: str) -> str:
    """Of a phone number, as everybody writes it."""
    return "".join(letter for letter in text if letter.isdigit()).removeprefix("00")
