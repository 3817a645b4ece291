"""Write the copy that analysts open and its report, or go back to the previous one.

The report follows each publication, so that it shows nothing that was rolled back."""

import uuid
from pathlib import Path

from home import exits, output
from home.folder import prepare_home
from home.options import JSON, Option
from home.settings import Settings
from marketing_api.clock import utc_now
from pipelines.commands import Arguments, command, print_error
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


@command(
    Option("rollback", "go back to the previous copy; three are kept"),
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
    """When the warehouse fails a publish check, the previous copy stays, and the exit code is 1."""
    prepare_home(settings.home, settings.lock_seconds)
    if arguments.rollback:
        published, mailed = roll_back(settings.home, settings.personal_data, settings.personal_group_min), ""
        path, _ = write_report(settings.home)
    else:
        with noted(settings, str(uuid.uuid4()), "publish"):
            published = publish_home(settings, is_whole=True)
        path, _, mailed = Reports().make(settings)
    if settings.lake_url:
        Lake().export(settings)
    export = None if arguments.parquet is None else _export(settings.home, arguments.parquet)
    breaking = breaking_changes(settings)
    if arguments.json:
        made = published_document(settings, published)
        assert made is not None
        output.emit(output.Publication(made, str(path), export, breaking))
        return exits.DONE
    print(f"{published_path(settings.home)}: {in_words(published, utc_now())}")
    for line in breaking:
        print(f"  changed for its readers: {line}")
    print(f"{path}: the report of it{f'; {mailed}' if mailed else ''}")
    if not arguments.rollback and (problem := own_models_problem(settings)):
        print_error(f"models of your own are published as they were when they could last be built: {problem}")
    if export:
        size = f"{export.tables} tables in {export.files:,} Parquet files, {export.bytes / 1e6:,.1f} MB"
        print(f"{export.folder}: {size}")
    return exits.DONE


def _export(home: Path, folder: Path) -> output.Export:
    made = export_parquet(published_path(home), folder)
    note_export(home, folder)
    return output.Export(str(made.folder), made.tables, made.files, made.bytes)
