"""Where the packages of the program are, and that all of its processes use the same.

In a clone they lie beside this one. A wheel has them in `_app`: names like `assets` and `warehouse`
are common ones, and a user's own packages of those names stay theirs."""

import os
import sys
from pathlib import Path

_HERE = Path(__file__).parent
ROOT = _HERE / "_app" if (_HERE / "_app").is_dir() else _HERE.parent


def use_packages() -> None:
    """Put them first, here and in the processes that this one starts, such as Dagster's code
    server: an installed version and a clone in the working folder never mix."""
    sys.path.insert(0, str(ROOT))
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), *(path for path in paths if path != str(ROOT))]
    )
    os.environ["PYTHONSAFEPATH"] = "1"  # not the working folder
