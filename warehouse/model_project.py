"""The dbt project as it lies in this package, and what dbt makes of it once: the manifest.

Parsing takes dbt seconds and depends on nothing but the project and dbt's version. So it is done once per version of both, into
a folder that this user's homes share. Not here: running the models (`models`).
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

from marketing_api.private_folder import private_folder
from warehouse.dbt_internals import COMMAND, MANIFEST, PARSED
from warehouse.errors import WarehouseError

#: Where dbt_project.yml, models, macros and tests are.
PROJECT = Path(__file__).parent
_FOLDERS = ("models", "macros", "snapshots", "tests")

#: What every call of dbt is given: the project, nothing on the terminal, nobody is told anything.
QUIET = (
    *("--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)),
    *("--quiet", "--log-level", "none", "--log-level-file", "none", "--no-use-colors"),
    *("--no-send-anonymous-usage-stats", "--no-version-check"),
)


class ProjectBroken(WarehouseError):
    """The dbt project of this installation cannot be read: a mistake in a model or its description."""


@cache
def fingerprint() -> str:
    """Hash of the project's files and dbt's version."""
    found = hashlib.blake2b(digest_size=12)
    for name in ("dbt-core", "dbt-duckdb"):
        found.update(f"{name} {version(name)}\0".encode())
    for path in sorted(_files()):
        found.update(f"{path.relative_to(PROJECT)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def manifest_path() -> Path:
    """dbt's manifest.json of the project. Takes seconds the first time. Raises ProjectBroken."""
    return _prepared() / MANIFEST


def parsed_path() -> Path:
    """dbt's own form of the same, which is read faster."""
    return _prepared() / PARSED


def _files() -> Iterator[Path]:
    yield from PROJECT.glob("*.yml")
    for folder in _FOLDERS:
        yield from (path for path in (PROJECT / folder).rglob("*") if path.suffix in (".sql", ".yml", ".md"))


def _prepared() -> Path:
    folder = private_folder() / f"models-{fingerprint()}"
    if not (folder / PARSED).exists() or not (folder / MANIFEST).exists():
        _prepare(folder)
    return folder


def _prepare(folder: Path) -> None:
    """Parse into a folder beside it, which takes the name when it is complete: several programs may do so at once."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="models-new-") as made:
        _parse(Path(made))
        shutil.rmtree(folder, ignore_errors=True)
        try:
            Path(made).replace(folder)
        except OSError:  # another program was faster
            if not (folder / PARSED).exists():
                raise
        Path(made).mkdir(exist_ok=True)  # for the context to remove


def _parse(target: Path) -> None:
    """In a process of its own: it computes for seconds, and threads of this one may be asking the service meanwhile."""
    words = ["parse", *QUIET, "--log-level", "error", "--target-path", str(target), "--log-path", str(target)]
    ran = subprocess.run([sys.executable, "-W", "ignore", "-m", COMMAND, *words], capture_output=True, text=True)  # noqa: S603
    if ran.returncode:
        raise ProjectBroken(f"the models cannot be read: {' '.join((ran.stdout or ran.stderr).split())[-600:]}")
