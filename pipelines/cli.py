"""The command line: parsing, dispatch, and turning errors into a sentence and an exit code. The commands are in `commands/`.

Imports here are few: everything else is imported when Ctrl-C is taken care of, and only what the command needs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from marketing_api.redaction import plain
from pipelines import exits, interrupts

#: name → what it does; each is a module of `pipelines.commands`.
COMMANDS = {
    "check": "one cheap call: who the key belongs to, and the limit",
    "sync": "the nightly sync, or parts of it",
    "push": "rows of a file or query back to the service; only told without --apply",
    "plan": "what the next sync would ask, how long that takes, and whether the maximum age is kept",
    "status": "how fresh and complete everything is, the last runs, rejected records",
    "publish": "write the copy that analysts open and its report, or go back to the one before",
    "report": "one page about what is published, for the business owner",
    "rebuild": "write the warehouse anew from the archive, without a request",
    "ui": "the Dagster UI on this machine",
    "call": "any operation, validated; writes ask first",
    "sandbox": "a stand-in for the service, on this machine",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    with interrupts.end_at_once():
        arguments = _parser(argv).parse_args(argv)
        import_module("pipelines.failures")
        with interrupts.raise_in_main():
            try:
                return _run(arguments)
            except KeyboardInterrupt:
                return _say(f"\n{interrupts.MESSAGE}", exits.INTERRUPTED)


def _run(arguments: argparse.Namespace) -> int:
    import logging
    from pathlib import Path

    from pipelines.failures import explain
    from pipelines.logs import logging_to_home
    from pipelines.settings import SettingsError, load_settings

    try:
        settings = load_settings(Path.cwd())
    except SettingsError as problem:
        return _say(f"marketing-sync: {problem}", exits.WRONG_USE)
    with logging_to_home(settings, arguments.command) as log:
        logging.getLogger(__name__).info("%s begins", arguments.command)
        try:
            code = int(import_module(f"pipelines.commands.{arguments.command}").run(arguments, settings))
        except Exception as problem:  # a traceback helps nobody who cannot read it
            text, code = explain(problem)
            _say(f"marketing-sync: {text}", code)
        logging.getLogger(__name__).info("%s ends with exit code %d", arguments.command, code)
        return _say(f"marketing-sync: {log.path} shows where it happened", code) if log.has_errors and log.is_open else code


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="marketing-sync", description="Everything of a marketing-automation account in DuckDB, every night."
    )
    chosen = next((word for word in argv if not word.startswith("-")), "")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, doc in COMMANDS.items():
        command = commands.add_parser(name, help=doc, description=doc[0].upper() + doc[1:] + ".")
        if name == chosen:  # the others' modules need not be imported to run this one
            import_module(f"pipelines.commands.{name}").add_arguments(command)
    return parser


def _say(text: str, code: int) -> int:
    print(plain(text), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
