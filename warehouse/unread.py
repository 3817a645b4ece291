"""Writes down what of the answers did not become columns: `sync.rejected_records`, `sync.unknown_fields`.

Everything follows from the load and its answers, so that a rebuild writes the same. Not here: reading (`staging`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from warehouse.loads.scopes import ALL, days_of, label_of, label_of_days
from warehouse.loads.target import Target
from warehouse.sql import literal
from warehouse.staging import Asked
from warehouse.table import Snapshot, Window


def write_rejected(targets: Sequence[Target], scope: Mapping[str, Any]) -> None:
    """Set aside what could not be read, in place of what was set aside when the same scope was read before."""
    if not targets:
        return
    known = targets[0].rows(f"select distinct table_name from sync.rejected_records where account = {targets[0].account}")
    for target in targets:
        if target.rejects or (target.table.name,) in known:
            _replace_rejected(target, scope)


def _replace_rejected(target: Target, scope: Mapping[str, Any]) -> None:
    labels = {asked.index: _scope_label(target, asked, scope) for asked in target.asked}
    _forget_rejected(target, sorted(set(labels.values())))
    if not target.rejects:
        return
    requests = {asked.index: asked for asked in target.asked}
    rows = pa.table(
        {
            "scope": [labels[reject.response] for reject in target.rejects],
            "request_id": pa.array([requests[reject.response].request_id for reject in target.rejects], pa.int64()),
            "requested_at": pa.array([requests[reject.response].requested_at for reject in target.rejects], pa.timestamp("us", "UTC")),
            "reason": [reject.reason for reject in target.rejects],
            "raw": [reject.raw for reject in target.rejects],
        }
    )
    table = literal(target.table.name)
    target.connection.register("arrow_rejected", rows)
    if isinstance(target.table.load, Window):  # ranges overlap: an entry that an earlier range had, too, moves to this one
        target.run(
            f"delete from sync.rejected_records where account = {target.account} and table_name = {table} "
            "and raw in (select raw::json from arrow_rejected)"
        )
    target.run(
        f"insert into sync.rejected_records by name select {target.account} as account, {table} as table_name, * from arrow_rejected"
    )
    target.connection.unregister("arrow_rejected")


def _forget_rejected(target: Target, labels: Sequence[str]) -> None:
    """Of a range, also what belongs to ranges that lie within it."""
    here = f"account = {target.account} and table_name = {literal(target.table.name)}"
    same = [f"scope in ({', '.join(literal(label) for label in labels) or 'null'})"]
    if isinstance(target.table.load, Window):
        same += [_is_within(*label.split("..")) for label in labels if ".." in label]
    target.run(f"delete from sync.rejected_records where {here} and ({' or '.join(same)})")


def _is_within(first: str, last: str) -> str:
    """The condition that a stored scope is a range within this one."""
    return f"(split_part(scope, '..', 1) >= {literal(first)} and split_part(scope, '..', 2) between {literal(first)} and {literal(last)})"


def _scope_label(target: Target, asked: Asked, scope: Mapping[str, Any]) -> str:
    """The scope of one answer: the entry it is about, the range, or the listing that it is a page of."""
    load = target.table.load
    if isinstance(load, Window):
        return label_of_days(days_of(scope))
    if isinstance(load, Snapshot) and load.scope and all(name in asked.params for name in load.scope.values()):
        return label_of(load.scope, [asked.params[name] for name in load.scope.values()])
    if "id" in asked.params and target.table.key:
        return label_of(target.table.key[:1], [asked.params["id"]])
    return ALL


def write_unknown_fields(target: Target) -> None:
    """Note fields that no column holds, the first time an answer has them."""
    if not target.has_extra:
        return
    table = literal(target.table.name)
    target.run(
        f"""
        insert into sync.unknown_fields by name
        select {target.account} as account, {table} as table_name, f.field, {target.as_of} as first_seen_at
        from (select distinct unnest(json_keys(extra)) as field from {target.source} where extra is not null) f
        where not exists (
            from sync.unknown_fields u where u.account = {target.account} and u.table_name = {table} and u.field = f.field
        )
        order by f.field
        """
    )
