"""How a source asset looks in Dagster: one step, a Dagster asset per table, metadata and checks.

Not here: reading (`prefetch`), which assets exist (`sources`), jobs and resources (`pipelines`).
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg

from assets.days import FIRST_ZONE, DateRange, joined
from assets.planning.crawl_plan import PlanEntry
from assets.planning.order import Reason, in_words
from assets.prefetch import Prefetcher
from assets.result import AccountResult, share_read
from assets.sources import SourceAsset
from marketing_api.errors import Stopped
from warehouse.loads.coverage import FRESH_FOR
from warehouse.tables import Column, Table
from warehouse.warehouse import Warehouse

#: One more try, after so many seconds, for what a person would simply run again. The step itself requests it:
#: a retry policy would repeat permanent errors, too, and a step that was stopped.
_RETRIES, _RETRY_AFTER_S = 1, 30


#: The checks that every table gets, evaluated with the step that filled it: what each holds the table to, and
#: how bad it is otherwise.
_CHECKS = {
    "unique_keys": ("No two rows have the same key.", dg.AssetCheckSeverity.ERROR),
    "complete": (
        "Everything that was requested came, and no fewer rows than the service counts.",
        dg.AssetCheckSeverity.ERROR,
    ),
    "shrink": ("No listing was refused because it lost too many of its rows.", dg.AssetCheckSeverity.ERROR),
    "readable": ("No record was set aside.", dg.AssetCheckSeverity.WARN),
    "same_schema": (
        "The service's responses have the fields, types and words that they had before; what no column "
        "holds is kept in `extra`.",
        dg.AssetCheckSeverity.WARN,
    ),
}


#: What is said where people look for missing days.
_PARTITIONS = (
    "**Partitions** are for choosing the days that a run reads. *Missing* says only that no run names this "
    "day as one of its last: a run "
    "notes few of the days that it read. Which days are in the table is said by *days read so far*, in "
    "the metadata."
)


def asset_key(table: Table) -> dg.AssetKey:
    """`source/<table>`, the schema and name in the warehouse."""
    return dg.AssetKey(["source", table.name])


def daily_partitions(start: dt.date) -> dg.DailyPartitionsDefinition:
    """One partition per day that the data is about, up to today where the day begins first: every account's
    today is one."""
    return dg.DailyPartitionsDefinition(start_date=start.isoformat(), timezone=FIRST_ZONE, end_offset=1)


def dagster_asset(asset: SourceAsset, partitions: dg.DailyPartitionsDefinition) -> dg.AssetsDefinition:
    """The step that waits for the reader's result of `asset` and reports it, one materialization per
    table."""

    @dg.multi_asset(
        name=asset.name,
        specs=[_spec(asset, table) for table in asset.tables],
        check_specs=[
            dg.AssetCheckSpec(name, asset=asset_key(table), description=doc)
            for table in asset.tables
            for name, (doc, _) in _CHECKS.items()
        ],
        partitions_def=partitions if asset.is_daily else None,
        backfill_policy=dg.BackfillPolicy.single_run() if asset.is_daily else None,
        can_subset=len(asset.tables) > 1,
        required_resource_keys={"reader"},
        description=asset.function.__doc__,
    )
    def step(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        reader: Prefetcher = context.resources.reader.of(context)
        if context.retry_number:
            reader.again(asset)
        try:
            results = reader.result(asset)
        except Stopped as stopped:
            raise dg.Failure(str(stopped)) from None
        failure = _failure(results)
        if context.retry_number < _RETRIES and any(result.is_worth_a_retry for result in results):
            # before any output: the steps behind begin when they have what they need
            raise dg.RetryRequested(max_retries=_RETRIES, seconds_to_wait=_RETRY_AFTER_S) from failure
        with reader.warehouse.reading():
            materializations = [_materialization(reader, asset, table, results) for table in asset.tables]
        _log(context, asset, results)
        yield from _selected(context, materializations)
        if failure:
            raise failure

    return step


def _selected(
    context: dg.AssetExecutionContext, materializations: Iterable[dg.MaterializeResult[Any]]
) -> Iterator[dg.MaterializeResult[Any]]:
    """Those of the tables that were chosen. The others, which the same requests filled, are noted as such in
    the run's log."""
    checks = context.selected_asset_check_keys
    is_partitioned = context.has_partition_key or context.has_partition_key_range
    for made in materializations:
        assert made.asset_key is not None  # Dagster's type allows it
        key = dg.AssetKey.from_coercible(made.asset_key)
        if key in context.selected_asset_keys:
            wanted = [
                check
                for check in made.check_results or ()
                if dg.AssetCheckKey(key, str(check.check_name)) in checks
            ]
            yield made._replace(check_results=wanted)
        else:
            for day in context.partition_keys if is_partitioned else [None]:
                context.log_event(
                    dg.AssetMaterialization(key, "filled by the same requests", made.metadata, partition=day)
                )


def _spec(asset: SourceAsset, table: Table) -> dg.AssetSpec:
    return dg.AssetSpec(
        asset_key(table),
        deps=[asset_key(before) for upstream in asset.after for before in upstream.tables],
        description=_description(asset, table),
        group_name=f"source/{table.area}",
        kinds={"duckdb"},
        metadata={
            "dagster/column_schema": column_schema(table.columns),
            "dagster/table_name": f"source.{table.name}",
            "key": ", ".join(table.key) or "one row per account",
            "load": type(table.load).__name__.lower(),
        },
        freshness_policy=dg.FreshnessPolicy.time_window(fail_window=FRESH_FOR),
    )


