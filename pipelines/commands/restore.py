"""Restore a home from its backup, on an empty machine."""

import os

from home import exits
from home.door import outbox_of, scratch, waits
from home.freshness import ago
from home.options import Option
from home.settings import Settings
from home.versions import check_not_newer
from marketing_api.clock import utc_now, wall
from pipelines.commands import Arguments, command
from pipelines.commands.rebuild import exit_code
from upkeep.backups import backup_storage
from warehouse.backup import finish_restore, kept_tables
from warehouse.backup import restore as restore_files
from warehouse.rebuild import rebuild
from write_back.kinds import NOT_IDEMPOTENT
from write_back.outbox.store import held_note, hold
from write_back.writebacks_export import try_to_export


@command(
    Option(
        "url", "the backup's address (default: MARKETING_BACKUP_URL)", str, metavar="URL", is_positional=True
    ),
    Option("release", "allow pushes again, once you know what was sent since the backup"),
)
def restore(arguments: Arguments, settings: Settings) -> int:
    """Every hash is checked, then the warehouse is rebuilt from the archive. Resumes when it was
    interrupted."""
    home, outbox = settings.home, outbox_of(settings.home)
    if arguments.release:
        held_note(outbox).unlink(missing_ok=True)
        print(
            "pushes are allowed again: requests that the backup had open are looked up before they are sent"
        )
        return exits.DONE
    os.umask(0o077)
    manifest = restore_files(home, backup_storage(settings, url=arguments.url or ""))
    check_not_newer(home)
    hold(outbox, manifest.made_at, wall(), NOT_IDEMPOTENT)
    settings.warehouse_path.unlink(missing_ok=True)  # of an attempt that was killed
    with scratch(home, "restore") as workspace:
        kept = kept_tables(home, workspace.file("kept.duckdb"))
        result = rebuild(home, kept=[kept], **waits(settings))
    try_to_export(settings)
    finish_restore(home)
    print(
        f"{home}: {len(manifest.files):,} files as of {ago(manifest.made_at, utc_now())}, all hashes verified"
    )
    print(
        f"{settings.warehouse_path} rebuilt from {result.loads:,} loads: {result.rows:,} rows; the next "
        "sync builds the models"
    )
    print(
        "pushes are held, since what was sent after the backup is not known: `marketing-sync restore "
        "--release` allows them again"
    )
    return exit_code(result)
