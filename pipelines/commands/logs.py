"""Show what the last commands and runs logged.

`status` lists the runs, and Dagster's UI has the log of each step."""

from pathlib import Path

from home import exits
from home.exits import WrongUse
from home.logs import log_files
from home.options import Option
from home.settings import Settings
from marketing_api.redaction import plain
from pipelines.commands import Arguments, command

_SHOWN = 20


@command(
    Option(
        "run",
        "how the name of a log begins, or a command, whose last one is meant (default: list the last ones)",
        str,
        metavar="[RUN]",
        is_positional=True,
    )
)
def logs(arguments: Arguments, settings: Settings) -> int:
    """No log holds a key, an address of a person or the place of the home. With `-v` a command logs its
    requests, too."""
    files = [path for path in log_files(settings.home) if "-logs-" not in path.name]
    if not arguments.run:
        for path in files[-_SHOWN:]:
            print(path.stem, _lines(path)[-1], sep="  ")
        return exits.DONE
    meant = [
        path for path in files if path.name.startswith(arguments.run) or arguments.run in path.stem.split("-")
    ]
    if not meant:
        raise WrongUse(f"no log is of {arguments.run}: `marketing-sync logs` lists the last ones")
    print(*_lines(meant[-1]), sep="\n")
    return exits.DONE


def _lines(path: Path) -> list[str]:
    """At least one."""
    return plain(path.read_text(encoding="utf-8", errors="replace")).splitlines() or [""]
