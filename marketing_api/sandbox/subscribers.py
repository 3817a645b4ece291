"""The contacts of an account, seeded and written ones. Not here: the wording of responses
(`contacts`)."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from marketing_api.sandbox.seed import NEVER, WORDS

if TYPE_CHECKING:
    from marketing_api.sandbox.mailing import Mail

UNCONFIRMED, ACTIVE, UNSUBSCRIBED, BOUNCED = range(4)


@dataclass(frozen=True, slots=True)
class Character:
    """What a seeded contact does. Parts are of 1024; `leaves_after` counts received campaigns (0:
    stays)."""

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
    """An entry of a list. Times are unix seconds; `values` are custom-field values by field id."""

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
    mails: "list[Mail]" = field(default_factory=list)  # of the time ahead, too
    tags: dict[str, int] = field(default_factory=dict)  # when each was added
    activities: list[tuple[int, str]] = field(default_factory=list)
    is_written: bool = False

    def exists(self, now: int) -> bool:
        return self.registered_at <= now < self.deleted_at

    def receives(self, moment: int) -> bool:
        """Whether a mail that is sent then reaches it, if it is sent any."""
        return self.exists(moment) and moment < self.leaves_at

    def status_at(self, now: int) -> int:
        return self.leaves_as if self.leaves_at <= now else self.status

    def mails_by(self, now: int) -> "list[Mail]":
        """Those that were sent by `now`, oldest first."""
        return sorted(
            (mail for mail in self.mails if mail.sent_at <= now), key=lambda mail: mail.sent_at
        )

    def set_status(self, status: int, now: int) -> None:
        """From now on, whatever was seeded; nothing more is sent to it."""
        self.status, self.leaves_at, self.deleted_at = status, NEVER, NEVER
        self.character, self.is_written = None, True
        for mail in self.mails:
            mail.cancel(now)


class Subscribers:
    """Every contact of an account by id, of the past and of the time ahead too."""

    def __init__(self, contacts: Iterable[Contact]) -> None:
        self.contacts: dict[int, Contact] = {}
        self._by_email: dict[str, list[Contact]] = defaultdict(list)
        for contact in contacts:
            self.add(contact)

    def add(self, contact: Contact) -> None:
        self.contacts[contact.contact_id] = contact
        self._by_email[contact.email.lower()].append(contact)

    def get(self, contact_id: int, now: int) -> Contact | None:
        """The contact, None when there is none (any more)."""
        contact = self.contacts.get(contact_id)
        return contact if contact is not None and contact.exists(now) else None

    def on_list(self, list_id: int, now: int) -> list[Contact]:
        return [one for one in self.contacts.values() if one.list_id == list_id and one.exists(now)]

    def by_email(self, email: str, now: int) -> list[Contact]:
        """The contacts with that address, one per list at most (unless written otherwise)."""
        return [
            one
            for one in self._by_email.get(email.strip().lower(), ())
            if email and one.exists(now)
        ]

    def by_phone(self, phone: str, now: int) -> list[Contact]:
        digits = _digits(phone)
        every = (contact for contact in self.contacts.values() if digits and contact.exists(now))
        return [contact for contact in every if digits in map(_digits, contact.values.values())]

    def edit(
        self, contact: Contact, now: int, email: str, status: int | None, values: dict[str, str]
    ) -> None:
        """Change what is given; a new status ends the receiving of mails."""
        contact.is_written = True
        if status is not None and status != contact.status_at(now):
            contact.set_status(status, now)
        if email:
            self._by_email[contact.email.lower()].remove(contact)
            contact.email = email
            self._by_email[email.lower()].append(contact)
        contact.values.update(values)

    def move(self, contact: Contact, list_id: int, now: int) -> None:
        contact.set_status(contact.status_at(now), now)
        contact.list_id = list_id

    def delete(self, contact: Contact, now: int) -> None:
        contact.set_status(contact.status_at(now), now)
        contact.deleted_at = now


def _digits(text: str) -> str:
    """Of a phone number, as everybody writes it."""
    return "".join(letter for letter in text if letter.isdigit()).removeprefix("00")
