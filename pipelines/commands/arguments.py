"""Options as the command line types them. Not here: which there are (`pipelines.options`)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from pipelines.options import Option


class _Parser(Protocol):
    """A parser, or a group of one."""

    def add_argument(self, *names: str, **how: Any) -> argparse.Action: ...


def add_options(parser: _Parser, options: Iterable[Option]) -> None:
    """Those that the command line has."""
    for option in options:
        if not option.in_command:
            parser.add_argument(option.flag, help=option.help.replace("%", "%%"), **_how(option))


def _how(option: Option) -> dict[str, Any]:
    if option.holds is bool:
        return {"action": "store_true"}
    how = {"default": option.unset, "metavar": option.metavar, "type": _reader(option), "choices": option.choices or None}
    if option.holds is list:
        return {**how, "action": "extend", "nargs": "*" if option.is_positional else "+"}
    return {**how, "nargs": "?"} if option.is_positional else how


def _reader(option: Option) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return option.read(text)
        except ValueError as problem:
            raise argparse.ArgumentTypeError(f"{text!r} is {problem}") from None

    return read
