"""Write the page about what is published, for the business owner."""

import webbrowser

from home import exits
from home.folder import in_use, prepare_home
from home.options import Option
from home.settings import Settings
from pipelines.commands import Arguments, declare_command, print_error
from pipelines.report.render import write_report


@declare_command(Option("open", "open it in the browser, too"), needs_keys=False)
def report(arguments: Arguments, settings: Settings) -> int:
    """Exit code 1 when nothing is published yet."""
    with in_use(prepare_home(settings.home, settings.lock_seconds)):
        path, _ = write_report(settings.home)
    size = f"{path}: {path.stat().st_size / 1000:,.0f} kB"
    print(size if arguments.open else f"{size}, open it in a browser")
    if arguments.open and not webbrowser.open(path.as_uri()):
        return print_error("no browser was found: open the file yourself", exits.INCOMPLETE)
    return exits.DONE
