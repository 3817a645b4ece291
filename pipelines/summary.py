"""The summary at the end of a sync."""

from __future__ import annotations

import datetime as dt
import json
import math
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as Grid

from assets import SOURCE_ASSETS
from assets.prefetch import Prefetcher
from assets.result import AccountResult, share_read
from marketing_api.exchange import Outcome
from marketing_api.redaction import plain
from pipelines.publishing import is_published_since, what_is_published
from pipelines.settings import Settings
from warehouse.models import BuildReport, Status
from warehouse.publish import published_path

if TYPE_CHECKING:
    from pipelines.report.mail import Reports
    from pipelines.write_back.nightly_audience_syncs import AudienceSyncs  # brings Dagster, which takes seconds to import

_FIRST_QUERY = """\
select c.subject, s.opened_count, s.opened_percent
from source.campaign_stats s join source.campaigns c using (account, campaign_id)
order by s.observed_on desc, s.opened_count desc limit 5"""


def print_summary(
    reader: Prefetcher, settings: Settings, models: BuildReport | None, reports: Reports, console: Console | None = None
) -> None:
    """Tables, requests, what could not be read, the models, where the file is, and a query to start with."""
    console = console or Console(highlight=False, soft_wrap=True)
    with reader.warehouse.reading():
        console.print(_tables(reader))
    console.print(_requests(reader))
    for line in days_read(reader.results):
        console.print(line)
    for (asset, account), result in reader.results.items():
        if result.plan is not None:
            console.print(f"account {account}, {asset}: {result.plan.words}")
    for result in reader.results.values():
        for line in result.learnt:
            console.print(f"account {result.account}: {line}")
    _print_problems(reader, console)
    for line in reader.notices():
        console.print(f"note: {line}", markup=False)
    file = settings.warehouse_path
    if models is not None:
        _print_models(models, console)
        what = what_is_published(settings, reader.now())
        if is_published_since(settings, reader.began_by_files):
            file = published_path(settings.home)
            console.print(f"published: {what}\nreport     {settings.home / 'report' / 'index.html'}", markup=False)
        else:
            console.print(f"not published; analysts still have: {what}", markup=False)
        if reports.mailed:
            console.print(f"{'warning: ' if reports.is_lost else ''}{reports.mailed}", markup=False)
    console.print(f"\nwarehouse  {settings.warehouse_path}")
    # `make sync` leaves the program in `.venv/bin`, where no shell looks for it.
    program = "marketing-sync" if shutil.which("marketing-sync") else shlex.quote(sys.argv[0])
    console.print(f"status     {program} status\nquery      {first_query(file)}", markup=False)


def first_query(file: Path) -> str:
    """What to type into a shell to start with, with DuckDB's own command line or without; later lines are indented as the summary is."""
    if shutil.which("duckdb"):
        typed = f'duckdb -readonly {shlex.quote(str(file))} "{_FIRST_QUERY}"'
    else:
        code = f'import duckdb; duckdb.connect({json.dumps(str(file))}, read_only=True).sql("""{_FIRST_QUERY}""").show()'
        typed = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    return typed.replace("\n", "\n           ")


def _tables(reader: Prefetcher) -> Grid:
    grid = Grid(box=None, header_style="bold", pad_edge=False)
    for column in ("table", "rows", "new", "changed", "deleted", "rejected", "read"):
        grid.add_column(column, justify="left" if column == "table" else "right")
    for asset in SOURCE_ASSETS.values():
        results = [result for (name, _), result in reader.results.items() if name == asset.name]
        if not results:
            continue
        read = share_read(results)
        share = "–" if read is None else f"{math.floor(100 * read)} %"
        for table in asset.tables:
            counts = [report.tables[table.name] for result in results for report in result.reports if table.name in report.tables]
            cells = [sum(getattr(count, name) for count in counts) for name in ("new", "changed", "deleted", "rejected")]
            grid.add_row(table.name, f"{reader.warehouse.row_count(table):,}", *(f"{cell:,}" if cell else "·" for cell in cells), share)
    return grid


def days_read(results: Mapping[tuple[str, str], AccountResult]) -> Iterator[str]:
    """Which days the date-ranged tables were read for, a line for those with the same; by account where these differ."""
    tables: dict[str, list[str]] = {}
    for asset in SOURCE_ASSETS.values():
        by_account = {account: result.days_in_words for (name, account), result in results.items() if name == asset.name}
        different = set(by_account.values())
        if different - {""}:
            by_name = "; ".join(f"account {name}: {days or 'none'}" for name, days in by_account.items())
            words = different.pop() if len(different) == 1 else by_name
            tables.setdefault(words, []).extend(table.name for table in asset.tables)
    yield from (f"days read of {', '.join(names)}: {words}" for words, names in tables.items())


def _requests(reader: Prefetcher) -> str:
    lines = []
    for session in reader.sessions:
        statistics = session.client.statistics
        outcomes = statistics.outcomes
        seconds = max((reader.ended_at - reader.began_at).total_seconds(), 0.001)
        bad = {outcome: outcomes[outcome] for outcome in Outcome if outcome is not Outcome.OK and outcomes[outcome]}
        lines.append(
            f"\naccount {session.account}: {statistics.requests:,} requests in {dt.timedelta(seconds=round(seconds))} "
            f"({statistics.requests / seconds:.1f}/s, limit {session.limiter.limit:,.15g}/s), "
            f"waited {statistics.waited_s / max(statistics.requests, 1):.2f} s each"
            + ("; " + ", ".join(f"{count} {outcome.value.replace('_', ' ')}" for outcome, count in bad.items()) if bad else "")
        )
    return "".join(lines).lstrip("\n")


def _print_models(report: BuildReport, console: Console) -> None:
    built = [outcome for outcome in report.of(Status.OK) if not outcome.is_test]
    unchanged = report.of(Status.UNCHANGED)
    tests = [outcome for outcome in report.outcomes if outcome.is_test and outcome not in unchanged]
    rest = f"; {len(unchanged)} not run again: nothing they read changed" if unchanged else ""
    console.print(f"models: {len(built)} built, {len(tests)} tests{rest}")
    for warning in report.warnings:
        console.print(f"  warning: {plain(warning)}", markup=False)
    if report.problem:
        console.print("\n[bold]models[/bold]")
        console.print(f"  {plain(report.problem)}", markup=False)


def print_activations(activations: AudienceSyncs) -> None:
    """What went back to the service, a line each; nothing where none was run."""
    if activations.outcomes:
        print("\nactivations")
        for outcome in activations.outcomes:
            print(f"  {plain(outcome.line)}")


def _print_problems(reader: Prefetcher, console: Console) -> None:
    problems = reader.problems()
    if not problems:
        console.print("everything requested was read")
        return
    console.print("\n[bold]not read[/bold]")
    for line in problem_lines(problems):
        console.print(f"  {plain(line)}", markup=False)


def problem_lines(problems: Mapping[tuple[str, str], Iterable[str]]) -> Iterator[str]:
    """Reasons by (asset, account) → a line per account and reason: an account that cannot be reached has one for all assets."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for (asset, account), reasons in problems.items():
        for reason in reasons:
            by_reason.setdefault((account, reason), []).append(asset)
    for (account, reason), names in by_reason.items():
        yield f"{', '.join(names)}, account {account}: {reason}"
