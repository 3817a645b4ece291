"""Where `marketing-sync` begins. Installed from a wheel, the other packages stand in `_app` beside this file:
names like `assets` and `warehouse` are common ones, and a user's own packages of those names stay theirs. In
a clone there is no such folder."""

import os
import sys
from importlib import import_module
from pathlib import Path

_APP = Path(__file__).with_name("_app")


def main() -> int:
    """Run one command; returns the exit code."""
    if _APP.is_dir():
        sys.path.insert(0, str(_APP))
        # for the programs that it starts, such as Dagster's code server; they would look into the working
        # folder first
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_APP), os.environ.get("PYTHONPATH")]))
        os.environ["PYTHONSAFEPATH"] = "1"
    code: int = import_module("pipelines.cli").main()  # by name, since nothing here imports what is above it
    return code
