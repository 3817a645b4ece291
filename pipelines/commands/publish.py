"""`marketing-sync publish`, `report`, `rebuild`. The report follows each publication, so that it shows
nothing that was rolled back."""

import sys
import uuid
from pathlib import Path

from home import exits, output
from home.door import waits
from home.folder import in_use, prepare_home
from home.options import JSON, Option
from home.settings import Settings
from marketing_api.clock import utc_now, wall
from pipelines.commands import Arguments, command
from pipelines.publishing import (
    Lake,
    breaking_changes,
    in_words,
    noted,
    own_models_problem,
    publish_home,
    published_document,
)
from pipelines.report.mail import Reports
from pipelines.report.render import write_report
from warehouse.lake import export_parquet, note_export
from warehouse.publish import published_path, roll_back
from warehouse.rebuild import rebuild as rebuild_warehouse
from write_back.kinds import NOT_IDEMPOTENT
from write_back.outbox.outbox import outbox_path
from write_back.outbox.store import restore
from write_back.writebacks_export import refill


@command(
    Option("rollback", "back to the copy before this one; three are kept"),
    Option(
        "parquet",
        "export its tables to this folder as Parquet, too, in place of an earlier export",
        str,
        Path,
        metavar="DIR",
    ),
    JSON,
)
def publish(arguments: Arguments, settings: Settings) -> int:
    """When the warehouse is not fit for it, the copy that is there stays, and the exit code is 1."""
    prepare_home(settings.home, settings.lock_seconds)
    if arguments.rollback:
        published, mailed = roll_back(settings.home, settings.personal_data, settings.personal_group_min), ""
        path, _ = write_report(settings.home)
    else:
        with noted(settings, str(uuid.uuid4()), "publish"):
            published = publish_home(settings)
        path, _, mailed = Reports().make(settings)
    if settings.lake_url:
        Lake().export(settings)
    export = export_parquet(published_path(settings.home), arguments.parquet) if arguments.parquet else None
    if export:
        note_export(settings.home, arguments.parquet)
    breaking = breaking_changes(settings)
    if arguments.json:
        made = published_document(settings, published)
        assert made is not None
        files = (
            output.Export(str(export.folder), export.tables, export.files, export.bytes) if export else None
        )
        output.emit(output.Publication(made, str(path), files, breaking))
        return exits.DONE
    print(f"{published_path(settings.home)}: {in_words(published, utc_now())}")
    for line in breaking:
        print(f"  changed for its readers: {line}")
    print(f"{path}: the report of it{f'; {mailed}' if mailed else ''}")
    if not arguments.rollback and (problem := own_models_problem(settings)):
        print(
            f"models of your own are published as they were when they could last be built: {problem}",
            file=sys.stderr,
        )
    if export:
        print(
            f"{export.folder}: {export.tables} tables in {export.files:,} Parquet files, "
            f"{export.bytes / 1e6:,.1f} MB"
        )
    return exits.DONE


@command()
def report(arguments: Arguments, settings: Settings) -> int:
    """Exit code 1 when nothing is published yet."""
    path, _ = write_report(prepare_home(settings.home, settings.lock_seconds))
    print(f"{path}: {path.stat().st_size / 1000:,.0f} kB, open it in a browser")
    return exits.DONE


@command(Option("accept_loss", "replace the warehouse although the archive no longer holds all of it"))
def rebuild(arguments: Arguments, settings: Settings) -> int:
    """Every load is replayed; the old file is replaced only when the new one is complete."""
    home = prepare_home(settings.home, settings.lock_seconds, completes=False)
    is_restored = restore(outbox_path(home), wall(), NOT_IDEMPOTENT)
    with in_use(home):
        result = rebuild_warehouse(home, accept_loss=arguments.accept_loss, **waits(settings))
    refill(settings)
    print(
        f"{settings.warehouse_path} rebuilt from {result.loads:,} loads: {result.rows:,} rows, no "
        "request sent"
    )
    if result.since:
        print(
            f"responses from before {result.since} are kept no longer (MARKETING_KEEP): a checkpoint of the "
            "tables stands in for them, and "
            "fields that this version reads for the first time are empty in what was received before then "
            "and never again"
        )
    if result.damaged:
        print(
            f"{result.damaged:,} damaged lines of the load log are set aside; what the old warehouse holds "
            "of them is kept"
        )
    if is_restored:
        print(
            "the outbox was damaged: its copy is in its place, and the next push finds out what "
            "was sent since"
        )
    if result.aside:
        print(
            f"the damaged one is {result.aside} now, which can be deleted; the models are built by the next "
            "`marketing-sync sync`"
        )
    if result.lost:
        print(
            f"started anew, since no copy of the rows could be read: {', '.join(result.lost)}",
            file=sys.stderr,
        )
    if result.failed:
        print(f"{result.failed:,} loads could not be applied; sync.loads has the reasons", file=sys.stderr)
    return exits.INCOMPLETE if result.failed else exits.DONE
