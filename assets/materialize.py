"""How reading looks in Dagster: one step with an asset per table, with metadata and checks.

Not here: reading (`reader`), which assets exist (`sources`), jobs and resources (`pipelines`).
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from typing import Any

import dagster as dg

from assets.days import FIRST_ZONE, DateRange, join_ranges
from assets.planning.crawl_plan import PlanEntry
from assets.planning.order import Reason, in_words
from assets.reader import Reader
from assets.result import AccountResult, done_to, share_read
from assets.sources import SOURCE_ASSETS, SourceAsset
from marketing_api.errors import Stopped
from warehouse.loads.load import TableReport
from warehouse.tables import READINGS, Column, Table
from warehouse.warehouse import Warehouse

#: The step's name in Dagster's runs.
READ_STEP = "read"

#: Tag of runs whose outputs are not materializations for Dagster: their steps log a materialization
#: for each table that changed.
DEFERRED = {"dagster/defer_asset_events": "true"}

#: Dagster's data version for an asset without one: here, for all assets.
ONE_VERSION = "INITIAL"

#: The asset that shows in Dagster how fresh all tables are, since unchanged tables are not
#: materialized again.
READINGS_KEY = dg.AssetKey(["sync", READINGS.name])

#: The checks of every table, evaluated with the step that fills it: what each demands, and how bad
#: a violation is.
_CHECKS = {
    "unique_keys": ("No two rows have the same key.", dg.AssetCheckSeverity.ERROR),
    "complete": (
        "Everything that was requested came, and no fewer rows than the service counts.",
        dg.AssetCheckSeverity.ERROR,
    ),
    "shrink": (
        "No listing was refused because it lost too many of its rows.",
        dg.AssetCheckSeverity.ERROR,
    ),
    "readable": ("No record was set aside.", dg.AssetCheckSeverity.WARN),
    "same_schema": (
        "The service's responses have the same fields, types and words as before. Fields without a "
        "column are in `extra`.",
        dg.AssetCheckSeverity.WARN,
    ),
}


#: The explanation of partitions in a table's description.
_PARTITIONS = (
    "**Partitions** are days. A day is *materialized* once it was read for every account, in any "
    "run. A run of chosen partitions reads exactly these days."
)


def asset_key(table: Table) -> dg.AssetKey:
    """`source/<table>`, the schema and name in the warehouse."""
    return dg.AssetKey(["source", table.name])


def daily_partitions(start: dt.date) -> dg.DailyPartitionsDefinition:
    """One partition per day that the data is about, up to today in the zone where a day begins
    first, so that every account's today has one."""
    return dg.DailyPartitionsDefinition(
        start_date=start.isoformat(), timezone=FIRST_ZONE, end_offset=1
    )


def read_step(partitions: dg.DailyPartitionsDefinition) -> dg.AssetsDefinition:
    """The step that lets the reader read, and reports each table as soon as it is loaded."""
    specs = []
    check_specs = []
    for asset in SOURCE_ASSETS.values():
        for table in asset.tables:
            key = asset_key(table)
            specs.append(_table_spec(asset, table, partitions))
            for name, (doc, _) in _CHECKS.items():
                check_specs.append(dg.AssetCheckSpec(name, asset=key, description=doc))

    @dg.multi_asset(
        name=READ_STEP,
        specs=specs,
        check_specs=check_specs,
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
        required_resource_keys={"reader", "settings"},
        description=(
            "Reads the chosen tables of all accounts in parallel, within each account's rate limit."
        ),
    )
    def step(
        context: dg.AssetExecutionContext,
    ) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]:
        yield from _report_loaded(context, partitions)

    return step


def _report_loaded(
    context: dg.AssetExecutionContext, partitions: dg.DailyPartitionsDefinition
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]:
    """The tables of each asset as it is loaded, with their checks. The step fails in the end if an
    asset could not be read."""
    run = context.resources.reader
    reader: Reader = run.reader_of(context)
    failed: dict[str, str] = {}
    try:
        for asset in reader.as_loaded():
            results = reader.results_of(asset)
            _log_results(context, asset, results)
            reason = _describe_failure(results)
            if reason:
                failed[asset.name] = reason
            settled = run.find_settled(context)
            if asset.is_daily:
                days = _read_by_all(reader, asset, partitions)
                # a new day is an event without checks, so the table is reported after it
                if run.note_days(context.instance, asset.tables, days):
                    settled -= set(map(asset_key, asset.tables))
            made = _materialize_tables(reader, asset, results, settled)
            yield from _select_tables(context, made)
    except Stopped as stopped:
        raise dg.Failure(str(stopped)) from None
    if failed:
        raise dg.Failure("\n".join(reader.list_missing_lines(failed)), metadata=failed)
    if len(reader.chosen) == len(SOURCE_ASSETS):
        context.log_event(dg.AssetMaterialization(READINGS_KEY, "every table was read"))


