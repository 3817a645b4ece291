"""Gives the processes that have this folder on their PYTHONPATH a machine's clock that is moved while they
run.

The file that ATTACK_CLOCK names holds by how many seconds it is ahead of the real one. Everything of ours
reads the time of day in `marketing_api.clock`, and nothing else there is changed: what only goes forward goes
on as it does."""

import os
import time as real
from pathlib import Path
from typing import Any

from marketing_api import clock

_AHEAD = Path(os.environ["ATTACK_CLOCK"])


class _Moved:
    """The module `time` with another time of day."""

    def __getattr__(self, name: str) -> Any:
        return getattr(real, name)

    @staticmethod
    def time() -> float:
        return real.time() + float(_AHEAD.read_text())


clock.time = _Moved()  # type: ignore[assignment]
