"""`marketing-sync rebuild`: the warehouse anew from the archive."""

from __future__ import annotations

import argparse
import sys

from marketing_api.clock import wall
from pipelines import exits
from pipelines.home import prepare_home
from pipelines.settings import Settings
from pipelines.waiting import tell
from pipelines.write_back.outbox.outbox import outbox_path
from pipelines.write_back.outbox.restore import restore
from pipelines.write_back.writebacks_export import refill
from warehouse.rebuild import rebuild


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--accept-loss", action="store_true", help="replace the warehouse although the archive no longer holds all of it")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Replay every load; the old file is replaced only when the new one is complete."""
    home = prepare_home(settings.home)
    is_restored = restore(outbox_path(home), wall())
    report = rebuild(home, deadline_s=settings.lock_seconds, on_wait=tell, accept_loss=arguments.accept_loss)
    refill(settings)
    print(f"{settings.warehouse_path} rebuilt from {report.loads:,} loads: {report.rows:,} rows, no request sent")
    if report.damaged:
        print(f"{report.damaged:,} damaged lines of the load log are set aside; what the old warehouse had of them is kept")
    if is_restored:
        print("the outbox was damaged: its copy is in its place, and the next push finds out what was sent since")
    if report.aside:
        print(f"the damaged one is {report.aside} now, which can be deleted; the models are built by the next `marketing-sync sync`")
    if report.lost:
        print(f"begun anew, since no copy of the rows could be read: {', '.join(report.lost)}", file=sys.stderr)
    if report.failed:
        print(f"{report.failed:,} loads could not be applied; sync.loads says why", file=sys.stderr)
    return exits.INCOMPLETE if report.failed else exits.DONE
