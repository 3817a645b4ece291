"""The published file as a Dagster asset, behind the models. Not here: writing it (`warehouse.publish`), settings (`pipelines`)."""

from collections.abc import Callable, Iterable

import dagster as dg

from warehouse.errors import WarehouseError
from warehouse.loads.coverage import FRESH_FOR
from warehouse.publish import Published

#: Publishes the home. Raises WarehouseError when it cannot.
Publish = Callable[[], Published]

PUBLISHED = dg.AssetKey("published")


def published_asset(publish: Publish, after: Iterable[dg.AssetKey]) -> dg.AssetsDefinition:
    """The step that publishes once everything in `after` is made and its blocking checks have passed."""

    @dg.asset(
        key=PUBLISHED,
        deps=list(after),
        required_resource_keys={"reader"},
        group_name="published",
        kinds={"duckdb"},
        freshness_policy=dg.FreshnessPolicy.time_window(fail_window=FRESH_FOR),
        description="The copy of the warehouse that analysts open: never locked, swapped in as a whole, personal data as the settings say.",
    )
    def published(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        try:
            context.resources.reader.note(context)  # the copy is to hold the run that writes it
            done = publish()
        except WarehouseError as problem:
            raise dg.Failure(str(problem), allow_retries=False) from None
        return dg.MaterializeResult(metadata=_metadata(done))

    return published


def _metadata(published: Published) -> dict[str, dg.MetadataValue | str | int]:
    """The file's own words for it, in terms of the UI."""
    return {
        "dagster/row_count": published.row_count,
        "tables": published.table_count,
        "personal data": str(published.personal_data),
        "published at": dg.MetadataValue.timestamp(published.published_at),
        **({"data as of": dg.MetadataValue.timestamp(published.data_as_of)} if published.data_as_of else {}),
    }
