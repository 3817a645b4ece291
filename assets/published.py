"""What Dagster shows beside the source tables and models: the published file, the report, and the `sync`
tables that models read.

Not here: writing them (`warehouse.publish`, `pipelines.report`), settings (`pipelines`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from assets.materialize import column_schema, materialized
from warehouse.errors import StorageMisconfigured, StorageUnavailable, WarehouseError
from warehouse.lake import Manifest
from warehouse.loads.coverage import FRESH_FOR
from warehouse.models import BuildReport, Status
from warehouse.publish import Published
from warehouse.tables import CONTACT_COVERAGE, COVERAGE, READINGS, REJECTED_RECORDS, WRITEBACKS

#: Publishes the home that the settings of a run name. Raises WarehouseError when it cannot.
Publish = Callable[[Any], Published]

#: Makes its report: where it stands, a preview in Markdown without personal data, and what became of its
#: mail. Or raises WarehouseError.
WriteReport = Callable[[Any], tuple[Path, str, str]]

Metadata = dict[str, Any]

#: What a storage needs to come back: 15, 30, 60 and 120 seconds.
AGAIN = dg.RetryPolicy(max_retries=4, delay=15, backoff=dg.Backoff.EXPONENTIAL)

PUBLISHED, OWN_MODELS, REPORT, LAKE = (
    dg.AssetKey(name) for name in ("published", "own_models", "report", "lake")
)

#: Builds the user's own models and publishes what they made, and returns what came of them and what is wrong,
#: a line each. Never raises.
BuildOwn = Callable[[Any], tuple[BuildReport, Sequence[str]]]


def published_asset(
    publish: Publish, breaking_of: Callable[[Any], Sequence[str]], after: Iterable[dg.AssetKey]
) -> dg.AssetsDefinition:
    """The step that publishes once everything in `after` is made and its blocking checks have passed.

    `breaking_of`: what readers of the copy before can no longer count on, a line each.
    """

    def published(context: dg.AssetExecutionContext) -> Metadata:
        context.resources.reader.note(context)  # the copy is to hold the run that writes it
        done = publish(context.resources.settings)
        return {
            "dagster/row_count": done.row_count,
            "tables": done.table_count,
            "personal data": str(done.personal_data),
            "published at": dg.MetadataValue.timestamp(done.published_at),
            **(
                {"breaking changes": "\n".join(breaking)}
                if (breaking := breaking_of(context.resources.settings))
                else {}
            ),
            **({"data as of": dg.MetadataValue.timestamp(done.data_as_of)} if done.data_as_of else {}),
        }

    description = (
        "The copy of the warehouse that analysts open: never locked, swapped in as a whole, "
        "personal data "
        "as the settings say."
    )
    freshness = dg.FreshnessPolicy.time_window(fail_window=FRESH_FOR)
    spec = dg.AssetSpec(
        PUBLISHED, deps=list(after), kinds={"duckdb"}, freshness_policy=freshness, description=description
    )
    return _step(spec, published, "reader")


def own_models_asset(build: BuildOwn) -> dg.AssetsDefinition:
    """The step behind the publishing that no other waits for in vain: whatever is wrong with such models, it
    ends well and says so."""

    def own_models(context: dg.AssetExecutionContext) -> Metadata:
        report, problems = build(context.resources.settings)
        for outcome in report.outcomes:
            if (
                outcome.status is Status.OK and not outcome.node.is_test
            ):  # they come and go with files: no assets of the definitions
                key = dg.AssetKey(outcome.node.relation.split("."))
                context.log_event(
                    dg.AssetMaterialization(key, metadata={"seconds": round(outcome.seconds, 2)})
                )
        for line in [*problems, *report.warnings]:
            context.log.warning(line)
        tests = sum(outcome.node.is_test for outcome in report.of(Status.OK))
        return {
            "built": len(report.made),
            "tests passed": tests,
            **({"problems": "\n".join(problems)} if problems else {}),
        }

    description = (
        "Models of your own, by dbt in a process of its own, each with a time limit; what "
        "they made is "
        "published too."
    )
    return _step(
        dg.AssetSpec(OWN_MODELS, deps=[PUBLISHED], kinds={"dbt", "duckdb"}, description=description),
        own_models,
    )


def lake_asset(export: Callable[[Any], Manifest], again: dg.RetryPolicy = AGAIN) -> dg.AssetsDefinition:
    """The step that exports the published file of the home that the settings of a run name to the lake."""

    def lake(context: dg.AssetExecutionContext) -> Metadata:
        done = export(context.resources.settings)
        rows, size = sum(table.rows for table in done.tables), sum(done.files.values())
        return {
            "dagster/row_count": rows,
            "tables": len(done.tables),
            "kB": round(size / 1000),
            "version": done.version,
        }

    description = (
        "The published tables as Parquet, where those of all shards are. A storage that cannot be reached is "
        "tried again for some minutes; after that, run this step again: what got there stays."
    )
    spec = dg.AssetSpec(LAKE, deps=[PUBLISHED, OWN_MODELS], kinds={"parquet"}, description=description)
    return _step(spec, lake, again=again)


def report_asset(write: WriteReport) -> dg.AssetsDefinition:
    def report(context: dg.AssetExecutionContext) -> Metadata:
        path, preview, mailed = write(context.resources.settings)
        return {
            "preview": dg.MetadataValue.md(preview),
            "file": dg.MetadataValue.text(
                f"{path.parent.name}/{path.name} of the home"
            ),  # the home may be moved
            "kB": round(path.stat().st_size / 1000),
            **({"mail": mailed} if mailed else {}),
        }

    description = (
        "One page for the business owner: what changed, campaigns, lists, reviews, social "
        "media, coupons, "
        "completeness."
    )
    return _step(dg.AssetSpec(REPORT, deps=[PUBLISHED], kinds={"html"}, description=description), report)


def _step(
    spec: dg.AssetSpec,
    make: Callable[[dg.AssetExecutionContext], Metadata],
    *resources: str,
    again: dg.RetryPolicy | None = None,
) -> dg.AssetsDefinition:
    """`make` does it and returns what is shown of it. What it raises is told in its sentence, and tried again
    where a storage could not be reached."""

    @dg.multi_asset(
        name=spec.key.path[-1],
        specs=[spec.replace_attributes(group_name="published")],
        required_resource_keys={"settings", *resources},
        retry_policy=again,
    )
    def step(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        try:
            metadata = make(context)
        except WarehouseError as problem:
            raise dg.Failure(str(problem), allow_retries=_may_pass(problem)) from None
        yield from materialized(context, dg.MaterializeResult(asset_key=spec.key, metadata=metadata))

    return step


def _may_pass(problem: WarehouseError) -> bool:
    return isinstance(problem, StorageUnavailable) and not isinstance(problem, StorageMisconfigured)


def sync_tables() -> list[dg.AssetSpec]:
    """One per table, under the key that dbt's manifest gives it. The readings are fresh when every table was
    read."""
    freshness = dg.FreshnessPolicy.time_window(fail_window=FRESH_FOR)
    return [
        dg.AssetSpec(
            ["sync", table.name],
            description=f"{table.doc} Filled by the steps that read from the service or write to it.",
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
