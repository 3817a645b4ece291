"""`marketing-sync publish`: the copy for analysts anew, back to the one before, and the same as Parquet.

The report follows each time: it must not show what was rolled back, nor personal data that is no longer published.
"""

from __future__ import annotations

import argparse
import uuid
from pathlib import Path

from marketing_api.clock import utc_now
from pipelines import exits
from pipelines.home import prepare_home
from pipelines.publishing import export_home, in_words, noted, publish_home, roll_back_home
from pipelines.report.write import write_report
from pipelines.settings import Settings
from warehouse.publish import published_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Back instead of anew; Parquet besides."""
    parser.add_argument("--rollback", action="store_true", help="back to the copy before this one; three are kept")
    parser.add_argument(
        "--parquet", type=Path, metavar="DIR", help="write its tables to this folder as Parquet, too, in place of an earlier export"
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """0 when it is published; 1 when the warehouse is not fit for it (the sentence says why), and the copy that is there stays."""
    prepare_home(settings.home)
    if arguments.rollback:
        published = roll_back_home(settings)
    else:
        with noted(settings, str(uuid.uuid4()), "publish"):
            published = publish_home(settings)
    print(f"{published_path(settings.home)}: {in_words(published, utc_now())}")
    report, _ = write_report(settings.home)
    print(f"{report}: the report of it")
    if arguments.parquet:
        export = export_home(settings, arguments.parquet)
        print(f"{export.folder}: {export.tables} tables in {export.files:,} Parquet files, {export.bytes / 1e6:,.1f} MB")
    return exits.DONE
