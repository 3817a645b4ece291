"""Back up the home to a folder (if MARKETING_BACKUP_DIR is set, every run does this).

Not here: how the copy is made (`upkeep.backup`)."""

from home import exits
from home.folder import prepare_home
from home.options import Option
from home.settings import Settings
from home.values import folder
from marketing_sync.commands import declare_command
from upkeep.backup import back_up, backup_folder


@declare_command(
    Option(
        "dir",
        "the folder (default: MARKETING_BACKUP_DIR)",
        str,
        folder,
        metavar="[DIR]",
        is_positional=True,
    ),
    needs_keys=False,
)
def backup(settings: Settings, dir: str | None) -> int:
    """The new backup replaces the previous one after all its files were checked. You can run
    this command during a sync."""
    prepare_home(settings.home, settings.lock_seconds)
    snapshot = back_up(settings, dir or "")
    print(
        f"{backup_folder(settings, dir or '')}: {len(snapshot.files):,} files, "
        f"{snapshot.bytes / 1e6:,.1f} MB, all checked"
    )
    return exits.DONE
