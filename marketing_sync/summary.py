"""The outcome of a sync as a value (`output.SyncResult`), and the summary that it prints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from assets.reader import Reader
from assets.result import AccountResult, done_to, group_lines, share_read
from assets.sources import SOURCE_ASSETS
from home.door import report_of
from home.output import Built, SyncAccount, SyncResult, SyncTable
from home.progress import format_clock
from home.settings import Settings
from marketing_api.exchange import Outcome
from marketing_api.redaction import plain
from marketing_sync.grids import make_grid
from marketing_sync.texts import text_template
from pipelines.published_copy import describe_current_copy, list_failed_custom_tables
from warehouse.models import BuildReport, Status

if TYPE_CHECKING:
    from pipelines.definitions import LaterSteps  # brings Dagster, which takes seconds to import

_COUNTS = ("new", "changed", "deleted", "rejected")


def summarize_sync(
    reader: Reader, settings: Settings, later_steps: LaterSteps, failed: Mapping[str, str]
) -> SyncResult:
    """What was read, built, published and sent back. `failed`: the reasons of later steps that
    failed, by step."""
    with reader.warehouse.open_for_reading():
        tables = list(_summarize_tables(reader))
    report = later_steps.models.report
    reports = later_steps.reports
    is_published = later_steps.publishing.published is not None
    days = {
        key: [f"days read: {result.days_in_words}"]
        for key, result in reader.results.items()
        if result.days_in_words
    }
    mail = f"{'warning: ' if reports.is_lost else ''}{reports.mailed}"
    return SyncResult(
        seconds=max((reader.ended_at - reader.began_at).total_seconds(), 0.001),
        accounts=list(_summarize_accounts(reader)),
        tables=tables,
        read=[*_describe_needed(reader), *group_lines(days), *_describe_plans(reader.results)],
        not_read=reader.list_missing_lines(),
        schema_changes=list(_schema_changes(reader)),
        notices=reader.list_notices(),
        models=_summarize_models(report) if report else None,
        is_published=is_published,
        published=describe_current_copy(settings, reader.now()),
        mail=mail,
        activations=later_steps.activations.lines,
        problems=[
            *(f"{step}: {reason}" for step, reason in failed.items()),
            *(list_failed_custom_tables(settings) if is_published else ()),
        ],
    )


def print_summary(result: SyncResult, settings: Settings) -> None:
    """Print tables, requests, what could not be read, the models, and where the files are."""
    console = Console(highlight=False, soft_wrap=True)
    columns = "table, >rows, >new, >changed, >deleted, >rejected, >read"
    names = [account.account for account in result.accounts]
    few = ", ".join(names) if len(names) < 5 else f"{len(names)} accounts"
    console.print(f"read from {few if settings.accounts else 'the sandbox'}")
    console.print(make_grid("", columns, map(_table_cells, result.tables)))
    places = {"report": report_of(settings.home), "warehouse": settings.warehouse_path}
    template = text_template(__file__, _escape_value, clock=format_clock)
    console.print(
        template.render(result=result, places=places, is_sandbox=not settings.accounts),
        end="",
        emoji=False,
    )


def _escape_value(value: Any) -> str:
    """Values are displayed unchanged: rich's markup in them is escaped."""
    return escape(plain(value))


def _summarize_models(report: BuildReport) -> Built:
    succeeded = report.with_status(Status.OK)
    test_count = sum(outcome.node.is_test for outcome in succeeded)
    return Built(
        len(succeeded) - test_count,
        test_count,
        len(report.with_status(Status.UNCHANGED)),
        report.warnings,
        [report.failure_summary] if report.failure_summary else [],
    )


def _summarize_accounts(reader: Reader) -> Iterator[SyncAccount]:
    for session in reader.sessions:
        spent = session.client.statistics
        limit = session.limiter.limit
        failures = {
            outcome.value: spent.outcomes[outcome]
            for outcome in Outcome
            if outcome is not Outcome.OK and spent.outcomes[outcome]
        }
        yield SyncAccount(session.account, spent.requests, spent.waited_s, limit, failures)


def _summarize_tables(reader: Reader) -> Iterator[SyncTable]:
    for asset in SOURCE_ASSETS.values():
        results = [result for (name, _), result in reader.results.items() if name == asset.name]
        for table in asset.tables if results else ():
            rows = reader.warehouse.row_count(table)
            done = done_to(table, results)
            counts = {name: getattr(done, name) for name in _COUNTS}
            yield SyncTable(table.name, rows, **counts, share_read=share_read(results))


def _table_cells(table: SyncTable) -> tuple[str, ...]:
    read = "–" if table.share_read is None else f"{math.floor(100 * table.share_read)} %"
    counts = [getattr(table, name) for name in _COUNTS]
    return (
        table.table,
        f"{table.rows:,}",
        *(f"{count:,}" if count else "·" for count in counts),
        read,
    )


def _describe_needed(reader: Reader) -> Iterator[str]:
    names = ", ".join(asset.name for asset in reader.needed)
    if names:
        yield f"unread prerequisites, read first: {names}"


def _describe_plans(results: Mapping[tuple[str, str], AccountResult]) -> Iterator[str]:
    for (asset, account), result in results.items():
        if result.plan:
            yield f"account {account}, {asset}: {result.plan.summary}"
    for result in results.values():
        yield from (f"account {result.account}: {line}" for line in result.learnt)


def _schema_changes(reader: Reader) -> Iterator[str]:
    """How the service's responses differ from earlier ones."""
    for result in reader.results.values():
        for loaded in result.reports:
            for report in loaded.tables.values():
                yield from report.drift
