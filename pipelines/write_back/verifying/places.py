"""Moves and deletions read back by the listings of the lists that they touch: one page proves many.

Belongs here: which lists are worth reading, and what they prove. Not here: when they are read again (`verify`), how (`readback`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from marketing_api.client import Client
from pipelines.write_back.item import Kind
from pipelines.write_back.outbox.entry import Entry
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.sending.finding import Found
from pipelines.write_back.verifying.comparing import Compared
from pipelines.write_back.verifying.readback import read_list

#: Two lists of one page each, and a look whether there is another: next to nothing, however few are moved.
_LEAST_REQUESTS = 4


@dataclass(frozen=True, slots=True)
class _Shown:
    """Who is on a list."""

    ids: frozenset[int]
    emails: frozenset[str]

    @staticmethod
    def of(found: Iterable[Found]) -> _Shown:
        people = list(found)
        return _Shown(frozenset(one.contact_id for one in people), frozenset(one.email.lower() for one in people if one.email))


class Places:
    """Reads the lists at once, those that most entries touch first, for at most `share` requests an entry. `provable`: entries all of
    whose lists were read.
    """

    def __init__(self, client: Client, entries: Collection[Entry], share: float) -> None:
        self._client = client
        left, fresh = max(_LEAST_REQUESTS, math.ceil(share * len(entries))), {}
        for list_id, _ in Counter(list_id for entry in entries for list_id in lists_of(entry)).most_common():
            found, requests = read_list(client, list_id, left) if left > 0 else (None, 0)
            left -= requests
            if found is not None:
                fresh[list_id] = _Shown.of(found)
        self.provable = [entry for entry in entries if fresh.keys() >= set(lists_of(entry))]
        self._fresh: Mapping[int, _Shown] = fresh

    def see(self, entries: Collection[Entry]) -> dict[int, Compared]:
        """What the lists show of each; the first time as they were read to begin with. An entry is left out when a list cannot be read."""
        shown, self._fresh = self._fresh or dict(self._read({each for entry in entries for each in lists_of(entry)})), {}
        return {entry.item_id: _compared(entry, shown) for entry in entries if shown.keys() >= set(lists_of(entry))}

    def _read(self, lists: Iterable[int]) -> Iterable[tuple[int, _Shown]]:
        for list_id in lists:
            found, _ = read_list(self._client, list_id, math.inf)
            if found is not None:
                yield list_id, _Shown.of(found)


def lists_of(entry: Entry) -> tuple[int, ...]:
    """The list that somebody is to leave; of a move, also the one to be on then."""
    names = ("sourceid", "listid") if entry.kind is Kind.MOVES else ("listid",)
    return tuple(int(entry.params[name]) for name in names)


def _compared(entry: Entry, shown: Mapping[int, _Shown]) -> Compared:
    source, *targets = lists_of(entry)
    if entry.contact_id in shown[source].ids:
        return Compared({"source list": ("not on it", "on it")})
    for target in targets:  # it may have another id there
        if entry.contact_id not in shown[target].ids and (entry.email or "").lower() not in shown[target].emails:
            return Compared({"target list": ("on it", "not on it")})
    return Compared()


def still_valid(outbox: Outbox, entries: Collection[Entry]) -> list[Entry]:
    """Without those whose contact a later item has taken off, or put on, one of their lists again."""
    names = {entry.item_id: [f"{who}|{each}" for who in _names(entry) for each in lists_of(entry)] for entry in entries}
    subjects = {name for several in names.values() for name in several}
    left = list(entries)
    for kind in (Kind.MOVES, Kind.DELETIONS, Kind.CONTACTS):
        last = outbox.last(left[0].account, kind, subjects) if left else {}
        left = [entry for entry in left if all(name not in last or last[name].item_id <= entry.item_id for name in names[entry.item_id])]
    return left


def _names(entry: Entry) -> list[str]:
    return [str(entry.contact_id), *([entry.email.lower()] if entry.email else [])]
