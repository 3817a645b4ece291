"""Maintenance of the outbox as a whole: cancel, retry, send again, and retention of what was skipped. Each is one transaction.

Not here: the commands (`terminal`), what a sender does (`outbox`), going on with a copy (`restore`).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from pipelines.write_back.kinds import NOT_IDEMPOTENT
from pipelines.write_back.outbox.store import Store

_CHOSEN = (
    "operation is not null and (state in ('rejected', 'unknown') or (state = 'applied' and drift <> '{}')) and push_id in"
    " (select push_id from push where account = :account and (:push_id is null or push_id = :push_id))"
)
#: A later item has changed, or is to change, something that this one would set back.
_SUPERSEDED = (
    "exists (select 1 from effect mine join effect other using (account, kind, subject) join item newer on newer.item_id = other.item_id"
    " where mine.item_id = item.item_id and other.item_id > mine.item_id and newer.state not in ('skipped', 'rejected'))"
)
#: What is not idempotent and was sent: what was refused in words may have arrived all the same.
_LOOKS_FIRST = (
    "(sent_at is not null and contact_id is not null and push_id in"
    " (select push_id from push where kind in (select value from json_each(:looked_for))))"
)


@dataclass(frozen=True, slots=True)
class Retried:
    """Requests that are tried again, and those that are not since a later push changed the same thing."""

    planned: int
    superseded: int


def cancel(store: Store, account: str, push_id: int | None, now: float, *, unknown: bool) -> int:
    """What is unknown and dropped counts as never sent: whoever drops it has looked."""
    with store.change() as change:
        return change.run(
            "update item set state = 'skipped', message = 'cancelled', changed_at = ?, revision = ?"
            " where (state = 'planned' or (? and state = 'unknown'))"
            " and push_id in (select push_id from push where account = ? and (? is null or push_id = ?))",
            (now, change.revision(), unknown, account, push_id, push_id),
        ).rowcount


def retry(store: Store, account: str, push_id: int | None, now: float) -> Retried:
    """What is not idempotent and was sent is unknown then, with its attempts forgotten: the sender looks before it sends."""
    with store.change() as change:
        values = {
            "account": account,
            "push_id": push_id,
            "now": now,
            "revision": change.revision(),
            "looked_for": json.dumps(NOT_IDEMPOTENT),
        }
        superseded = int(change.run(f"select count(*) from item where {_CHOSEN} and {_SUPERSEDED}", values).fetchone()[0])  # noqa: S608
        fresh = "attempts = 0, rejected_by = null, done_at = null, revision = :revision"
        unknown = change.run(
            f"update item set state = 'unknown', {fresh} where {_CHOSEN} and {_LOOKS_FIRST} and not {_SUPERSEDED}",  # noqa: S608
            values,
        ).rowcount
        planned = change.run(
            f"update item set state = 'planned', message = null, changed_at = :now, {fresh}"  # noqa: S608
            f" where {_CHOSEN} and not {_LOOKS_FIRST} and not {_SUPERSEDED}",
            values,
        ).rowcount
    return Retried(planned + unknown, superseded)


def again(store: Store, item_ids: Collection[int], now: float) -> int:
    """Plan again what is idempotent, with what is known of it; how many."""
    with store.change() as change:
        return change.run(
            f"update item set state = 'planned', done_at = null, changed_at = ?, revision = ? where state = 'applied' and not {_SUPERSEDED}"  # noqa: S608
            " and item_id in (select value from json_each(?))",
            (now, change.revision(), json.dumps(list(item_ids))),
        ).rowcount


def prune(store: Store, before: float) -> int:
    """Skipped rows of pushes begun before then."""
    old = "state = 'skipped' and push_id in (select push_id from push where begun_at < ?)"
    with store.change() as change:
        change.run(f"delete from effect where item_id in (select item_id from item where {old})", (before,))  # noqa: S608
        return change.run(f"delete from item where {old}", (before,)).rowcount  # noqa: S608
