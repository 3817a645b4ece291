"""Further assets in Dagster: the published file, the report, and the `sync` tables that models
read.

Not here: writing them (`warehouse.publish`, `report`), settings (`pipelines`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from assets.materialize import column_schema, report_table
from warehouse.errors import WarehouseError
from warehouse.policies import FRESH_FOR
from warehouse.publish import Published
from warehouse.tables import CONTACT_COVERAGE, COVERAGE, READINGS, REJECTED_RECORDS, WRITEBACKS

#: Publishes the home that the settings of a run name. Raises WarehouseError when it cannot.
Publish = Callable[[Any], Published]

#: Makes the report of a home. Returns its path, a preview in Markdown without personal data, and
#: what became of its mail. Raises WarehouseError.
WriteReport = Callable[[Any], tuple[Path, str, str]]

Metadata = dict[str, Any]

PUBLISHED, REPORT = (dg.AssetKey(name) for name in ("published", "report"))


def published_asset(
    publish: Publish,
    list_custom_table_errors: Callable[[Any], Sequence[str]],
    after: Iterable[dg.AssetKey],
) -> dg.AssetsDefinition:
    """The step that publishes once everything in `after` is made and its blocking checks have
    passed.

    `list_custom_table_errors`: which of the user's tables failed.
    """

    def published(context: dg.AssetExecutionContext) -> Metadata:
        context.resources.reader.note_in_sync(context)  # so that the copy has this run
        done = publish(context.resources.settings)
        errors = list_custom_table_errors(context.resources.settings)
        for error in errors:
            context.log.warning(error)
        metadata = {
            "dagster/row_count": done.row_count,
            "tables": done.table_count,
            "personal data": str(done.personal_data),
            "published at": dg.MetadataValue.timestamp(done.published_at),
        }
        if errors:
            metadata["custom tables"] = "\n".join(errors)
        if done.data_as_of:
            metadata["data as of"] = dg.MetadataValue.timestamp(done.data_as_of)
        return metadata

    description = (
        "The copy of the warehouse that analysts open: never locked, swapped in as a whole, "
        "personal data as the settings say."
    )
    freshness = dg.FreshnessPolicy.time_window(fail_window=FRESH_FOR)
    spec = dg.AssetSpec(
        PUBLISHED,
        deps=list(after),
        kinds={"duckdb"},
        freshness_policy=freshness,
        description=description,
    )
    return _single_step(spec, published, "reader")


def report_asset(write: WriteReport) -> dg.AssetsDefinition:
    def report(context: dg.AssetExecutionContext) -> Metadata:
        path, preview, mailed = write(context.resources.settings)
        # not the whole path, since the home may be moved
        place = f"{path.parent.name}/{path.name} of the home"
        metadata = {
            "preview": dg.MetadataValue.md(preview),
            "file": dg.MetadataValue.text(place),
            "kB": round(path.stat().st_size / 1000),
        }
        if mailed:
            metadata["mail"] = mailed
        return metadata

    description = (
        "One page for the business owner: what changed, campaigns, lists, reviews, social "
        "media, coupons, completeness."
    )
    return _single_step(
        dg.AssetSpec(REPORT, deps=[PUBLISHED], kinds={"html"}, description=description), report
    )


def _single_step(
    spec: dg.AssetSpec,
    make: Callable[[dg.AssetExecutionContext], Metadata],
    *resources: str,
) -> dg.AssetsDefinition:
    """A step that calls `make`, which returns metadata. If it raises a WarehouseError, Dagster
    shows the message, and the step is not retried."""

    @dg.multi_asset(
        name=spec.key.path[-1],
        specs=[spec.replace_attributes(group_name="published")],
        required_resource_keys={"settings", *resources},
    )
    def step(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        try:
            metadata = make(context)
        except WarehouseError as error:
            raise dg.Failure(str(error), allow_retries=False) from None
        yield from report_table(
            context, dg.MaterializeResult(asset_key=spec.key, metadata=metadata)
        )

    return step


def sync_tables() -> list[dg.AssetSpec]:
    """One per table, with the key from dbt's manifest. The readings are fresh if every table was
    read."""
    freshness = dg.FreshnessPolicy.time_window(fail_window=FRESH_FOR)
    return [
        dg.AssetSpec(
            ["sync", table.name],
            description=(
                f"{table.doc} Filled by the steps that read from the service or write to it."
            ),
            group_name="sync",
            kinds={"duckdb"},
            metadata={
                "dagster/table_name": table.qualified,
                "dagster/column_schema": column_schema(table.columns),
            },
            freshness_policy=freshness if table is READINGS else None,
        )
        for table in (COVERAGE, READINGS, CONTACT_COVERAGE, REJECTED_RECORDS, WRITEBACKS)
    ]
