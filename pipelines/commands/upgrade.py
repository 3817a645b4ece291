"""`marketing-sync upgrade`: a home of an earlier version, upgraded by hand, tried first, or put back. Any other command that writes
upgrades it by itself. Not here: how (`pipelines.upgrade`).
"""

from pipelines import exits
from pipelines.commands import Arguments, command
from pipelines.home import check_not_newer, prepare_home
from pipelines.options import Option, parameters
from pipelines.settings import Settings
from pipelines.upgrade import in_words, outdated, roll_back

_UPGRADE = (
    Option("dry_run", "show what would be changed, and change nothing"),
    Option("rollback", "put the files back as they were before the last upgrade, for the earlier version to go on"),
    Option("accept_loss", "with --rollback: although something came since that would be lost"),
)


@command(*parameters(_UPGRADE))
def upgrade(arguments: Arguments, settings: Settings) -> int:
    """Copies of the files as they were stay in `upgrades/` of the home, those of the last two upgrades."""
    home = settings.home
    if arguments.rollback:
        print(roll_back(prepare_home(home, upgrades=False), accept_loss=arguments.accept_loss))
        return exits.DONE
    check_not_newer(home)
    found = list(outdated(home))
    for line in in_words(found):
        print(line)
    if found and arguments.dry_run:
        print("nothing was changed: `marketing-sync upgrade` does it, as does the next command that writes")
    if not arguments.dry_run:
        prepare_home(home)
    return exits.DONE
