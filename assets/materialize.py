"""How a source asset looks in Dagster: one step, a Dagster asset per table, metadata and checks.

Belongs here: the factory that turns a `SourceAsset` into Dagster's terms. Not here: reading (`reader`), which assets exist
(`AREA.py`), jobs and resources (`pipelines`).
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from typing import Any

import dagster as dg

from assets.days import FIRST_ZONE, DateRange, joined
from assets.extract import SourceAsset
from assets.planning.crawl_plan import PlanEntry
from assets.planning.order import Reason, in_words
from assets.prefetch import Prefetcher
from assets.result import AccountResult, share_read
from assets.table_checks import check_results, check_specs
from marketing_api.errors import Stopped
from warehouse.loads.coverage import FRESH_FOR
from warehouse.tables import Table

#: One more try, after so many seconds, for what a person would simply run again. Asked for by the step itself: a retry policy
#: would repeat permanent errors, too, and a step that somebody has stopped.
_RETRIES, _RETRY_AFTER_S = 1, 30


def asset_key(table: Table) -> dg.AssetKey:
    """`source/<table>`, the schema and name in the warehouse."""
    return dg.AssetKey(["source", table.name])


def daily_partitions(start: dt.date) -> dg.DailyPartitionsDefinition:
    """One partition per day that the data is about, up to today where the day begins first: every account's today is one."""
    return dg.DailyPartitionsDefinition(start_date=start.isoformat(), timezone=FIRST_ZONE, end_offset=1)


def dagster_asset(asset: SourceAsset, partitions: dg.DailyPartitionsDefinition) -> dg.AssetsDefinition:
    """The step that waits for the reader's result of `asset` and reports it, one materialization per table."""

    @dg.multi_asset(
        name=asset.name,
        specs=[_spec(asset, table) for table in asset.tables],
        check_specs=[spec for table in asset.tables for spec in check_specs(asset_key(table))],
        partitions_def=partitions if asset.is_daily else None,
        backfill_policy=dg.BackfillPolicy.single_run() if asset.is_daily else None,
        required_resource_keys={"reader"},
        description=asset.doc,
    )
    def step(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        reader: Prefetcher = context.resources.reader.of(context)
        if context.retry_number:
            reader.again(asset)
        try:
            results = reader.result(asset)
        except Stopped as stopped:
            raise dg.Failure(str(stopped)) from None
        with reader.warehouse.reading():
            materializations = [_materialization(reader, asset, table, results) for table in asset.tables]
        _log(context, results)
        yield from materializations
        _raise_on_failure(context, reader, asset, results)

    return step


def _spec(asset: SourceAsset, table: Table) -> dg.AssetSpec:
    return dg.AssetSpec(
        asset_key(table),
        deps=[asset_key(before) for upstream in asset.after for before in upstream.tables],
        description=table.doc,
        group_name=f"source/{table.area}",
        kinds={"duckdb"},
        metadata={
            "dagster/column_schema": _column_schema(table),
            "dagster/table_name": f"source.{table.name}",
            "key": ", ".join(table.key) or "one row per account",
            "load": type(table.load).__name__.lower(),
        },
        freshness_policy=dg.FreshnessPolicy.time_window(fail_window=FRESH_FOR),
    )


def _column_schema(table: Table) -> dg.TableSchema:
    return dg.TableSchema([dg.TableColumn(column.name, column.sql_type, description=column.comment) for column in table.columns])


def _log(context: dg.AssetExecutionContext, results: list[AccountResult]) -> None:
    """What was planned and used, in words."""
    for result in results:
        spent = result.spent
        each = f", {spent.waited_s / spent.requests:.1f} s of waiting each" if spent.requests else ""
        planned = result.plan.words if result.plan else f"{result.fetched:,} of {result.planned:,} requests answered"
        context.log.info(f"account {result.account}: {planned}; requests used: {spent.requests:,}{each}")


def _materialization(reader: Prefetcher, asset: SourceAsset, table: Table, results: list[AccountResult]) -> dg.MaterializeResult[Any]:
    counts = [report.tables[table.name] for result in results for report in result.reports if table.name in report.tables]
    share = share_read(results)
    lines = [result.plan for result in results if result.plan is not None]
    return dg.MaterializeResult(
        asset_key=asset_key(table),
        metadata={
            "dagster/row_count": reader.warehouse.row_count(table),
            "rows added": sum(count.new for count in counts),
            "rows changed": sum(count.changed for count in counts),
            "rows deleted": sum(count.deleted for count in counts),
            "records rejected": sum(count.rejected for count in counts),
            "requests planned": sum(result.planned for result in results),
            **_plan_metadata(lines),
            "requests used": sum(result.spent.requests for result in results),
            "seconds waited": round(sum(result.spent.waited_s for result in results), 1),
            "coverage %": 100.0 if share is None else round(100 * share, 1),
            **(_days_metadata(reader, table, results) if asset.is_daily else {}),
            "preview": dg.MetadataValue.md(reader.warehouse.preview(table)),
        },
        check_results=list(check_results(asset_key(table), reader.warehouse, table, results)),
    )


def _plan_metadata(lines: list[PlanEntry]) -> dict[str, dg.MetadataValue]:
    """Why contacts were read, and how many of them were not: not due, or left out for the budget."""
    if not lines:
        return {}
    reasons = sum((Counter(line.counts) for line in lines), Counter[Reason]())
    return {
        "planned because": dg.MetadataValue.text(in_words(reasons)),
        "not due": dg.MetadataValue.int(sum(line.not_due for line in lines)),
        "left out for the budget": dg.MetadataValue.int(sum(line.late + line.waiting for line in lines)),
    }


def _days_metadata(reader: Prefetcher, table: Table, results: list[AccountResult]) -> dict[str, dg.MetadataValue]:
    """Partitions show the days that runs were started for; which days were read is said here."""
    lines = []
    for result in results:
        days = joined(DateRange(first, last) for first, last in reader.warehouse.covered_days(table, result.account))
        lines.append(f"{result.account}: {', '.join(map(str, days)) or 'none'}")
    now = [f"{result.account}: {result.days_in_words or 'none'}" for result in results]
    return {"days read": dg.MetadataValue.text("; ".join(now)), "days read so far": dg.MetadataValue.text("; ".join(lines))}


def _raise_on_failure(context: dg.AssetExecutionContext, reader: Prefetcher, asset: SourceAsset, results: list[AccountResult]) -> None:
    """Fail the step, after everything that could be had is loaded, naming account and reason.

    Dagster skips the steps behind a failed one although their data does not depend on all of this one's, so this waits
    until the reader is through: what could be read of them is in the warehouse, and a retry asks only what is missing.
    """
    failed = {result.account: result.problems for result in results if result.is_failure}
    for result in results:
        for line in result.learnt:
            context.log.info(f"account {result.account}: {line}")
        if result.problems and not result.is_failure:
            context.log.warning(f"{asset.name}, account {result.account}: {'; '.join(result.problems)}")
    if not failed:
        return
    failure = dg.Failure(
        description="; ".join(f"account {account}: {', '.join(problems)}" for account, problems in failed.items()),
        metadata={account: "\n".join(problems) for account, problems in failed.items()},
    )
    if context.retry_number < _RETRIES and any(result.is_worth_a_retry for result in results):
        raise dg.RetryRequested(max_retries=_RETRIES, seconds_to_wait=_RETRY_AFTER_S) from failure
    reader.finish()
    raise failure
