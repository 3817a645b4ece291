"""The home: the folder that holds everything a sync leaves behind, for the owner only (it holds personal data).

No file of a home names the place where the home is, so that it can be moved, copied and restored.

Not here: what is in the files (`warehouse`), where the home is (`settings`).
"""

import errno
import logging
import os
import re
from pathlib import Path

from warehouse.archive.disk import RESTORING, no_folder, set_aside, sweep

log = logging.getLogger(__name__)

_DAGSTER_YAML = Path(__file__).with_name("dagster.yaml")
#: As earlier versions wrote it: with the place of the home then, with the module that the class was in → as it is written now.
_OUTDATED = {
    re.compile(r'^( +base_dir: )"[^"\n]*/dagster/history/runs"$', re.MULTILINE): r"\1history/runs",
    re.compile(r"^( +module: )pipelines\.run_history$", re.MULTILINE): r"\1pipelines.dagster_internals",
}

_SETTING = re.compile(r"^[a-z_]+:", re.MULTILINE)


class HomeError(Exception):
    """The home cannot be used: the message names the folder and what to do."""


def prepare_home(home: Path) -> Path:
    """Create the home and Dagster's folder in it, readable by the owner only, and remove what killed processes left.

    Raises HomeError, or OSError when the disk is full.
    """
    os.umask(0o077)
    dagster = home / "dagster"
    if (home / RESTORING).exists():
        raise HomeError(f"{home} is being restored, and that has not ended: run `marketing-sync restore` again")
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
    text = _text_of(path) if no_folder(path).exists() else ""
    current = text or _DAGSTER_YAML.read_text(encoding="utf-8")
    for outdated, now in _OUTDATED.items():
        current = outdated.sub(now, current)
    if current != text or not path.exists():
        unfinished = path.with_name(f".{path.name}")
        unfinished.write_text(current, encoding="utf-8")
        unfinished.replace(path)  # half of it would pass for what a person wrote


def _text_of(path: Path) -> str:
    """Empty when it holds no settings; what it held is kept under another name."""
    text = path.read_bytes().decode(errors="replace")
    if not text or (_SETTING.search(text) and "\0" not in text and "\ufffd" not in text):
        return text
    log.warning("%s is damaged: it is %s now, and written anew", path, set_aside(path).name)
    return ""
