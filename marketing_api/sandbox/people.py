"""The people behind the addresses: names, addresses, phones and custom-field values as pure functions of a person's number.

A person's number is `index * LISTS + list number`; some entries of the smaller lists are people of the first list.
All addresses are at reserved domains and all phones in an area code that is not in use: nobody real can be reached.
Not here: when they registered or what they did.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from marketing_api.sandbox.chance import salt, spread
from marketing_api.sandbox.roll import CHARACTERS, DAY, Roll
from marketing_api.sandbox.words import CITIES, FIRST_NAMES, LAST_NAMES

#: Room for so many seeded lists in the numbering of people and contacts.
LISTS = 8
FIRST_CONTACT_ID = 310_000
_ADDRESS = re.compile(r"[a-z]+\.[a-z]+?(\d+)@[a-z.]+")
_PHONE = re.compile(r"(?:\+|00)?1[ -]*555[ -]*(\d{7,})")


def contact_id(roll_number: int, index: int) -> int:
    return FIRST_CONTACT_ID + index * LISTS + roll_number


def roll_and_index(contact_id: int) -> tuple[int, int]:
    """(list number, index) of a seeded contact's id; the index is negative when it is none."""
    index, number = divmod(contact_id - FIRST_CONTACT_ID, LISTS)
    return number, index


class Person(NamedTuple):
    """What does not change about a person. `first` and `last` may hold letters beyond ASCII; the address never does."""

    number: int
    first: str
    last: str
    email: str
    phone: str  # "" for about a third
    city: str
    visit_period: int  # days between visits
    visit_phase: int


class People:
    """Everybody of one seed. `rolls` are the seeded lists, the first being the largest."""

    def __init__(self, seed: int, rolls: list[Roll]) -> None:
        self._rolls = rolls
        self.salt = salt(seed, "people")

    def number(self, roll_number: int, index: int) -> int:
        """The person behind an entry of a list: every eighth of a smaller list is somebody of the first list."""
        if roll_number and index % 8 == 0:
            shared = index * 2 + roll_number
            if shared < self._rolls[0].size:
                return shared * LISTS
        return index * LISTS + roll_number

    def entries(self, number: int) -> list[tuple[int, int]]:
        """(list number, index) of every entry of a person, whether registered yet or not."""
        index, home = divmod(number, LISTS)
        if home:
            return [(home, index)] if home < len(self._rolls) and self.number(home, index) == number else []
        found = [(0, index)]
        for roll_number in range(1, len(self._rolls)):
            other, odd = divmod(index - roll_number, 2)
            if not odd and other >= 0 and other % 8 == 0 and self.number(roll_number, other) == number:
                found.append((roll_number, other))
        return found

    def person(self, number: int) -> Person:
        mixed, more = self._draws(number)
        phone = f"+1555{number:07d}" if more >> 8 & 3 else ""
        return Person(
            number,
            FIRST_NAMES[mixed % len(FIRST_NAMES)][0],
            LAST_NAMES[(mixed >> 10) % len(LAST_NAMES)][0],
            self.email(number),
            phone,
            CITIES[(more >> 10) % len(CITIES)],
            20 + (more >> 16 & 127),
            more >> 23,
        )

    def _draws(self, number: int) -> tuple[int, int]:
        return spread(self.salt, number), spread(self.salt ^ 0x5BD1E995, number)

    def email(self, number: int) -> str:
        """At a domain that suits the character of the person's first entry."""
        index, home = divmod(number, LISTS)
        mixed, more = self._draws(number)
        domains = CHARACTERS[self._rolls[home].slot(index)].domains
        first, last = FIRST_NAMES[mixed % len(FIRST_NAMES)][1], LAST_NAMES[(mixed >> 10) % len(LAST_NAMES)][1]
        return f"{first}.{last}{number}@{domains[more % len(domains)]}"

    def of_contact(self, roll_number: int, index: int) -> Person:
        return self.person(self.number(roll_number, index))

    def by_email(self, email: str) -> Person | None:
        """The person with that address, if there is one; case does not matter."""
        match = _ADDRESS.fullmatch(email.strip().lower())
        if match is None or int(match[1]) % LISTS >= len(self._rolls):
            return None
        person = self.person(int(match[1]))
        return person if person.email == email.strip().lower() else None

    def by_phone(self, phone: str) -> Person | None:
        match = _PHONE.fullmatch(phone.strip())
        if match is None or int(match[1]) % LISTS >= len(self._rolls):
            return None
        person = self.person(int(match[1]))
        return person if person.phone else None


def last_visit(person: Person, registered_at: int, moment: int) -> int | None:
    """Unix day number (UTC) of the last visit by `moment`, None before the first: what changes about a contact from day to day."""
    today = moment // DAY
    visit = today - (today + person.visit_phase) % person.visit_period
    return visit if visit > registered_at // DAY else None
