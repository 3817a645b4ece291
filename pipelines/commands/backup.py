"""Back up what a home cannot make anew, and show what is there.

Not here: the backup behind each run (`upkeep.backups`)."""

import sys

from home import exits
from home.folder import prepare_home
from home.options import Option
from home.settings import Settings
from pipelines.commands import Arguments, command
from upkeep.backups import back_up_home, backup_storage
from warehouse.storage import shown


@command(Option("verify", "read everything that is there, and send anew what is damaged"))
def backup(arguments: Arguments, settings: Settings) -> int:
    """Send what is not there yet, and show what is there. Safe while a sync runs. Exit code 1 when something
    was missing or damaged."""
    prepare_home(settings.home, settings.lock_seconds)
    report = back_up_home(settings, verify=arguments.verify)
    files = report.manifest.files
    print(
        f"{shown(backup_storage(settings).url)}: {len(files):,} files, "
        f"{sum(file.bytes for file in files) / 1e6:,.1f} MB, as of now"
    )
    print(f"sent: {len(report.sent):,} files, {sum(file.bytes for file in report.sent) / 1e6:,.1f} MB")
    for name in report.mended:
        print(f"{name} was missing or damaged there: it was sent anew", file=sys.stderr)
    for name in report.lost:
        print(
            f"{name} is missing or damaged there, and the home does not have it any more: put it back",
            file=sys.stderr,
        )
    return exits.INCOMPLETE if report.mended or report.lost else exits.DONE
