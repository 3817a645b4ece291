"""A list's register of seeded contacts: who registers when, and of what character they are.

A contact is known by its index on the list, in the order of registration. Contacts are dealt to fifty slots, one of each per
block of fifty; a slot's character decides opens, clicks, leaving and deletion. Times of one slot grow with the block, so "how
many of this slot by then" is a search in a formula and no contact need be stored, whatever the size of the account.
Not here: addresses and names (`people`), what is mailed to them (`mailing`).
"""

from __future__ import annotations

import bisect
import functools
from dataclasses import dataclass

from marketing_api.sandbox.chance import salt, spread

SLOTS = 50
DAY = 86_400
HISTORY_DAYS = 730
#: The part of a list that was uploaded on its first day; these contacts saw no sign-up form.
IMPORTED = 0.3
#: Registrations gather pace: by the fraction f of the history, f ** GROWTH of the later sign-ups are in.
GROWTH = 1.3

COMMON = (
    "example.com",
    "example.org",
    "example.net",
    "mail.example.com",
    "example.com",
    "inbox.example.net",
    "example.org",
    "post.example.org",
)


@dataclass(frozen=True, slots=True)
class Character:
    """What a slot's contacts do. Parts are of 1024; `leaves_after` counts received campaigns (0: stays)."""

    name: str
    opens: int
    clicks: int  # of the opened
    fate: str = "stays"  # or unsubscribes, bounces, unconfirmed
    leaves_after: int = 0
    deleted_after: int = 0  # seconds after registration; 0: never
    domains: tuple[str, ...] = COMMON


_OLD = ("old.example.net", "old.example.net", "example.net", "old.example.net")
_FILTERED = ("filtered.example.org", "filtered.example.org", "post.example.org")

#: One block of fifty. Deleted are only slots that never open a mail, so that opens and clicks of campaigns equal those of the
#: timelines that can still be read.
CHARACTERS: tuple[Character, ...] = (
    *[Character("regular", 700, 330)] * 9,
    *[Character("reader", 390, 200)] * 14,
    *[Character("casual", 170, 150)] * 10,
    *[Character("dormant", 0, 0)] * 5,
    Character("dormant", 0, 0, deleted_after=400 * DAY),
    *[Character("filtered", 40, 100, domains=_FILTERED)] * 3,
    *[Character("leaver", 260, 90, "unsubscribes", after) for after in (1, 3, 6, 10)],
    *[Character("bouncer", 200, 90, "bounces", after, domains=_OLD) for after in (1, 4)],
    *[Character("unconfirmed", 0, 0, "unconfirmed", deleted_after=45 * DAY)] * 2,
)


def _orders() -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """All the ways a block deals its slots, and their inverses (index within the block ↔ slot)."""
    steps = [step for step in range(SLOTS) if step % 2 and step % 5]
    deals = [tuple((index * step + shift) % SLOTS for index in range(SLOTS)) for step in steps for shift in range(SLOTS)]
    inverses = []
    for deal in deals:
        inverse = [0] * SLOTS
        for index, slot in enumerate(deal):
            inverse[slot] = index
        inverses.append(tuple(inverse))
    return tuple(deals), tuple(inverses)


DEALS, INVERSES = _orders()


class Roll:
    """The register of list number `number`, which holds `size` seeded entries two years after `start` (unix seconds)."""

    def __init__(self, seed: int, number: int, size: int, start: int) -> None:
        self.number = number
        self.size = size
        self.start = start
        self.imported = int(size * IMPORTED)
        self.salt = salt(seed, "roll", number)
        self._import_at = start + 9 * 3600 + number * 1800
        self.registered = functools.lru_cache(maxsize=4096)(self._registered)

    def registered_at(self, index: int) -> int:
        """Unix seconds; never decreasing with the index."""
        if index < self.imported:
            return self._import_at + index * 1500 // self.imported
        jitter = spread(self.salt, index) / 0x100000000
        grown = (index - self.imported + jitter) / max(1, self.size - self.imported)
        past = grown ** (1 / GROWTH) if grown < 1 else 1 + (grown - 1) / GROWTH
        return self.start + DAY + _waking(past * (HISTORY_DAYS - 1))

    def registered_between(self, first: int, end: int) -> list[int]:
        """`registered_at` of a run of contacts, in one go."""
        if first < self.imported:
            return [self.registered_at(index) for index in range(first, end)]
        base, series, imported, power = self.start + DAY, self.salt, self.imported, 1 / GROWTH
        whole, found = max(1, self.size - self.imported), []
        for index in range(first, end):
            mixed = (index + series) * 0x9E3779B1 & 0xFFFFFFFF  # chance.spread, unrolled
            mixed = (mixed ^ mixed >> 15) * 0x85EBCA77 & 0xFFFFFFFF
            mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
            grown = (index - imported + (mixed ^ mixed >> 16) / 0x100000000) / whole
            days = (grown**power if grown < 1 else 1 + (grown - 1) / GROWTH) * (HISTORY_DAYS - 1)
            day = int(days)
            part = days - day
            if 0.05 <= part < 0.95:
                found.append(base + day * DAY + int(25_200 + (part - 0.05) * 60_000))
            else:
                found.append(base + _waking(days))
        return found

    def _registered(self, moment: int) -> int:
        """How many have registered by `moment`."""
        top = max(64, self.size * 2)
        while self.registered_at(top) <= moment:
            top *= 2
        return bisect.bisect_right(range(top), moment, key=self.registered_at)

    def slot(self, index: int) -> int:
        block, within = divmod(index, SLOTS)
        return DEALS[spread(self.salt, block) % len(DEALS)][within]

    def index(self, slot: int, block: int) -> int:
        return block * SLOTS + INVERSES[spread(self.salt, block) % len(DEALS)][slot]

    def blocks(self, slot: int, moment: int) -> int:
        """How many of the slot have registered by `moment`: they are blocks 0 up to, not including, this."""
        return self.blocks_of_first(slot, self.registered(moment))

    def blocks_of_first(self, slot: int, count: int) -> int:
        """How many of the slot are among the first `count` contacts."""
        full, rest = divmod(count, SLOTS)
        return full + (1 if rest and self.index(slot, full) < count else 0)

    def is_deleted(self, index: int, moment: int) -> bool:
        after = CHARACTERS[self.slot(index)].deleted_after
        return bool(after) and self.registered_at(index) + after <= moment

    def deleted(self, moment: int, first: int | None = None) -> int:
        """How many (of the first `first`) have been deleted by `moment`."""
        total = 0
        for slot, character in enumerate(CHARACTERS):
            if character.deleted_after:
                gone = self.blocks(slot, moment - character.deleted_after)
                total += gone if first is None else min(gone, self.blocks_of_first(slot, first))
        return total

    def standing(self, moment: int) -> int:
        """How many entries the list shows at `moment`."""
        return self.registered(moment) - self.deleted(moment)


def _waking(days: float) -> int:
    """Seconds of a moment `days` after a start, with the day's hours bent so that nine of ten fall between 7 and 22 o'clock."""
    day = int(days)
    part = days - day
    if part < 0.05:
        second = part * 504_000
    elif part < 0.95:
        second = 25_200 + (part - 0.05) * 60_000
    else:
        second = 79_200 + (part - 0.95) * 144_000
    return day * DAY + int(second)
