"""Back up what cannot be rebuilt of a home, and show what the backup holds.

Not here: the backup behind each run (`upkeep.backups`)."""

from home import exits
from home.folder import prepare_home
from home.options import Option
from home.settings import Settings
from pipelines.commands import Arguments, command, print_error
from upkeep.backups import back_up_home, backup_storage
from warehouse.storage import shown


@command(Option("verify", "read everything in the backup, and send again what is damaged"))
def backup(arguments: Arguments, settings: Settings) -> int:
    """Only what the backup lacks is sent. Safe while a sync runs. Exit code 1 when something was missing or
    damaged."""
    prepare_home(settings.home, settings.lock_seconds)
    report = back_up_home(settings, verify=arguments.verify)
    files = report.manifest.files
    print(
        f"{shown(backup_storage(settings).url)}: {len(files):,} files, "
        f"{sum(file.bytes for file in files) / 1e6:,.1f} MB, as of now"
    )
    print(f"sent: {len(report.sent):,} files, {sum(file.bytes for file in report.sent) / 1e6:,.1f} MB")
    for name in report.mended:
        print_error(f"{name} was missing or damaged there: it was sent again")
    for name in report.lost:
        print_error(
            f"{name} is missing or damaged there, and the home does not have it any more: put it back"
        )
    return exits.INCOMPLETE if report.mended or report.lost else exits.DONE
