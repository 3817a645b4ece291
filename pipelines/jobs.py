"""The jobs: which assets run together. Not here: when they run (`schedules`), and their resources
(`resources`)."""

import dagster as dg

from assets.materialize import DEFERRED, asset_key
from assets.sources import contacts, coupons, lists, timelines
from home.door import waiting_options
from home.folder import in_use
from home.progress import begin_stage
from home.settings import Settings
from warehouse.rebuild import rebuild_warehouse
from write_back.writebacks_export import try_to_export

#: Asset jobs run in one process (see `definitions`): a process per step would cost more than the
#: reading.
NIGHTLY_SYNC = dg.define_asset_job(
    "nightly_sync",
    tags=DEFERRED,
    # the steps evaluate and log their checks themselves: 592 events fewer
    selection=dg.AssetSelection.all().without_checks(),
    description=(
        "Reads every account into the warehouse, then builds the models, the published copy and "
        "the report. If you start it manually, choose days as partitions: data by day is read "
        "again for these days."
    ),
)
REFRESH_CONTACTS = dg.define_asset_job(
    "refresh_contacts",
    selection=dg.AssetSelection.assets(
        *(
            asset_key(table)
            for asset in (lists, contacts, timelines, coupons)
            for table in asset.tables
        )
    ),
    description="Lists, contacts, timelines and coupons only.",
)
REFRESH_MODELS = dg.define_asset_job(
    "refresh_models",
    selection=dg.AssetSelection.all() - dg.AssetSelection.key_prefixes("source"),
    description=(
        "Builds the models, the published copy and the report from the warehouse; nothing is read."
    ),
)
PUBLISH = dg.define_asset_job(
    "publish",
    selection=dg.AssetSelection.groups("published"),
    description=(
        "Publishes the copy for analysts and the report again; nothing is read, and no model is "
        "built."
    ),
)


@dg.op(pool="warehouse", required_resource_keys={"settings"})
def rebuild_from_archive(context: dg.OpExecutionContext) -> None:
    """Rebuild the warehouse from the archive; no request is sent."""
    settings: Settings = context.resources.settings
    with in_use(settings.home), begin_stage("rebuild"):
        report = rebuild_warehouse(settings.home, **waiting_options(settings))
        try_to_export(settings)
    context.add_output_metadata(
        {"loads replayed": report.loads, "loads failed": report.failed, "rows": report.rows}
    )
    if report.failed:
        context.log.warning(
            f"{report.failed} loads could not be applied; sync.loads has the reasons"
        )


@dg.job(executor_def=dg.in_process_executor)
def rebuild() -> None:
    """Rebuild the warehouse from the archive, e.g. after a parser gained a column."""
    rebuild_from_archive()
