"""The home: the folder that holds everything a sync leaves behind, for the owner only (it holds personal data).

No file of a home names the place where the home is, so that it can be moved, copied and restored.

Not here: what is in the files (`warehouse`), where the home is (`settings`).
"""

import errno
import logging
import os
import re
from pathlib import Path

from warehouse.archive.disk import no_folder, set_aside, sweep

log = logging.getLogger(__name__)

_DAGSTER_YAML = Path(__file__).with_name("dagster.yaml")
_SETTING = re.compile(r"^[a-z_]+:", re.MULTILINE)


class HomeError(Exception):
    """The home cannot be used: the message names the folder and what to do."""


def prepare_home(home: Path) -> Path:
    """Create the home and Dagster's folder in it, readable by the owner only, and remove what killed processes left.

    Raises HomeError, or OSError when the disk is full.
    """
    os.umask(0o077)
    dagster = home / "dagster"
    try:
        dagster.mkdir(parents=True, exist_ok=True)
        home.chmod(0o700)
        _write_yaml(dagster / "dagster.yaml")
        sweep(home)
        probe = home / ".writable"
        probe.touch()
        probe.unlink(missing_ok=True)  # another process may have been quicker
    except OSError as problem:
        if problem.errno == errno.ENOSPC:
            raise
        raise HomeError(f"the home {home} cannot be written ({problem.strerror}); set MARKETING_HOME to a folder of yours") from None
    return home


def _write_yaml(path: Path) -> None:
    """Leave alone what a person wrote into it."""
    if not (no_folder(path).exists() and _holds_settings(path)):
        unfinished = path.with_name(f".{path.name}")
        unfinished.write_text(_DAGSTER_YAML.read_text(encoding="utf-8"), encoding="utf-8")
        unfinished.replace(path)  # half of it would pass for what a person wrote


def _holds_settings(path: Path) -> bool:
    """If not, what it held is kept under another name."""
    text = path.read_bytes().decode(errors="replace")
    is_whole = _SETTING.search(text) is not None and "\0" not in text and "\ufffd" not in text
    if text and not is_whole:
        log.warning("%s is damaged: it is %s now, and written anew", path, set_aside(path).name)
    return is_whole
