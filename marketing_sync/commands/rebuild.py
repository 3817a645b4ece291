"""Rebuild the warehouse from the archive, without a request."""

from home import exits
from home.door import archive_of, outbox_of, waiting_options
from home.folder import in_use, prepare_home
from home.options import Option
from home.settings import Settings
from marketing_api.clock import unix_now
from marketing_sync.commands import declare_command, print_error
from warehouse.rebuild import RebuildReport, rebuild_warehouse
from write_back.kinds import NOT_IDEMPOTENT
from write_back.outbox.store import restore_copy
from write_back.writebacks_export import try_to_export


@declare_command(
    Option("accept_loss", "replace the warehouse even if the archive lacks some of it"),
    needs_keys=False,
)
def rebuild(settings: Settings, accept_loss: bool) -> int:
    """Repeats every load. The new file replaces the old one when it is complete."""
    home = prepare_home(settings.home, settings.lock_seconds, completes=False)
    if not (archive_of(home).exists() or settings.warehouse_path.exists()):
        return print_error(
            f"{home} has no stored responses, so nothing was rebuilt: run `marketing-sync sync`",
            exits.INCOMPLETE,
        )
    is_restored = restore_copy(outbox_of(home), unix_now(), NOT_IDEMPOTENT)
    with in_use(home):
        result = rebuild_warehouse(home, accept_loss=accept_loss, **waiting_options(settings))
    try_to_export(settings)
    print(
        f"{settings.warehouse_path} rebuilt from {result.loads:,} loads: {result.rows:,} rows, no "
        "request sent"
    )
    if result.since:
        print(
            f"started at the checkpoint of {result.since}: older responses are not kept "
            "(MARKETING_KEEP, or an erasure). Fields that are new in this version are filled from "
            "later responses only"
        )
    if is_restored:
        print(
            "the outbox was damaged and was replaced by its copy; the next push finds out what was "
            "sent later"
        )
    return exit_code(result)


def exit_code(result: RebuildReport) -> int:
    """The exit code of a rebuild; prints how many loads failed."""
    if not result.failed:
        return exits.DONE
    return print_error(
        f"{result.failed:,} loads were not applied; see the reasons in sync.loads",
        exits.INCOMPLETE,
    )
