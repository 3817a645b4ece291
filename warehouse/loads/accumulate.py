"""Accumulating tables: the service shows only part of the entries, so rows are added and updated and none is removed.

Entries have no id: their key is `identity-occurrence`, where entries of one identity (a group) are numbered in response
order. Not here: writing (`upsert`).
"""

from __future__ import annotations

from warehouse.loads.arrow import ANSWER, PART
from warehouse.loads.listing import ALL
from warehouse.loads.target import ScopeResult, Target
from warehouse.loads.upsert import upsert
from warehouse.sql import quoted


def load_accumulate(target: Target, whole_answers: frozenset[int], *, is_complete: bool) -> list[ScopeResult]:
    """Apply the staged rows; `whole_answers` are the responses (by index) that the service did not cut.

    A group that was served whole, or with at least as many entries as are stored, updates the stored rows one by one. A
    smaller group of a cut response may be any of the stored ones: only content that is not there yet is added, as new rows.
    """
    result = ScopeResult(ALL, is_complete, None, None if is_complete else "not everything could be had")
    if not target.report.received:
        return [result]
    target.merge_parts()
    stored = target.make(
        "held",
        f"select rowid as rid, * from {target.table.qualified} t "
        f"where account = {target.account} and exists (from {target.staged} s where {target.on_outer('s', 't')})",
    )
    target.held = target.temp("held")
    if stored and len(whole_answers) < len(target.responses):
        _renumber_small_groups(target, whole_answers)
    upsert(target)
    return [result]


def _renumber_small_groups(target: Target, whole_answers: frozenset[int]) -> None:
    """Of groups of cut responses with fewer entries than are stored keep only content that is not stored, numbered behind what is."""
    *outer, last = target.key
    group = ", ".join([*outer, "_identity"])
    identity = f"split_part({last}, '-', 1) as _identity"
    whole = ", ".join(map(str, sorted(whole_answers)))
    is_whole = f"bool_or({ANSWER} in ({whole}))" if whole else "false"
    small = target.make(
        "small",
        f"""
        with served as (
            select {", ".join([*outer, identity])}, count(*) as _served, {is_whole} as _is_whole from {target.staged} group by all
        ),
        stored as (select {", ".join([*outer, identity])}, count(*) as _stored from {target.held} group by all)
        select {group}, _stored from served join stored using ({group}) where _served < _stored and not _is_whole
        """,
    )
    if not small:
        return
    content = f"hash({', '.join(quoted(column.name) for column in target.table.values)})"
    target.make(
        "sifted",
        f"""
        with served as (select *, {identity}, {content} as _content from {target.staged}),
        seen as (select {", ".join([*outer, identity])}, {content} as _content from {target.held}),
        unseen as (
            select distinct on ({group}, _content) * from served s
            where exists (from {target.temp("small")} g where {_same_group(target, "g", "s")})
                and not exists (from seen n where {_same_group(target, "n", "s")} and n._content = s._content)
            order by {PART}
        )
        select * exclude (_identity, _content) from served s
        where not exists (from {target.temp("small")} g where {_same_group(target, "g", "s")})
        union all by name
        select * exclude (_identity, _content, _stored)
            replace (_identity || '-' || (_stored - 1 + row_number() over (partition by {group} order by {PART})) as {last})
        from unseen join {target.temp("small")} using ({group})
        """,
    )
    target.staged = target.temp("sifted")


def _same_group(target: Target, left: str, right: str) -> str:
    return f"{target.on_outer(left, right)} and {left}._identity = {right}._identity"
