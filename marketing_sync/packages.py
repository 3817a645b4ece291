"""The folder of the program's packages; all of its processes use the same one.

In a clone they are next to this package. A wheel has them in `_app`: `assets` and `warehouse` are
common names, and a user's own packages with these names must keep working."""

import os
import sys
from pathlib import Path

_HERE = Path(__file__).parent
ROOT = _HERE / "_app" if (_HERE / "_app").is_dir() else _HERE.parent


def use_packages() -> None:
    """Put the folder first in the search path, here and in processes that this one starts, such as
    Dagster's code server. So an installed version and a clone in the working folder are never
    mixed."""
    sys.path.insert(0, str(ROOT))
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), *(path for path in paths if path != str(ROOT))]
    )
    os.environ["PYTHONSAFEPATH"] = "1"  # not the working folder
