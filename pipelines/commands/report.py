"""Write the page about what is published, for the business owner."""

from home import exits
from home.folder import prepare_home
from home.settings import Settings
from pipelines.commands import Arguments, command
from pipelines.report.render import write_report


@command()
def report(arguments: Arguments, settings: Settings) -> int:
    """Exit code 1 when nothing is published yet."""
    path, _ = write_report(prepare_home(settings.home, settings.lock_seconds))
    print(f"{path}: {path.stat().st_size / 1000:,.0f} kB, open it in a browser")
    return exits.DONE
