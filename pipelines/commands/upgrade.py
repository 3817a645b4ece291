"""`marketing-sync upgrade`: a home of an earlier version, upgraded by hand, tried first, or put back. Any other command that uses it
upgrades it by itself. Not here: how (`pipelines.upgrade`).
"""

from pipelines import exits
from pipelines.commands import Arguments, command
from pipelines.home import prepare_home, reading
from pipelines.options import Option
from pipelines.settings import Settings
from pipelines.upgrade import VERSIONS, check_not_newer, roll_back, try_upgrade, versions_in_words


@command(
    Option("dry_run", "try it on copies, show what is changed, and change nothing"),
    Option("rollback", "put the files back as they were before the last upgrade, for the earlier version to go on"),
    Option("accept_loss", "with --rollback: although something came since that would be lost"),
)
def upgrade(arguments: Arguments, settings: Settings) -> int:
    """Copies of the files as they were stay in `upgrades/` of the home, those of the last two upgrades."""
    home, wait_s = settings.home, settings.lock_seconds
    check_not_newer(home)
    if arguments.dry_run:
        for line in try_upgrade(home, wait_s):
            print(line)
    elif arguments.rollback:
        print(roll_back(prepare_home(home, upgrades=False), wait_s, accept_loss=arguments.accept_loss))
    else:
        prepare_home(home, wait_s)
        if settings.warehouse_path.exists():
            with reading(home, wait_s):
                print(f"the home is of this version: {versions_in_words(VERSIONS)}")
    return exits.DONE
