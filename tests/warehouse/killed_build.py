"""Builds models and is killed in the middle: `FILE SELECTED…`, in a process of its own."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from warehouse.models import build_models


def main(words: Sequence[str]) -> int:
    def on_node(number: int, total: int, name: str) -> None:
        if name == "attribution":
            os.kill(os.getpid(), signal.SIGKILL)

    build_models(Path(words[0]), select=words[1:], on_node=on_node)
    return 0
