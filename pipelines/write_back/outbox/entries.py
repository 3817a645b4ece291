"""What the outbox holds, as values: a push, an entry, which is one item with how far it has come, and a push's counts.

Not here: where they are kept (`outbox`), what an item is made from (`item`, `planning`).
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.write_back.item import DONE, OPEN, Source, State


@dataclass(frozen=True, slots=True)
class Push:
    """One push as it was begun. Times are unix seconds; `options` is whatever the caller wanted kept (JSON)."""

    push_id: int
    account: str
    kind: str
    source: Source
    row_count: int
    item_count: int  # requests, look-ups aside
    new_count: int  # rows, like those that follow
    changed_count: int
    idle_count: int
    bad_count: int
    begun_at: float
    run: str | None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the outbox: an item, or (`operation` None) a row that our checks rejected or that has nothing to do.

    Times are unix seconds: `changed_at` is that of the last change of the state. `rejected_by` is `check` or `service`.
    `drift`: mismatches on read-back, `{field: [intended, found]}`; {} when it was read and is as intended.
    `request_id` is that of the last response (sync.requests); `revision` grows with every change, over all entries.
    """

    item_id: int
    push_id: int
    account: str
    kind: str
    source: str
    rows: tuple[int, ...]
    email: str | None = field(repr=False)
    contact_id: int | None
    operation: str | None
    params: Mapping[str, str] = field(repr=False)
    expected: Mapping[str, Any] = field(repr=False)
    must_look_up: bool
    state: State
    message: str | None
    rejected_by: str | None
    attempts: int
    planned_at: float
    sent_at: float | None
    changed_at: float
    done_at: float | None
    verified_at: float | None
    drift: Mapping[str, Any] | None = field(repr=False)
    request_id: int | None
    run: str | None
    revision: int

    @property
    def is_done(self) -> bool:
        return self.state in DONE

    @property
    def needs_look_up(self) -> bool:
        """Whether its contact id has to be looked up before it can be sent."""
        return self.must_look_up and self.contact_id is None


def read_entry(row: sqlite3.Row) -> Entry:
    values = dict(row)
    values["state"] = State(values["state"])
    values["rows"] = tuple(json.loads(values["rows"]))
    values["must_look_up"] = bool(values["must_look_up"])
    for name in ("params", "expected"):
        values[name] = json.loads(values[name]) if values[name] else {}
    values["drift"] = json.loads(values["drift"]) if values["drift"] is not None else None
    return Entry(**values)


def read_push(row: sqlite3.Row) -> Push:
    values = dict(row)
    source = Source(values.pop("source_name"), values.pop("source_hash"))
    values["options"] = json.loads(values["options"])
    return Push(source=source, **values)


@dataclass(frozen=True, slots=True)
class Counts:
    """How far a push is: input rows by state, requests by state, rows that our checks rejected, requests with a mismatch on read-back."""

    rows: Mapping[State, int]
    requests: Mapping[State, int]
    rejected_by_check: int
    drifted: int

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be sent or found out."""
        return not any(self.requests.get(state) for state in OPEN)


@dataclass(frozen=True, slots=True)
class Retried:
    """Requests that are tried again, those that are not since a later push changed the same thing, and rejected ones that are `left`."""

    planned: int
    superseded: int
    left: Sequence[Entry] = ()
