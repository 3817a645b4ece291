"""Write the report for the business owner from the published copy."""

from home import exits
from home.folder import in_use, prepare_home
from home.settings import Settings
from marketing_sync.commands import declare_command
from report.render import write_report


@declare_command(needs_keys=False)
def report(settings: Settings) -> int:
    """The exit code is 1 if nothing is published yet."""
    with in_use(prepare_home(settings.home, settings.lock_seconds)):
        path, _ = write_report(settings.home, settings.accounts)
    print(f"{path}: {path.stat().st_size / 1000:,.0f} kB, open it in a browser")
    return exits.DONE
