"""The contacts of one list as JSON text, fast enough for a million: untouched seeded contacts are written straight from formulas.

The formulas are those of `seeded_contacts` and `subscribers`, unrolled; a test compares every item with the slow way."""

from __future__ import annotations

import bisect
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from marketing_api.sandbox.chance import spread
from marketing_api.sandbox.moments import DAY, Moments, day_text
from marketing_api.sandbox.seeded_contacts import CHARACTERS, DEALS, FIRST_CONTACT_ID, LISTS, SLOTS, Roll, contact_id, list_id
from marketing_api.sandbox.subscribers import Contact, Subscribers, seeded_status
from marketing_api.sandbox.words import CITIES, FIRST_NAMES, LAST_NAMES

if TYPE_CHECKING:
    from marketing_api.sandbox.world import Account

#: A contact's JSON text in the style of the response, for the few that are not written from formulas.
Dump = Callable[[Contact], str]
_BLOCKS_PER_BATCH = 12


class Listing:
    """The contacts of one list at one moment, in the order of their ids."""

    def __init__(self, account: Account, subscribers: Subscribers, wanted: int, now: int) -> None:
        self._account = account
        self._subscribers = subscribers
        self._now = now
        self._roll = account.roll_of_list(wanted) if wanted not in subscribers.deleted_lists else None
        self._touched = subscribers.touched(self._roll) if self._roll else []
        self._kept = [index for index in self._touched if self._stands(index, wanted)] if self._roll else []
        self._guests = list(subscribers.in_list(wanted, now)) if wanted not in subscribers.deleted_lists else []

    def _stands(self, index: int, wanted: int) -> bool:
        assert self._roll is not None
        contact = self._subscribers.get(contact_id(self._roll.number, index), self._now)
        return contact is not None and contact.list_id == wanted

    def _before(self, index: int) -> int:
        """How many listed seeded contacts have a lower index."""
        assert self._roll is not None
        touched = bisect.bisect_left(self._touched, index)
        ghosts = sum(self._roll.is_deleted(one, self._now) for one in self._touched[:touched])
        untouched = index - self._roll.deleted(self._now, index) - (touched - ghosts)
        return untouched + bisect.bisect_left(self._kept, index)

    @property
    def count(self) -> int:
        return self._seeded_count() + len(self._guests)

    def _seeded_count(self) -> int:
        return self._before(self._roll.registered(self._now)) if self._roll else 0

    def items(self, offset: int, limit: int | None, dump: Dump, template: str | None, moments: Moments) -> Iterator[list[str]]:
        """Batches of items from `offset` on, at most `limit`."""
        seeded = self._seeded_count()
        last = seeded + len(self._guests) if limit is None else offset + limit
        if self._roll is not None and offset < seeded:
            first = self._index_at(offset)
            yield from self._seeded(first, min(last, seeded) - offset, dump, template, moments)
        guests = self._guests[max(0, offset - seeded) : max(0, last - seeded)]
        if guests:
            yield [dump(contact) for one in guests if (contact := self._subscribers.get(one, self._now)) is not None]

    def _index_at(self, position: int) -> int:
        assert self._roll is not None
        return bisect.bisect_right(range(self._roll.registered(self._now)), position, key=lambda index: self._before(index + 1))

    def _seeded(self, first: int, wanted: int, dump: Dump, template: str | None, moments: Moments) -> Iterator[list[str]]:
        assert self._roll is not None
        end = self._roll.registered(self._now)
        fast = _Fast(self._account, self._roll, self._now, moments) if template else None
        while wanted > 0 and first < end:
            stop = min(end, (first // SLOTS + _BLOCKS_PER_BATCH) * SLOTS)
            at = bisect.bisect_left(self._touched, first)
            if fast is not None and template is not None and (at == len(self._touched) or self._touched[at] >= stop):
                batch = fast.lines(first, stop, template)
            else:
                batch = [dump(contact) for contact in self._slow(first, stop)]
            first = stop
            if batch:
                yield batch[:wanted]
            wanted -= len(batch)

    def _slow(self, first: int, stop: int) -> Iterator[Contact]:
        assert self._roll is not None
        here = list_id(self._roll.number)
        for index in range(first, stop):
            contact = self._subscribers.get(contact_id(self._roll.number, index), self._now)
            if contact is not None and contact.list_id == here:
                yield contact


class _Fast:
    """Writes runs of untouched seeded contacts."""

    def __init__(self, account: Account, roll: Roll, now: int, moments: Moments) -> None:
        self._account, self._roll, self._now, self._moments = account, roll, now, moments
        self._mailings = account.mailings[roll.number]
        #: Per slot: blocks below this are deleted, and blocks below that have left for sure.
        self._deleted = [roll.blocks(slot, now - one.deleted_after) if one.deleted_after else 0 for slot, one in enumerate(CHARACTERS)]
        self._left = [self._mailings.surely_left(slot, now) for slot in range(SLOTS)]
        self._form = moments.shape("24h")
        self._minutes = [f" {text}" for text in self._form.minutes]
        self._first = [plain for _, plain in FIRST_NAMES]
        self._last = [plain for _, plain in LAST_NAMES]
        self._first_texts, self._last_texts = (
            [json.dumps(name, ensure_ascii=False)[1:-1] for name, _ in names] for names in (FIRST_NAMES, LAST_NAMES)
        )

    def _status(self, index: int, slot: int, block: int) -> int:
        character = CHARACTERS[slot]
        if not character.leaves_after:
            return 1 if character.fate == "stays" else 0
        if block < self._left[slot]:
            return 3 if character.fate == "bounces" else 2
        return seeded_status(self._mailings, index, slot, self._now)

    def lines(self, first: int, stop: int, template: str) -> list[str]:
        found: list[str] = []
        for block in range(first // SLOTS, (stop - 1) // SLOTS + 1):
            self._block(block, max(first, block * SLOTS), min(stop, (block + 1) * SLOTS), template, found)
        return found

    def _block(self, block: int, start: int, end: int, template: str, found: list[str]) -> None:
        roll, deleted, minutes = self._roll, self._deleted, self._minutes
        times = roll.registered_between(start, end)
        day_form, now, local = self._form.day, self._now, self._moments.local
        offset = self._moments.offset(times[0] // 3600)
        is_steady = offset == self._moments.offset(times[-1] // 3600) and times[-1] - times[0] < 30 * DAY  # no clock change in between
        firsts, lasts, first_texts, last_texts = self._first, self._last, self._first_texts, self._last_texts
        first_count, last_count, city_count = len(firsts), len(lasts), len(CITIES)
        salt, more_salt = self._account.people.salt, self._account.people.salt ^ 0x5BD1E995
        deal = DEALS[spread(roll.salt, block) % len(DEALS)]
        base, today = block * SLOTS, now // DAY
        for index, registered in enumerate(times, start):
            slot = deal[index - base]
            if block < deleted[slot]:
                continue
            character = CHARACTERS[slot]
            status = 1 if character.fate == "stays" else self._status(index, slot, block)
            number = self._account.people.number(roll.number, index) if roll.number and not index % 8 else index * LISTS + roll.number
            mixed = (number + salt) * 0x9E3779B1 & 0xFFFFFFFF
            mixed = (mixed ^ mixed >> 15) * 0x85EBCA77 & 0xFFFFFFFF
            mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
            mixed ^= mixed >> 16
            more = (number + more_salt) * 0x9E3779B1 & 0xFFFFFFFF
            more = (more ^ more >> 15) * 0x85EBCA77 & 0xFFFFFFFF
            more = (more ^ more >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
            more ^= more >> 16
            day, minute = divmod((registered + offset) // 60, 1440) if is_steady else local(registered)
            domains = (
                character.domains if number % LISTS == roll.number else CHARACTERS[self._account.rolls[0].slot(number // LISTS)].domains
            )
            visit = today - (today + (more >> 23)) % (20 + (more >> 16 & 127))
            one, two = mixed % first_count, (mixed >> 10) % last_count
            found.append(
                template
                % (
                    FIRST_CONTACT_ID + index * LISTS + roll.number,
                    firsts[one],
                    lasts[two],
                    number,
                    domains[more % len(domains)],
                    status,
                    day_text(day, day_form),
                    minutes[minute],
                    first_texts[one],
                    last_texts[two],
                    f"+1555{number:07d}" if more >> 8 & 3 else "",
                    CITIES[(more >> 10) % city_count],
                    day_text(visit, "%m/%d/%Y") if visit > registered // DAY else "",
                )
            )
