"""`marketing-sync status`: how fresh and complete every table is, the last runs, and what could not be read;
of all shards: `lake`."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from home import exits, output
from home.folder import reading, unfinished_erasure
from home.freshness import ago, due, is_to_come, standstill
from home.identity import identity_of
from home.options import JSON, Option
from home.output import Status, emit
from home.settings import Settings
from home.versions import check_not_newer
from marketing_api.clock import utc_now
from marketing_api.redaction import plain
from pipelines.commands import Arguments, command
from pipelines.publishing import lake_storage, published_document, what_is_published
from warehouse.lake import Manifest, fleet, manifests, problems, views, write_views
from warehouse.retention import sizes
from warehouse.sql import literal, records, statements
from warehouse.storage import shown
from warehouse.tables import TABLES

#: By the fields of `Status` that they fill.
_QUERIES = statements(Path(__file__).with_suffix(".sql"))
_COUNTED = "select account, {name} as table_name, count(*) as rows from {table} where {live} group by account"


@command(
    Option("fleet", "every account of the lake instead: size, growth, freshness, problems, requests"),
    JSON,
    is_for_all_shards=True,
)
def status(arguments: Arguments, settings: Settings) -> int:
    now = utc_now()
    if arguments.fleet:
        return _fleet(settings, now, is_json=arguments.json)
    settings = settings.of_one_shard()
    check_not_newer(settings.home)
    if not settings.warehouse_path.exists():
        nothing = (
            f"nothing has been synced yet: there is no {settings.warehouse_path}; run `marketing-sync sync`"
        )
        if arguments.json:
            emit(Status(notices=[nothing]))
        else:
            print(nothing)
        return exits.DONE
    with reading(settings) as connection:
        queries = {**_QUERIES, "tables": _QUERIES["tables"].format(counted=_counted(connection))}
        read = {name: records(connection, sql) for name, sql in queries.items()}
    found = msgspec.convert(read, Status)
    found.home, found.holds = _parts(settings, read["sizes"]), plain(str(identity_of(settings.home)))
    found.notices = (
        list(_standstills(found.tables, now))
        if found.tables
        else ["nothing was read yet; run `marketing-sync sync`"]
    )
    found.notices += filter(None, [unfinished_erasure(settings.home)])
    if arguments.json:
        found.published = published_document(settings)
        emit(found)
    else:
        _print(found, settings, now)
    return exits.DONE


def _counted(connection: duckdb.DuckDBPyConnection) -> str:
    """The rows of every table that anything was read of: what was read of it, range by range, overlaps."""
    names = {
        name for (name,) in connection.execute("select distinct table_name from sync.coverage").fetchall()
    } & set(TABLES)
    found = [TABLES[name] for name in sorted(names)]
    counts = [
        _COUNTED.format(name=literal(table.name), table=table.qualified, live=table.is_there)
        for table in found
    ]
    return (
        " union all ".join(counts)
        or "select null::varchar as account, null::varchar as table_name, 0 as rows where false"
    )


def _parts(settings: Settings, measured: list[dict[str, Any]]) -> list[output.Part]:
    before = {each["part"]: each for each in measured}

    def growth(part: str, size: int) -> int | None:
        return round((size - before[part]["bytes"]) / before[part]["days"] * 30) if part in before else None

    found = sorted(sizes(settings.home).items(), key=lambda each: -each[1])
    return [output.Part(part, size, growth(part, size)) for part, size in found if size]


def _print(found: Status, settings: Settings, now: dt.datetime) -> None:
    console = Console(highlight=False)
    for line in found.notices:
        console.print(f"{line}\n", style="bold red", soft_wrap=True, markup=False)
    console.print(
        grid(
            "tables",
            "account, table, >rows, read, due, complete",
            (_table_cells(each, now) for each in found.tables),
        )
    )
    for contacts in found.contacts:
        console.print(_contact_line(contacts, now), soft_wrap=True)
    for plan in found.plans:
        console.print(
            f"account {plan.account}, {plan.question}: last plan {plan.planned:,} requests ({plan.why}); "
            f"{plan.asked:,} read, {plan.changed:,} of them changed",
            soft_wrap=True,
        )
    console.print(
        grid("last runs", "started, took, job, outcome, >requests, not read", map(_run_cells, found.runs))
    )
    rejected = ((each.account, each.table, f"{each.records:,}", each.reason) for each in found.rejected)
    console.print(
        grid("rejected records", "account, table, >records, reason", rejected)
        if found.rejected
        else "no rejected records"
    )
    if found.schema_changes:
        columns = "noticed, account, table, change, field, before, after, like"
        console.print(grid("schema changes", columns, map(_change_cells, found.schema_changes)))
    console.print(grid("home", "part, >MB, >in 30 days", _home_cells(found.home)))
    console.print(f"published: {what_is_published(settings, now)}", soft_wrap=True, markup=False)
    console.print(f"holds: {found.holds}", soft_wrap=True, markup=False)


def grid(title: str, columns: str, rows: Iterable[Sequence[str]]) -> Grid:
    """A table with these columns, like `table, >rows`: those with `>` are flush right."""
    made = Grid(
        title=title, title_justify="left", title_style="bold", box=None, header_style="dim", pad_edge=False
    )
    for column in columns.split(", "):
        made.add_column(
            column.removeprefix(">"), justify="right" if column.startswith(">") else "left", overflow="fold"
        )
    for row in rows:
        made.add_row(*row)
    return made


def _home_cells(parts: list[output.Part]) -> Iterator[tuple[str, ...]]:
    known = [part.growth for part in parts if part.growth is not None]
    for part in (
        *parts,
        output.Part("all", sum(part.bytes for part in parts), sum(known) if known else None),
    ):
        yield (
            part.part,
            f"{part.bytes / 1e6:,.1f}",
            "" if part.growth is None else f"{part.growth / 1e6:+,.1f}",
        )


def _standstills(tables: list[output.Table], now: dt.datetime) -> Iterator[str]:
    """The accounts that are not read any more, first thing to be seen."""
    dated = sorted((table.newest, table.account) for table in tables if table.newest is not None)
    for account, moment in {account: moment for moment, account in dated if is_to_come(moment, now)}.items():
        yield (
            f"account {account}: what was read last is dated {moment:%Y-%m-%d %H:%M} UTC, which is still to "
            "come: a clock was ahead, or "
            "this machine's is behind. What is read from now on replaces it"
        )
    for account, moment in {
        account: moment for moment, account in dated if not is_to_come(moment, now)
    }.items():
        if words := standstill(moment, now):
            yield (
                f"account {account}: {words}. Is the schedule on (`marketing-sync ui`)? `marketing-sync "
                "sync` reads now"
            )


def _table_cells(table: output.Table, now: dt.datetime) -> tuple[str, ...]:
    parts = f"{table.parts - table.incomplete:,} of {table.parts:,} parts" if table.parts > 1 else "no"
    read = ago(table.newest, now) if table.newest else ""
    return (
        table.account,
        table.table,
        f"{table.rows:,}",
        read,
        due(table.due, now),
        parts if table.incomplete else "yes",
    )


def _contact_line(found: output.Contacts, now: dt.datetime) -> str:
    def share(count: int) -> str:
        return f"{100 * count / found.contacts:.1f} %"

    oldest = f", the oldest {ago(found.oldest, now)}" if found.oldest else ""
    cut = f", {found.cut:,} cut by the service" if found.cut else ""
    return (
        f"account {found.account}: {found.contacts:,} contacts, timelines of "
        f"{share(found.timelines)}{oldest}{cut}, "
        f"coupons of {share(found.coupons)}\n"
    )


def _change_cells(each: output.SchemaChange) -> tuple[str, ...]:
    cells = (each.account, each.table, each.change, each.field, each.before, each.after, each.sample)
    return f"{each.noticed_at:%Y-%m-%d %H:%M} UTC", *(escape(plain(cell or "")) for cell in cells)


def _run_cells(run: output.Run) -> tuple[str, ...]:
    took = f"{(run.ended_at - run.started_at).total_seconds():,.0f} s" if run.ended_at else "–"
    started = run.started_at.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return started, took, run.job, run.outcome or "runs", f"{run.request_count:,}", run.message or ""


# -- all shards


def _fleet(settings: Settings, now: dt.datetime, *, is_json: bool) -> int:
    storage = lake_storage(settings)
    by_shard = dict.fromkeys(settings.shards) | manifests(storage)
    found = [each for each in by_shard.values() if each]
    accounts = msgspec.convert(fleet(storage, found), list[output.FleetAccount]) if found else []
    document = output.Fleet(accounts, list(problems(by_shard, now)))
    if is_json:
        emit(document)
        return exits.DONE
    columns = "account, shard, data, >contacts, >new 7/30 d, >events, >requests 1/30 d, problems"
    Console(highlight=False).print(grid("accounts", columns, (_fleet_cells(each, now) for each in accounts)))
    print(*document.notices, sep="\n", end="\n" if document.notices else "")
    return exits.DONE


def _fleet_cells(each: output.FleetAccount, now: dt.datetime) -> tuple[str, ...]:
    new, spent = (
        f"{each.contacts_7_days:,}/{each.contacts_30_days:,}",
        f"{each.requests_last_night:,}/{each.requests_30_days:,}",
    )
    found = {
        "rejected": each.rejected_records,
        "incomplete": each.incomplete_parts,
        "failed runs": each.failed_runs_7_days,
    }
    wrong = ", ".join(f"{count:,} {what}" for what, count in found.items() if count)
    data = ago(each.data_as_of, now) if each.data_as_of else ""
    return (
        each.account,
        each.shard,
        data,
        f"{each.contacts:,}",
        new,
        f"{each.events:,}",
        spent,
        wrong or "none",
    )


@command(
    Option(
        "to",
        "write a DuckDB file of views over all shards, in place of an earlier one",
        str,
        Path,
        metavar="FILE",
    ),
    Option("sql", "print the statements that make these views, and nothing else"),
    is_for_all_shards=True,
)
def lake(arguments: Arguments, settings: Settings) -> int:
    """What it holds, by shard. Exit code 1 when something is the matter with it."""
    storage, now = lake_storage(settings), utc_now()
    by_shard = dict.fromkeys(settings.shards) | manifests(storage)
    found = [each for each in by_shard.values() if each]
    if not by_shard:
        print(
            f"{shown(storage.url)} is empty: `marketing-sync publish` exports to it, and so does every sync"
        )
        return exits.DONE
    if arguments.sql:
        print(*views(storage, found), sep=";\n", end=";\n")
        return exits.DONE
    columns = "shard, version, published, personal data, >tables, >rows, >MB"
    Console(highlight=False).print(
        grid(shown(storage.url), columns, (_lake_cells(each, now) for each in found))
    )
    wrong = list(problems(by_shard, now, storage.names("shards")))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if arguments.to:
        write_views(arguments.to, storage, found)
        extension = (
            "; where it is opened, `install httpfs` has to be run once"
            if "://" in storage.address("")
            else ""
        )
        print(f"{arguments.to}: views over {len(found)} shards as of now{extension}")
    return exits.INCOMPLETE if wrong else exits.DONE


def _lake_cells(each: Manifest, now: dt.datetime) -> tuple[str, ...]:
    counts = (
        f"{len(each.tables)}",
        f"{sum(one.rows for one in each.tables):,}",
        f"{sum(each.files.values()) / 1e6:,.1f}",
    )
    return (
        each.shard,
        each.version,
        ago(each.published.published_at, now),
        str(each.published.personal_data),
        *counts,
    )
