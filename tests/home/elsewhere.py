"""The command line on a system without `/proc`, as macOS is one: forced, since the tests run on Linux."""

import builtins
import io
import os
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

from marketing_sync import cli


def main(words: Sequence[str]) -> int:
    with (
        patch("io.open", _without_proc(io.open)),
        patch("builtins.open", _without_proc(builtins.open)),
        patch("os.stat", _without_proc(os.stat)),
    ):
        return cli.main(words)


def _without_proc(function: Callable[..., Any]) -> Callable[..., Any]:
    def without(path: Any, *rest: Any, **options: Any) -> Any:
        if str(path).startswith("/proc"):
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return function(path, *rest, **options)

    return without
