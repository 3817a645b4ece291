"""What Dagster shows beside the source tables and models: the published file, the report, and the `sync` tables that models read.

Not here: writing them (`warehouse.publish`, `pipelines.report`), settings (`pipelines`).
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import dagster as dg

from assets.materialize import column_schema
from warehouse.errors import WarehouseError
from warehouse.lake import Manifest
from warehouse.loads.coverage import FRESH_FOR
from warehouse.publish import Published
from warehouse.sync_tables import CONTACT_COVERAGE, COVERAGE, READINGS, REJECTED_RECORDS, WRITEBACKS

#: Publishes the home that the settings of a run name. Raises WarehouseError when it cannot.
Publish = Callable[[Any], Published]

#: Makes its report: where it stands, a preview in Markdown without personal data, and what became of its mail. Or raises WarehouseError.
WriteReport = Callable[[Any], tuple[Path, str, str]]

PUBLISHED, REPORT, LAKE = dg.AssetKey("published"), dg.AssetKey("report"), dg.AssetKey("lake")


def published_asset(publish: Publish, after: Iterable[dg.AssetKey]) -> dg.AssetsDefinition:
    """The step that publishes once everything in `after` is made and its blocking checks have passed."""

    @dg.asset(
        key=PUBLISHED,
        deps=list(after),
        required_resource_keys={"reader", "settings"},
        group_name="published",
        kinds={"duckdb"},
        freshness_policy=dg.FreshnessPolicy.time_window(fail_window=FRESH_FOR),
        description="The copy of the warehouse that analysts open: never locked, swapped in as a whole, personal data as the settings say.",
    )
    def published(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        try:
            context.resources.reader.note(context)  # the copy is to hold the run that writes it
            done = publish(context.resources.settings)
        except WarehouseError as problem:
            raise dg.Failure(str(problem), allow_retries=False) from None
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": done.row_count,
                "tables": done.table_count,
                "personal data": str(done.personal_data),
                "published at": dg.MetadataValue.timestamp(done.published_at),
                **({"data as of": dg.MetadataValue.timestamp(done.data_as_of)} if done.data_as_of else {}),
            }
        )

    return published


def lake_asset(export: Callable[[Any], Manifest]) -> dg.AssetsDefinition:
    """The step that exports the published file of the home that the settings of a run name to the lake."""

    @dg.asset(
        key=LAKE,
        deps=[PUBLISHED],
        required_resource_keys={"settings"},
        group_name="published",
        kinds={"parquet"},
        description="The published tables as Parquet, where those of all shards are. When it fails, run it again: what got there stays.",
    )
    def lake(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        try:
            done = export(context.resources.settings)
        except WarehouseError as problem:
            raise dg.Failure(str(problem), allow_retries=False) from None
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": sum(table.rows for table in done.tables),
                "tables": len(done.tables),
                "kB": round(sum(done.files.values()) / 1000),
                "version": done.version,
            }
        )

    return lake


def report_asset(write: WriteReport) -> dg.AssetsDefinition:
    """The step that makes the report of the published file."""

    @dg.asset(
        key=REPORT,
        deps=[PUBLISHED],
        required_resource_keys={"settings"},
        group_name="published",
        kinds={"html"},
        description="One page for the business owner: what changed, campaigns, lists, reviews, social media, coupons, completeness.",
    )
    def report(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        try:
            path, preview, mailed = write(context.resources.settings)
        except WarehouseError as problem:
            raise dg.Failure(str(problem), allow_retries=False) from None
        return dg.MaterializeResult(
            metadata={
                "preview": dg.MetadataValue.md(preview),
                "file": dg.MetadataValue.text(f"{path.parent.name}/{path.name} of the home"),  # the home may be moved
                "kB": round(path.stat().st_size / 1000),
                **({"mail": mailed} if mailed else {}),
            }
        )

    return report


def sync_tables() -> list[dg.AssetSpec]:
    """One per table, under the key that dbt's manifest gives it."""
    return [
        dg.AssetSpec(
            ["sync", table.name],
            description=f"{table.doc} Filled by the steps that read from the service or write to it.",
            group_name="sync",
            kinds={"duckdb"},
            metadata={"dagster/table_name": table.qualified, "dagster/column_schema": column_schema(table.columns)},
        )
        for table in (COVERAGE, READINGS, CONTACT_COVERAGE, REJECTED_RECORDS, WRITEBACKS)
    ]
