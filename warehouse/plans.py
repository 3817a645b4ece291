"""Writes `sync.plans`: what a run planned to ask about contacts, for which reasons, and what came of it.

What came of it follows from `sync.contact_coverage`, which loading keeps. Not here: planning (`assets.planning`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from warehouse.sql import rows, transaction

#: How each kind of question finds its contacts: (their column in the plan and in sync.contact_coverage, prefix of its columns there).
_QUESTIONS = {"timelines": ("contact_id", "timeline"), "coupons": ("lower(trim(email))", "coupon")}


@dataclass(frozen=True)
class Planned:
    """The plan of one account, made `at`: by question a table of `key` (contact id, address), `reason` and `expected` (the chance
    that there is something new without that reason)."""

    account: str
    at: dt.datetime
    lines: Mapping[str, pa.Table]


def write_plan(connection: duckdb.DuckDBPyConnection, run_id: str, planned: Planned) -> None:
    """Add the plan's figures, or replace what was written of this run before."""
    with transaction(connection):
        rows(connection, "delete from sync.plans where run_id = ? and account = ?", [run_id, planned.account])
        for question, line in planned.lines.items():
            connection.register("arrow_planned", line)
            rows(connection, _insert(question), {"run": run_id, "account": planned.account, "at": planned.at, "question": question})
            connection.unregister("arrow_planned")


def _insert(question: str) -> str:
    column, prefix = _QUESTIONS[question]
    return f"""
        with known as (
            select {column} as key, max({prefix}_asked_at) as asked_at, max({prefix}_changed_at) as changed_at
            from sync.contact_coverage where account = $account and {prefix}_asked_at >= $at group by 1
        )
        insert into sync.plans (run_id, account, planned_at, question, reason, planned_count, asked_count, changed_count, expected_count)
        select $run, $account, $at, $question, reason, count(*), count(asked_at), count(*) filter (changed_at >= $at),
            coalesce(sum(expected) filter (asked_at is not null), 0)
        from arrow_planned left join known using (key) group by reason
    """