def chosen_assets(context: dg.AssetExecutionContext) -> list[SourceAsset]:
    """The assets that fill a table which the step must materialize or check."""
    checked_keys = {check.asset_key for check in context.selected_asset_check_keys}
    keys = context.selected_asset_keys | checked_keys
    assets = SOURCE_ASSETS.values()
    return [asset for asset in assets if not keys.isdisjoint(map(asset_key, asset.tables))]


def failures_of(instance: dg.DagsterInstance, run_id: str) -> dict[str, str]:
    """Why a run failed, see `failures_in`."""
    logged = instance.all_logs(run_id, of_type={dg.DagsterEventType.STEP_FAILURE})
    return failures_in(entry.get_dagster_event() for entry in logged)


def failures_behind(instance: dg.DagsterInstance, run_id: str) -> dict[str, str]:
    """The same for the steps after the one that reads, whose assets have their own results."""
    failures = failures_of(instance, run_id).items()
    own = {READ_STEP, *SOURCE_ASSETS}
    return {name: reason for name, reason in failures if name not in own}


def failures_in(events: Iterable[dg.DagsterEvent]) -> dict[str, str]:
    """Reasons of failed steps: by step, and for the step that reads, by asset."""
    failed = dict[str, str]()
    for event in events:
        step = event.step_key or "run"
        error = event.step_failure_data.error
        data = event.step_failure_data.user_failure_data
        if data and data.metadata and step == READ_STEP:
            for name, reason in data.metadata.items():
                failed[name] = str(reason.value)
        elif data and data.description:
            failed[step] = data.description
        else:
            failed[step] = _find_cause(error) if error else "no reason given"
    return failed


def _find_cause(error: Any) -> str:
    """The innermost error, without Dagster's words around it."""
    while error.cause:
        error = error.cause
    return str(error.message).strip()


def report_check(
    context: dg.AssetExecutionContext, result: dg.AssetCheckResult
) -> Iterator[dg.AssetCheckResult]:
    """The result of a check: as output if the run selected the check, else as an event in the run's
    log. That is one event instead of three, with the time of the evaluation instead of the run's
    beginning."""
    assert result.asset_key is not None  # Dagster's types allow both
    assert result.check_name is not None
    key = dg.AssetCheckKey(result.asset_key, result.check_name)
    if key in context.selected_asset_check_keys:
        yield result
        return
    evaluation = dg.AssetCheckEvaluation(
        key.asset_key,
        key.name,
        result.passed,
        result.metadata,
        severity=result.severity,
        description=result.description,
    )
    context.log_event(evaluation)


def is_deferred(context: dg.AssetExecutionContext) -> bool:
    return DEFERRED.items() <= context.run.tags.items()


def report_table(
    context: dg.AssetExecutionContext, made: dg.MaterializeResult[Any], note: str = ""
) -> Iterator[dg.MaterializeResult[Any]]:
    """The output that later steps wait for. In a run whose outputs are not materializations, the
    materialization is logged, too."""
    assert made.asset_key is not None  # Dagster's type allows it
    key = dg.AssetKey.from_coercible(made.asset_key)
    is_selected = key in context.selected_asset_keys
    is_logged = is_deferred(context) or not is_selected
    if is_logged:
        spec = context.assets_def.get_asset_spec(key)
        tags = provenance_tags(spec)
        context.log_event(dg.AssetMaterialization(key, note or None, made.metadata, tags=tags))
    if not is_selected:
        return
    if is_logged:
        yield dg.MaterializeResult(asset_key=key)
    else:
        yield made._replace(check_results=[], data_version=dg.DataVersion(ONE_VERSION))


def provenance_tags(spec: dg.AssetSpec) -> dict[str, str]:
    """The tags by which Dagster sees that an asset is as new as the assets that it is made from.
    Our reading and building decide what must be made again. Dagster still marks assets that were
    made by another version of the code."""
    code_version = spec.code_version or ""
    tags = {"dagster/data_version": ONE_VERSION, "dagster/code_version": code_version}
    for dep in spec.deps:
        name = dep.asset_key.to_user_string()
        tags[f"dagster/input_data_version/{name}"] = ONE_VERSION
        tags[f"dagster/input_event_pointer/{name}"] = "NULL"
    return tags


