"""Show how fresh and complete the data is, the last runs and rejected records."""

import datetime as dt
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from home import exits, output
from home.folder import list_running, open_for_reading, unfinished_erasure
from home.freshness import describe_standstill, format_age, format_due
from home.identity import Owner, identity_of
from home.options import JSON
from home.output import Status, print_json
from home.settings import Settings
from home.versions import check_not_newer
from marketing_api.clock import utc_now
from marketing_api.redaction import plain
from marketing_sync.commands import declare_command
from marketing_sync.grids import make_grid, open_console
from pipelines.published_copy import describe_current_copy, published_document
from warehouse.bookkeeping import died_condition
from warehouse.disk import measure_sizes
from warehouse.sql import fetch_records, load_statements, quote_text
from warehouse.tables import TABLES

#: Field of `Status` → the query of its rows.
_QUERIES = load_statements(Path(__file__).with_suffix(".sql"))
_COUNT = (
    "select account, {name} as table_name, count(*) as rows from {table} where {live} group by "
    "account"
)


@declare_command(JSON, needs_keys=False)
def status(settings: Settings, json: bool) -> int:
    now = utc_now()
    check_not_newer(settings.home)
    if not settings.warehouse_path.exists():
        notice = (
            f"nothing has been synced yet: there is no {settings.warehouse_path}; run "
            "`marketing-sync sync`"
        )
        if json:
            print_json(Status(accounts=list(_list_accounts(settings, {})), notices=[notice]))
        else:
            print(notice)
        return exits.DONE
    with open_for_reading(settings) as connection:
        queries = {
            **_QUERIES,
            "tables": _QUERIES["tables"].format(counted=_count_query()),
            "runs": _QUERIES["runs"].format(died=died_condition(list_running(settings.home))),
        }
        rows = {name: fetch_records(connection, sql) for name, sql in queries.items()}
    read = {row.pop("account"): _Reading(**row) for row in rows.pop("accounts")}
    found = msgspec.convert(rows, Status)
    found.accounts = list(_list_accounts(settings, read))
    found.home = _measure_parts(settings.home)
    found.holds = plain(str(identity_of(settings.home)))
    if not found.tables:
        found.notices.append("nothing was read yet; run `marketing-sync sync`")
    configured = {connection.account for connection in settings.accounts}
    watched = [one for one in found.accounts if not configured or one.account in configured]
    found.notices += _list_standstills(watched, now, settings.alert_after)
    erasure = unfinished_erasure(settings.home)
    if erasure:
        found.notices.append(erasure)
    if json:
        found.published = published_document(settings)
        print_json(found)
    else:
        _print_status(found, settings, now)
    return exits.DONE


class _Reading(NamedTuple):
    """What the query has about an account."""

    read_at: dt.datetime | None = None
    incomplete: int = 0


def _list_accounts(settings: Settings, read: Mapping[str, _Reading]) -> Iterator[output.Account]:
    """The configured accounts and the home's other ones. `read`: by account."""
    known = identity_of(settings.home).accounts
    addresses = {connection.account: connection.url for connection in settings.accounts}
    for name in dict.fromkeys([*addresses, *known]):
        owner = known.get(name, Owner())
        address = plain(addresses.get(name) or owner.address or "")
        business = plain(owner.business_name or "")
        yield output.Account(name, address, business, *read.get(name, _Reading()))


def _count_query() -> str:
    """The query for the row count of every table; loads overlap, so their counts can't be added."""
    return " union all ".join(
        _COUNT.format(name=quote_text(table.name), table=table.qualified, live=table.is_there)
        for table in TABLES.values()
    )


def _measure_parts(home: Path) -> list[output.Part]:
    """The sizes of the home's parts, the largest first."""
    parts = [output.Part(part, size) for part, size in measure_sizes(home).items() if size]
    return sorted(parts, key=lambda part: -part.bytes)


