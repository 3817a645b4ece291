"""A folder of the temp directory that only its owner can open: what processes of one user share on one machine.

Not here: what is kept there (`rate_limit`, `warehouse.dbt_internals`). Whatever it is can be made again.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def private_folder() -> Path:
    """The folder, made when it is not there. Raises PermissionError when somebody else has one of that name."""
    folder = Path(tempfile.gettempdir()) / f"marketing-sync-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else; remove it, or set TMPDIR")
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    return folder
