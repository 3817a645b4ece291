"""Restore a backup into an empty home."""

import os

from home import exits
from home.door import outbox_of
from home.freshness import format_age
from home.options import Option
from home.settings import Settings
from home.values import folder
from marketing_api.clock import utc_now
from marketing_sync.commands import declare_command
from upkeep.backup import restore_backup as restore_home
from write_back.outbox.store import describe_hold


@declare_command(
    Option(
        "dir",
        "the backup (default: MARKETING_BACKUP_DIR)",
        str,
        folder,
        metavar="[DIR]",
        is_positional=True,
    ),
    Option("release", "allow pushes again after a restore"),
    needs_keys=False,
)
def restore(settings: Settings, dir: str | None, release: bool) -> int:
    """Checks every file against its hash. If it is interrupted, run it again to resume."""
    if release:
        hold = describe_hold(outbox_of(settings.home))
        if not hold.exists():
            print("nothing to release: no restored backup holds pushes back")
            return exits.DONE
        hold.unlink()
        print(
            "pushes are allowed again: activities that the backup had open are looked up before "
            "they are sent"
        )
        return exits.DONE
    os.umask(0o077)
    snapshot = restore_home(settings, dir or "")
    print(
        f"{settings.home}: {len(snapshot.files):,} files as of "
        f"{format_age(snapshot.made_at, utc_now())}, all hashes verified; the next sync publishes"
    )
    print(
        "pushes wait, because requests after the backup are unknown: run `marketing-sync sync`, "
        "then `marketing-sync restore --release`"
    )
    return exits.DONE