def _print_status(found: Status, settings: Settings, now: dt.datetime) -> None:
    console = open_console()

    def print_line(line: str, style: str = "") -> None:
        console.print(line, style=style, soft_wrap=True)

    for line in found.notices:
        print_line(f"{line}\n", "bold red")
    if len(found.accounts) > 1:
        columns = "account, address, business, read, >incomplete"
        cells = (_account_cells(account, now) for account in found.accounts)
        console.print(make_grid("accounts", columns, cells))
    columns = "account, table, >rows, read, due at the latest, complete"
    cells = (_table_cells(table, now) for table in found.tables)
    console.print(make_grid("tables", columns, cells))
    for contacts in found.contacts:
        print_line(_contact_line(contacts, now))
    for plan in found.plans:
        print_line(
            f"account {plan.account}, {plan.question}: last plan {plan.planned:,} requests "
            f"({plan.why}); {plan.asked:,} read, {plan.changed:,} of them changed"
        )
    columns = "started, took, job, outcome, >requests, not read"
    console.print(make_grid("last runs", columns, map(_run_cells, found.runs)))
    if found.rejected:
        columns = "account, table, >records, reason"
        console.print(make_grid("rejected records", columns, map(_rejected_cells, found.rejected)))
    else:
        print_line("no rejected records")
    if found.schema_changes:
        columns = "noticed, account, table, change, field, before, after, like"
        console.print(
            make_grid("schema changes", columns, map(_change_cells, found.schema_changes))
        )
    console.print(make_grid("home", "part, >MB", _home_cells(found.home)))
    print_line(f"published: {describe_current_copy(settings, now)}")
    print_line(f"holds: {found.holds}")


def _account_cells(found: output.Account, now: dt.datetime) -> tuple[str, ...]:
    read = format_age(found.read_at, now) if found.read_at else "never"
    return found.account, found.url, found.business, read, f"{found.incomplete:,}"


def _home_cells(parts: list[output.Part]) -> Iterator[tuple[str, ...]]:
    for part in (*parts, output.Part("all", sum(part.bytes for part in parts))):
        yield part.part, f"{part.bytes / 1e6:,.1f}"


def _list_standstills(
    accounts: list[output.Account], now: dt.datetime, within: dt.timedelta
) -> Iterator[str]:
    """A notice per account that isn't read any more."""
    for account in accounts:
        standstill = describe_standstill(account.read_at, now, within)
        if standstill:
            yield (
                f"account {account.account}: {standstill}. Is the schedule on (`marketing-sync "
                "ui`)? `marketing-sync sync` reads now"
            )


def _table_cells(table: output.Table, now: dt.datetime) -> tuple[str, ...]:
    whole = "yes"
    if table.incomplete:
        parts = f"{table.parts - table.incomplete:,} of {table.parts:,} parts"
        whole = parts if table.parts > 1 else "no"
    read = format_age(table.newest, now) if table.newest else ""
    return table.account, table.table, f"{table.rows:,}", read, format_due(table.due, now), whole


def _contact_line(found: output.Contacts, now: dt.datetime) -> str:
    def format_share(count: int) -> str:
        return f"{100 * count / found.contacts:.1f} %"

    oldest = f", the oldest {format_age(found.oldest, now)}" if found.oldest else ""
    cut = f", {found.cut:,} cut by the service" if found.cut else ""
    return (
        f"account {found.account}: {found.contacts:,} contacts, timelines of "
        f"{format_share(found.timelines)}{oldest}{cut}, "
        f"coupons of {format_share(found.coupons)}\n"
    )


def _rejected_cells(rejected: output.Rejected) -> tuple[str, ...]:
    return rejected.account, rejected.table, f"{rejected.records:,}", rejected.reason


def _change_cells(change: output.SchemaChange) -> tuple[str, ...]:
    cells = (
        change.account,
        change.table,
        change.change,
        change.field,
        change.before,
        change.after,
        change.sample,
    )
    return f"{change.noticed_at:%Y-%m-%d %H:%M} UTC", *(plain(cell or "") for cell in cells)


def _run_cells(run: output.Run) -> tuple[str, ...]:
    took = f"{(run.ended_at - run.started_at).total_seconds():,.0f} s" if run.ended_at else "–"
    started = run.started_at.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        started,
        took,
        run.job,
        run.outcome or "runs",
        f"{run.request_count:,}",
        run.message or "",
    )