def _select_tables(
    context: dg.AssetExecutionContext, tables: Iterable[dg.MaterializeResult[Any]]
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]:
    """The chosen tables with their checks. Other tables, which the same requests filled or which
    the chosen ones need, get an event in the run's log. A table without metadata was read and did
    not change."""
    for made in tables:
        key = dg.AssetKey.from_coercible(made.asset_key or ())
        is_selected = key in context.selected_asset_keys
        note = "" if is_selected else "read by the same run"
        if made.metadata:
            yield from report_table(context, made, note)
        else:
            context.log_event(dg.AssetObservation(key, f"{note or 'read'}: nothing changed"))
            if is_selected:
                yield made
        for result in made.check_results or ():
            yield from report_check(context, result)


def _table_spec(
    asset: SourceAsset, table: Table, partitions: dg.DailyPartitionsDefinition
) -> dg.AssetSpec:
    deps: list[dg.AssetKey] = []
    for upstream in asset.after:
        deps += map(asset_key, upstream.tables)
    return dg.AssetSpec(
        asset_key(table),
        deps=deps,
        description=_describe_table(asset, table),
        partitions_def=partitions if asset.is_daily else None,
        group_name=f"source/{table.area}",
        kinds={"duckdb"},
        metadata={
            "dagster/column_schema": column_schema(table.columns),
            "dagster/table_name": f"source.{table.name}",
            "key": ", ".join(table.key) or "one row per account",
            "load": type(table.load).__name__.lower(),
        },
    )


def _describe_table(asset: SourceAsset, table: Table) -> str:
    """In Markdown: what the table is, and what to know before you materialize it."""
    parts = [table.doc]
    sibling_tables = ", ".join(other.qualified for other in asset.tables if other is not table)
    if sibling_tables:
        parts.append(f"The same requests fill {sibling_tables}: if you materialize one, all are.")
    if asset.is_daily:
        parts.append(_PARTITIONS)
    return "\n\n".join(parts)


def column_schema(columns: Iterable[Column]) -> dg.TableSchema:
    schema = []
    for column in columns:
        schema.append(dg.TableColumn(column.name, column.sql_type, description=column.comment))
    return dg.TableSchema(schema)


def _has_news(settled: Set[dg.AssetKey], table: Table, results: list[AccountResult]) -> bool:
    """Whether there is more to report than that it was read."""
    done = done_to(table, results)
    counts = (done.new, done.changed, done.deleted, done.rejected, done.refused, done.drift)
    if asset_key(table) not in settled or any(counts):
        return True
    return any(result.missing_reasons for result in results)


def _materialize_tables(
    reader: Reader, asset: SourceAsset, results: list[AccountResult], settled: Set[dg.AssetKey]
) -> list[dg.MaterializeResult[Any]]:
    """A result for each table; without metadata if there is nothing to report."""
    made: dict[str, dg.MaterializeResult[Any]] = {}
    for table in asset.tables:
        made[table.name] = dg.MaterializeResult(asset_key=asset_key(table))
    changed_tables = [table for table in asset.tables if _has_news(settled, table, results)]
    if changed_tables:
        with reader.warehouse.open_for_reading():
            for table in changed_tables:
                made[table.name] = _table_metadata(reader, asset, table, results)
    return list(made.values())


def _table_metadata(
    reader: Reader, asset: SourceAsset, table: Table, results: list[AccountResult]
) -> dg.MaterializeResult[Any]:
    done = done_to(table, results)
    share = share_read(results)
    coverage = 100.0
    if share is not None:
        coverage = round(100 * share, 1)
    waited_s = sum(result.spent.waited_s for result in results)
    plans = [result.plan for result in results if result.plan is not None]
    days_metadata = {}
    if asset.is_daily:
        days_metadata = _days_metadata(reader, table, results)
    checks = list(_check_results(reader.warehouse, table, results, done))
    return dg.MaterializeResult(
        asset_key=asset_key(table),
        metadata={
            "dagster/row_count": reader.warehouse.row_count(table),
            "rows added": done.new,
            "rows changed": done.changed,
            "rows deleted": done.deleted,
            "records rejected": done.rejected,
            "requests planned": sum(result.planned for result in results),
            **_plan_metadata(plans),
            "requests used": sum(result.spent.requests for result in results),
            "seconds waited": round(waited_s, 1),
            "coverage %": coverage,
            **days_metadata,
        },
        check_results=checks,
    )


