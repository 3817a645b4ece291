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
    held = target.make(
        "held",
        f"select rowid as rid, * from {target.table.qualified} t "
        f"where account = {target.account} and exists (from {target.staged} s where {target.on_outer('s', 't')})",
    )
    target.held = target.temp("held")
    is_cut = len(whole_answers) < len(target.responses)
    if held and is_cut and _find_small_groups(target, whole_answers):
        _renumber_unseen(target)
    upsert(target)
    return [result]


def _group(target: Target, alias: str) -> str:
    """The columns before the last of the key, and the identity that the last one holds."""
    *outer, last = (f"{alias}.{name}" for name in target.key)
    return ", ".join([*outer, f"split_part({last}, '-', 1) as _identity"])


def _find_small_groups(target: Target, whole_answers: frozenset[int]) -> int:
    """Groups of cut responses with fewer entries than are stored, and how many those are: `small`."""
    whole = ", ".join(map(str, sorted(whole_answers)))
    is_whole = f"bool_or({ANSWER} in ({whole}))" if whole else "false"
    names = ", ".join([*target.key[:-1], "_identity"])
    return target.make(
        "small",
        f"""
        with served as (select {_group(target, "s")}, count(*) as _served, {is_whole} as _is_whole from {target.staged} s group by all),
        stored as (select {_group(target, "t")}, count(*) as _stored from {target.held} t group by all)
        select {names}, _stored from served join stored using ({names}) where _served < _stored and not _is_whole
        """,
    )


def _renumber_unseen(target: Target) -> None:
    """Of the small groups keep only content that is not stored, numbered behind what is."""
    last = target.key[-1]
    group = ", ".join([*target.key[:-1], "_identity"])
    content = f"hash({', '.join(quoted(column.name) for column in target.table.values)})"
    target.make(
        "sifted",
        f"""
        with served as (select *, split_part({last}, '-', 1) as _identity, {content} as _content from {target.staged}),
        seen as (select {_group(target, "t")}, {content} as _content from {target.held} t),
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
