"""The report as a Dagster asset, behind what is published. Not here: making it (`pipelines.report`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dagster as dg

from assets.published import PUBLISHED
from warehouse.errors import WarehouseError

#: Makes the report: where it stands, and a preview in Markdown without personal data. Raises WarehouseError when it cannot.
WriteReport = Callable[[], tuple[Path, str]]

REPORT = dg.AssetKey("report")


def report_asset(write: WriteReport) -> dg.AssetsDefinition:
    """The step that makes the report of the published file."""

    @dg.asset(
        key=REPORT,
        deps=[PUBLISHED],
        group_name="published",
        kinds={"html"},
        description="One page for the business owner: what changed, campaigns, lists, reviews, social media, coupons, completeness.",
    )
    def report() -> dg.MaterializeResult[None]:
        try:
            path, preview = write()
        except WarehouseError as problem:
            raise dg.Failure(str(problem), allow_retries=False) from None
        return dg.MaterializeResult(
            metadata={
                "preview": dg.MetadataValue.md(preview),
                "file": dg.MetadataValue.text(f"{path.parent.name}/{path.name} of the home"),  # the home may be moved
                "kB": round(path.stat().st_size / 1000),
            }
        )

    return report