def _description(asset: SourceAsset, table: Table) -> str:
    """In Markdown: what it is, and what somebody should know who materializes it."""
    others = ", ".join(other.qualified for other in asset.tables if other is not table)
    shared = f"The same requests fill {others}: whichever is materialized, all are." if others else ""
    return "\n\n".join(filter(None, [table.doc, shared, _PARTITIONS if asset.is_daily else ""]))


def column_schema(columns: Iterable[Column]) -> dg.TableSchema:
    return dg.TableSchema(
        [dg.TableColumn(column.name, column.sql_type, description=column.comment) for column in columns]
    )


def _materialization(
    reader: Prefetcher, asset: SourceAsset, table: Table, results: list[AccountResult]
) -> dg.MaterializeResult[Any]:
    counts = [
        report.tables[table.name]
        for result in results
        for report in result.reports
        if table.name in report.tables
    ]
    share = share_read(results)
    return dg.MaterializeResult(
        asset_key=asset_key(table),
        metadata={
            "dagster/row_count": reader.warehouse.row_count(table),
            "rows added": sum(count.new for count in counts),
            "rows changed": sum(count.changed for count in counts),
            "rows deleted": sum(count.deleted for count in counts),
            "records rejected": sum(count.rejected for count in counts),
            "requests planned": sum(result.planned for result in results),
            **_plan_metadata([result.plan for result in results if result.plan is not None]),
            "requests used": sum(result.spent.requests for result in results),
            "seconds waited": round(sum(result.spent.waited_s for result in results), 1),
            "coverage %": 100.0 if share is None else round(100 * share, 1),
            **(_days_metadata(reader, table, results) if asset.is_daily else {}),
            "preview": dg.MetadataValue.md(reader.warehouse.preview(table)),
        },
        check_results=list(_check_results(reader.warehouse, table, results)),
    )


def _plan_metadata(entries: list[PlanEntry]) -> dict[str, dg.MetadataValue]:
    """Why contacts were read, and how many of them were not: not due, or left out for the budget."""
    if not entries:
        return {}
    reasons = sum((Counter(entry.counts) for entry in entries), Counter[Reason]())
    return {
        "planned because": dg.MetadataValue.text(in_words(reasons)),
        "not due": dg.MetadataValue.int(sum(entry.not_due for entry in entries)),
        "left out for the budget": dg.MetadataValue.int(sum(entry.late + entry.waiting for entry in entries)),
    }


def _days_metadata(
    reader: Prefetcher, table: Table, results: list[AccountResult]
) -> dict[str, dg.MetadataValue]:
    """Partitions show the days that runs were started for; this shows which days were read."""
    lines = []
    for result in results:
        days = joined(
            DateRange(first, last) for first, last in reader.warehouse.covered_days(table, result.account)
        )
        lines.append(f"{result.account}: {', '.join(map(str, days)) or 'none'}")
    now = [f"{result.account}: {result.days_in_words or 'none'}" for result in results]
    return {
        "days read": dg.MetadataValue.text("; ".join(now)),
        "days read so far": dg.MetadataValue.text("; ".join(lines)),
    }


def _check_results(
    warehouse: Warehouse, table: Table, results: list[AccountResult]
) -> Iterator[dg.AssetCheckResult]:
    duplicates, rejected = warehouse.duplicate_keys(table), warehouse.rejected_count(table)
    missing = [
        f"{result.account}: {problem}" for result in results for problem in result.problems
    ] + warehouse.incomplete(table)
    reports = [report for result in results for report in result.reports if table.name in report.tables]
    shrunk = [reason for report in reports for reason in report.tables[table.name].refused]
    drift = [line for report in reports for line in report.tables[table.name].drift]
    verdicts = {
        "unique_keys": (not duplicates, f"{duplicates} keys occur more than once"),
        "complete": (not missing, "; ".join(missing) or "all that was requested came"),
        "shrink": (not shrunk, "; ".join(shrunk) or "no listing lost too many rows"),
        "readable": (not rejected, f"{rejected} records in sync.rejected_records"),
        "same_schema": (not drift, "; ".join(drift) or "the same as before"),
    }
    for name, (passed, text) in verdicts.items():
        severity = _CHECKS[name][1]
        yield dg.AssetCheckResult(
            asset_key=asset_key(table), check_name=name, passed=passed, severity=severity, description=text
        )


def _log(context: dg.AssetExecutionContext, asset: SourceAsset, results: list[AccountResult]) -> None:
    for result in results:
        spent = result.spent
        each = f", {spent.waited_s / spent.requests:.1f} s of waiting each" if spent.requests else ""
        planned = (
            result.plan.words
            if result.plan
            else f"{result.fetched:,} of {result.planned:,} requests with a response"
        )
        context.log.info(f"account {result.account}: {planned}; requests used: {spent.requests:,}{each}")
        for line in result.learnt:
            context.log.info(f"account {result.account}: {line}")
        if result.problems and not result.is_failure:
            context.log.warning(f"{asset.name}, account {result.account}: {'; '.join(result.problems)}")


def _failure(results: list[AccountResult]) -> dg.Failure | None:
    """Naming account and reason; None when no account failed."""
    failed = {result.account: result.problems for result in results if result.is_failure}
    if not failed:
        return None
    return dg.Failure(
        "; ".join(f"account {account}: {', '.join(problems)}" for account, problems in failed.items()),
        metadata={account: "\n".join(problems) for account, problems in failed.items()},
    )
