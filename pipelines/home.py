"""The home: the folder that holds everything a sync leaves behind, for the owner only (it holds personal data).

No file of a home names the place where the home is, so that it can be moved, copied and restored.

Not here: what is in the files (`warehouse`), where the home is (`settings`).
"""

import errno
import os
import re
from pathlib import Path

from warehouse.archive.disk import sweep

_DAGSTER_YAML = """\
# Written once by marketing-sync; yours to change.
concurrency:
  pools:
    default_limit: 1   # steps of the pool `warehouse` take turns across runs
    granularity: op
run_monitoring:
  enabled: true        # a run whose process died is marked as failed
compute_logs:          # what a step prints is not captured: that takes four processes a run, and steps log to Dagster
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
telemetry:
  enabled: false
nux:
  enabled: false
event_log_storage:     # Dagster's own, without a flush to disk per event
  module: pipelines.dagster_internals
  class: KeptOpenEventLog
  config:
    base_dir: history/runs   # in this folder, wherever it is: a home can be moved and copied
"""
#: The module of the class in the version before.
_OUTDATED = re.compile(r"^( +module: )pipelines\.run_history$", re.MULTILINE)


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
    text = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
    current = _OUTDATED.sub(r"\1pipelines.dagster_internals", text or _DAGSTER_YAML)
    if current != text or not path.exists():
        unfinished = path.with_name(f".{path.name}")
        unfinished.write_text(current, encoding="utf-8", errors="surrogateescape")
        unfinished.replace(path)  # half of it would pass for what a person wrote
