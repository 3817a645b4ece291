"""How a plan enters the outbox, inside the one transaction of its push. Not here: what becomes of it then (`outbox`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.write_back.item import Item, Plan, State
from pipelines.write_back.outbox.store import Change

_PUSH = (
    "insert into push (account, kind, source_name, source_hash, row_count, item_count, new_count, changed_count, idle_count,"
    " bad_count, begun_at, run, options) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ITEM = (
    "insert into item (push_id, rows, email, contact_id, operation, params, expected, must_look_up, state, message, rejected_by,"
    " planned_at, changed_at, done_at, revision) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_EFFECT = "insert into effect (account, kind, subject, item_id, content) values (?, ?, ?, ?, ?)"

_Stamp = tuple[int, float, int]  # push, time, revision


@dataclass(frozen=True, slots=True)
class Members:
    """Who entered and left an audience sync's result."""

    activation: str
    entered: Collection[str] = field(repr=False)
    left: Collection[str] = field(repr=False)


def insert_plan(change: Change, plan: Plan, *, now: float, run: str | None, options: Mapping[str, Any]) -> int:
    """The number of the new push. Items in their order, then what is rejected or idle."""
    source = plan.source
    counts = (len(plan.items), plan.new_count, plan.changed_count, len(plan.idle), len(plan.bad))
    values = (plan.account, plan.kind, source.name, source.content_hash, plan.row_count, *counts, now, run, json.dumps(options))
    push_id = change.run(_PUSH, values).lastrowid
    assert push_id is not None
    stamp = (push_id, now, change.revision())
    for item in plan.items:
        _insert_item(change, plan, item, stamp)
    change.run_many(_ITEM, _rows_without_request(plan, stamp))
    return push_id


def _insert_item(change: Change, plan: Plan, item: Item, stamp: _Stamp) -> None:
    push_id, now, revision = stamp
    params = json.dumps(dict(item.params), ensure_ascii=False)
    expected = json.dumps(dict(item.expected), ensure_ascii=False)
    what = (item.email, item.contact_id, item.operation.name, params, expected, item.must_look_up)
    done = change.run(_ITEM, (push_id, json.dumps(item.rows), *what, State.PLANNED, None, None, now, now, None, revision))
    effects = {effect.subject: effect.content for effect in item.effects}
    change.run_many(_EFFECT, [(plan.account, plan.kind, subject, done.lastrowid, content) for subject, content in effects.items()])


def _rows_without_request(plan: Plan, stamp: _Stamp) -> Iterator[tuple[Any, ...]]:
    push_id, now, revision = stamp
    for bad in plan.bad:
        by = "service" if bad.by_service else "check"
        yield push_id, f"[{bad.row}]", None, None, None, None, None, 0, State.REJECTED, bad.reason, by, now, now, now, revision
    for idle in plan.idle:
        what = (idle.email, idle.contact_id, None, None, None, 0)
        yield push_id, f"[{idle.row}]", *what, State.SKIPPED, idle.reason, None, now, now, now, revision


def note_members(change: Change, account: str, members: Members, now: float) -> None:
    change.run_many(
        "delete from membership where account = ? and activation = ? and subject = ?",
        [(account, members.activation, subject) for subject in members.left],
    )
    change.run_many(
        "insert or ignore into membership (account, activation, subject, entered_at) values (?, ?, ?, ?)",
        [(account, members.activation, subject, now) for subject in members.entered],
    )
