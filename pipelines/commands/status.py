"""`marketing-sync status`: how fresh and complete every table is, the last runs, and what could not be read."""

import datetime as dt
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table as Grid

from marketing_api.clock import utc_now
from pipelines import exits
from pipelines.commands import Arguments, command
from pipelines.freshness import ago, due, is_to_come, standstill
from pipelines.progress import report_waiting
from pipelines.publishing import what_is_published
from pipelines.settings import Settings
from warehouse.connection import connect

_TABLES = """
    select table_name as "table", account, sum(rows)::bigint as rows, min(as_of) as oldest, max(as_of) as newest,
        count(*) as scopes, count(*) filter (not is_complete) as incomplete,
        case when contains(any_value(scope), '..') then max(due_at) else min(due_at) end as due
    from sync.coverage group by all order by account, min(rowid)
"""
_CONTACTS = """
    with contacts as (select distinct account, contact_id from source.contacts where _deleted_at is null)
    select p.account, count(*) as contacts, count(c.timeline_asked_at) as timelines, count(c.coupon_asked_at) as coupons,
        min(c.timeline_asked_at) as oldest, count(*) filter (c.timeline_served < c.timeline_total) as cut
    from contacts p left join sync.contact_coverage c using (account, contact_id) group by p.account order by p.account
"""
_RUNS = "select started_at, ended_at, job, outcome, request_count, waited_s, message from sync.runs order by started_at desc limit 5"
_REJECTED = """
    select account, table_name, reason, count(*) as records
    from sync.rejected_records group by all order by records desc, table_name limit 20
"""
#: The last plan of each account, by kind of request.
_LAST_PLANS = """
    with runs as (select account, question, arg_max(run_id, planned_at) as run_id from sync.plans group by all),
    lines as (from sync.plans join runs using (account, question, run_id))
    select account, question, max(planned_at) as planned_at, sum(planned_count)::bigint as planned, sum(asked_count)::bigint as asked,
        sum(changed_count)::bigint as changed, string_agg(reason || ' ' || planned_count, ', ' order by planned_count desc) as why
    from lines group by account, question order by account, question
"""


@command()
def status(arguments: Arguments, settings: Settings) -> int:
    console = Console(highlight=False)
    if not settings.warehouse_path.exists():
        console.print(f"nothing has been synced yet: there is no {settings.warehouse_path}; run `marketing-sync sync`", soft_wrap=True)
        return exits.DONE
    with connect(settings.warehouse_path, deadline_s=settings.lock_seconds, read_only=True, on_wait=report_waiting) as connection:
        tables, contacts, plans, runs, rejected = (
            _rows(connection.execute(sql)) for sql in (_TABLES, _CONTACTS, _LAST_PLANS, _RUNS, _REJECTED)
        )
    now = utc_now()
    for line in _standstills(tables, now):
        console.print(line, style="bold red", soft_wrap=True, markup=False)
    console.print(_table_grid(tables, now))
    for row in contacts:
        console.print(_contact_line(row, now), soft_wrap=True)
    for row in plans:
        console.print(
            f"account {row['account']}, {row['question']}: last plan {row['planned']:,} requests ({row['why']}); "
            f"{row['asked']:,} read, {row['changed']:,} of them changed",
            soft_wrap=True,
        )
    console.print(_run_grid(runs))
    if rejected:
        table = grid("rejected records", "account", "table", "records", "reason", right=("records",))
        for row in rejected:
            table.add_row(row["account"], row["table_name"], f"{row['records']:,}", row["reason"])
    console.print(table if rejected else "no rejected records")
    console.print(f"published: {what_is_published(settings, now)}", soft_wrap=True, markup=False)
    return exits.DONE


def _rows(found: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def grid(title: str, *columns: str, right: tuple[str, ...] = ()) -> Grid:
    """An empty table with these columns, those in `right` flush right."""
    made = Grid(title=title, title_justify="left", title_style="bold", box=None, header_style="dim", pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def _standstills(rows: list[dict[str, Any]], now: dt.datetime) -> list[str]:
    """The accounts that are not read any more, first thing to be seen."""
    dated = [(row["account"], row["newest"]) for row in rows if row["newest"] is not None]
    ahead = {account: moment for account, moment in dated if is_to_come(moment, now)}
    newest: dict[str, dt.datetime] = {}
    for account, moment in dated:
        if not is_to_come(moment, now):
            newest[account] = max(moment, newest.get(account, moment))
    return [
        f"account {account}: what was read last is dated {moment:%Y-%m-%d %H:%M} UTC, which is still to come: a clock was ahead, or this "
        "machine's is behind. What is read from now on replaces it\n"
        for account, moment in ahead.items()
    ] + [
        f"account {account}: {words}. Is the schedule on (`marketing-sync ui`)? `marketing-sync sync` reads now\n"
        for account, moment in newest.items()
        if (words := standstill(moment, now))
    ]


def _table_grid(rows: list[dict[str, Any]], now: dt.datetime) -> Grid:
    table = grid("tables", "account", "table", "rows", "read", "due", "complete", right=("rows",))
    for row in rows:
        whole = row["scopes"] - row["incomplete"]
        complete = "yes" if not row["incomplete"] else f"{whole:,} of {row['scopes']:,} parts"
        table.add_row(row["account"], row["table"], f"{row['rows']:,}", ago(row["newest"], now), due(row["due"], now), complete)
    return table


def _contact_line(row: dict[str, Any], now: dt.datetime) -> str:
    def share(count: int) -> str:
        return f"{100 * count / row['contacts']:.1f} %"

    oldest = f", the oldest {ago(row['oldest'], now)}" if row["oldest"] else ""
    cut = f", {row['cut']:,} cut by the service" if row["cut"] else ""
    return (
        f"account {row['account']}: {row['contacts']:,} contacts, timelines of {share(row['timelines'])}{oldest}{cut}, "
        f"coupons of {share(row['coupons'])}\n"
    )


def _run_grid(rows: list[dict[str, Any]]) -> Grid:
    table = grid("last runs", "started", "took", "job", "outcome", "requests", "not read", right=("requests",))
    for row in rows:
        took = f"{(row['ended_at'] - row['started_at']).total_seconds():,.0f} s" if row["ended_at"] else "–"
        started = row["started_at"].astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
        table.add_row(started, took, row["job"], row["outcome"] or "runs", f"{row['request_count']:,}", row["message"] or "")
    return table
