"""The seeded contacts: who registers on a list when, of what character they are, and the persons behind the
addresses.

A contact is known by its index on the list, in the order of registration. Contacts are dealt to fifty slots,
one of each per block of fifty; a slot's character decides opens, clicks, leaving and deletion. Times of one
slot grow with the block, so "how many of this slot by then" is a search in a formula and no contact need be
stored, whatever the size of the account.

A person's number is `index * LISTS + list number`; some entries of the smaller lists are persons of the first
list. All addresses are at reserved domains and all phones in an area code that is not in use. Not here: what
is mailed to them (`mailing`)."""

import bisect
import functools
import re
from dataclasses import dataclass
from typing import NamedTuple

from marketing_api.sandbox.seed import DAY, WORDS, Shuffle, pick, salt, spread

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
