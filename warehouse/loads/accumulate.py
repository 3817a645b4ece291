"""Accumulating tables: the service shows only part of the entries, so rows are added and updated and none is removed.

Entries have no id: their key is `identity-occurrence`, where entries of one identity (a group) are numbered in response
order. Not here: writing (`upsert`).
"""

from __future__ import annotations

from warehouse.loads.arrow import ANSWER, PART
from warehouse.loads.listing import ALL
from warehouse.loads.target import ScopeResult, Target
from warehouse.loads.upsert import upsert
from warehouse.sql import query, quoted


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
    whole = ", ".join(map(str, sorted(whole_answers)))
    terms = {
        "outer": "".join(f"{name}, " for name in outer),
        "identity": f"split_part({last}, '-', 1) as _identity",
        "staged": target.staged,
        "held": target.held,
        "small": target.temp("small"),
    }
    is_whole = f"bool_or({ANSWER} in ({whole}))" if whole else "false"
    if target.make("small", query("small_groups").format(**terms, is_whole=is_whole)):
        content = f"hash({', '.join(quoted(column.name) for column in target.table.values)})"
        target.make("sifted", query("renumbered_groups").format(**terms, content=content, last=last, part=PART))
        target.staged = target.temp("sifted")
