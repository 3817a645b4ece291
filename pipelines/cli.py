"""The command line: parsing, dispatch, and turning errors into a sentence and an exit code. The commands are in `commands/`."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from marketing_api.errors import AuthenticationFailed, InvalidCall, MarketingApiError
from pipelines import exits
from pipelines.home import HomeError
from pipelines.settings import SettingsError, load_settings
from warehouse.errors import WarehouseError

#: name → what it does; each is a module of `pipelines.commands`.
COMMANDS = {
    "check": "one cheap call: who the key belongs to, and the limit",
    "sync": "the nightly sync, or parts of it",
    "status": "how fresh and complete everything is, the last runs, rejected records",
    "rebuild": "write the warehouse anew from the archive, without a request",
    "ui": "the Dagster UI on this machine",
    "call": "any operation, validated; writes ask first",
    "sandbox": "a stand-in for the service, on this machine",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser(argv).parse_args(argv)
    logging.basicConfig(level=os.environ.get("MARKETING_LOG", "WARNING").upper(), format="%(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a service manager's stop cleans up as Ctrl-C does
    try:
        settings = load_settings(Path.cwd())
        return int(import_module(f"pipelines.commands.{arguments.command}").run(arguments, settings))
    except KeyboardInterrupt:
        print("\nstopped; what has come is kept, and the next run goes on from there", file=sys.stderr)
        return exits.INTERRUPTED
    except (SettingsError, HomeError, InvalidCall, AuthenticationFailed) as problem:
        return _say(problem, exits.WRONG_USE)
    except (MarketingApiError, WarehouseError) as problem:
        return _say(problem, exits.INCOMPLETE)
    except OSError as problem:
        if problem.errno == errno.ENOSPC:
            return _say("the disk is full; free some room and run the command again, nothing that came is lost", exits.INCOMPLETE)
        return _say(problem, exits.INCOMPLETE)


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="marketing-sync", description="Everything of a marketing-automation account in DuckDB, every night."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, doc in COMMANDS.items():
        command = commands.add_parser(name, help=doc, description=doc[0].upper() + doc[1:] + ".")
        if name in argv:  # the others' modules need not be imported to run this one
            import_module(f"pipelines.commands.{name}").add_arguments(command)
    return parser


def _say(problem: object, code: int) -> int:
    print(f"marketing-sync: {problem}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