def _plan_metadata(entries: list[PlanEntry]) -> dict[str, dg.MetadataValue]:
    """Why contacts were read, and how many were not: because they were not due, or because of the
    budget."""
    if not entries:
        return {}
    reasons = Counter[Reason]()
    not_due = 0
    left_out = 0
    for entry in entries:
        reasons.update(entry.counts)
        not_due += entry.not_due
        left_out += entry.late + entry.waiting
    return {
        "planned because": dg.MetadataValue.text(in_words(reasons)),
        "not due": dg.MetadataValue.int(not_due),
        "left out for the budget": dg.MetadataValue.int(left_out),
    }


def _days_metadata(
    reader: Reader, table: Table, results: list[AccountResult]
) -> dict[str, dg.MetadataValue]:
    """The days that this run read, and those that any run read."""
    now = []
    ever = []
    for result in results:
        account = result.account
        ranges_ever = _days_read(reader, table, account)
        days_ever = ", ".join(map(str, ranges_ever))
        now.append(f"{account}: {result.days_in_words or 'none'}")
        ever.append(f"{account}: {days_ever or 'none'}")
    return {
        "days read": dg.MetadataValue.text("; ".join(now)),
        "days read so far": dg.MetadataValue.text("; ".join(ever)),
    }


def _days_read(reader: Reader, table: Table, account: str) -> list[DateRange]:
    covered = reader.warehouse.covered_days(table, account)
    return join_ranges(DateRange(first, last) for first, last in covered)


def _read_by_all(
    reader: Reader, asset: SourceAsset, partitions: dg.DailyPartitionsDefinition
) -> set[str]:
    """The partitions whose day was read for every account."""
    first = partitions.get_first_partition_key() or ""
    last = partitions.get_last_partition_key() or ""
    days_by_account = []
    with reader.warehouse.open_for_reading():
        for session in reader.sessions:
            ranges = _days_read(reader, asset.tables[0], session.account)
            account_days = set[str]()
            for days in ranges:
                account_days.update(map(str, days.list_days()))
            days_by_account.append(account_days)
    common_days = set.intersection(*days_by_account)
    return {day for day in common_days if first <= day <= last}


def _check_results(
    warehouse: Warehouse, table: Table, results: list[AccountResult], done: TableReport
) -> Iterator[dg.AssetCheckResult]:
    duplicates = warehouse.duplicate_keys(table)
    rejected = warehouse.rejected_count(table)
    missing = []
    for result in results:
        missing += [f"{result.account}: {reason}" for reason in result.missing_reasons]
    missing += warehouse.list_incomplete(table)
    verdicts = {
        "unique_keys": (not duplicates, f"{duplicates} keys occur more than once"),
        "complete": (not missing, "; ".join(missing) or "all that was requested came"),
        "shrink": (not done.refused, "; ".join(done.refused) or "no listing lost too many rows"),
        "readable": (not rejected, f"{rejected} records in sync.rejected_records"),
        "same_schema": (not done.drift, "; ".join(done.drift) or "the same as before"),
    }
    for name, (passed, text) in verdicts.items():
        severity = _CHECKS[name][1]
        yield dg.AssetCheckResult(
            asset_key=asset_key(table),
            check_name=name,
            passed=passed,
            severity=severity,
            description=text,
        )


def _log_results(
    context: dg.AssetExecutionContext, asset: SourceAsset, results: list[AccountResult]
) -> None:
    for result in results:
        spent = result.spent
        waiting_note = ""
        if spent.requests:
            waiting_note = f", {spent.waited_s / spent.requests:.1f} s of waiting each"
        planned = f"{result.fetched:,} of {result.planned:,} requests with a response"
        if result.plan:
            planned = result.plan.summary
        subject = f"{asset.name}, account {result.account}"
        context.log.info(f"{subject}: {planned}; requests used: {spent.requests:,}{waiting_note}")
        for line in result.learnt:
            context.log.info(f"{subject}: {line}")
        if result.missing_reasons and not result.is_failure:
            reasons = "; ".join(result.missing_reasons)
            context.log.warning(f"{subject}: {reasons}")


def _describe_failure(results: list[AccountResult]) -> str:
    """Accounts with their reasons; empty if no account failed."""
    failed = []
    for result in results:
        if result.is_failure:
            reasons = ", ".join(result.missing_reasons)
            failed.append(f"account {result.account}: {reasons}")
    return "; ".join(failed)
