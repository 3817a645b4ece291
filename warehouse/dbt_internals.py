"""dbt's internals: the only module of this package that reaches into dbt beyond its command line; a test names the version.

The project as it lies in this package, and what dbt makes of it once, the manifest: parsing takes seconds and depends on nothing but the
project and dbt's version, so it is done once per version of both, into a folder that this user's homes share. Running a command in this
process, and reading its results. Not here: when the models are built and what is kept (`models`).
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from marketing_api.rate_limit.shared_state import private_folder
from marketing_api.redaction import MASK, without_addresses
from warehouse.errors import WarehouseError

#: Where dbt_project.yml, models, macros and tests are.
PROJECT = Path(__file__).parent
_FOLDERS = ("models", "macros", "snapshots", "tests")
_MANIFEST, _PARSED = "manifest.json", "partial_parse.msgpack"

#: What every call of dbt is given: the project, nothing on the terminal, no statistics sent.
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
    files = [path for folder in _FOLDERS for path in (PROJECT / folder).rglob("*") if path.suffix in (".sql", ".yml", ".md")]
    for path in sorted([*PROJECT.glob("*.yml"), *files]):
        found.update(f"{path.relative_to(PROJECT)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def manifest_path() -> Path:
    """dbt's manifest.json of the project. Takes seconds the first time. Raises ProjectBroken."""
    return _prepared() / _MANIFEST


def _prepared() -> Path:
    """The folder with both. Parsed into one beside it, which takes the name when it is complete: several programs may do so at once.

    In a process of its own: it computes for seconds, and threads of this one may be sending requests meanwhile.
    """
    folder = private_folder() / f"models-{fingerprint()}"
    if (folder / _PARSED).exists() and (folder / _MANIFEST).exists():
        return folder
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="models-new-") as made:
        words = ["parse", *QUIET, "--log-level", "error", "--target-path", made, "--log-path", made]
        ran = subprocess.run([sys.executable, "-W", "ignore", "-m", "dbt.cli.main", *words], capture_output=True, text=True)  # noqa: S603
        if ran.returncode:
            raise ProjectBroken(f"the models cannot be read: {' '.join((ran.stdout or ran.stderr).split())[-600:]}")
        shutil.rmtree(folder, ignore_errors=True)
        try:
            Path(made).replace(folder)
        except OSError:  # another program was faster
            if not (folder / _PARSED).exists():
                raise
        Path(made).mkdir(exist_ok=True)  # for the context to remove
    return folder


#: DuckDB quotes the values that it chokes on in single quotes; names stand in double ones.
_QUOTED_VALUE = re.compile(r"'[^']*'")


class Status(Enum):
    """Failed: it is wrong, or could not be built. Skipped: something that it needs failed."""

    OK = "ok"
    WARNED = "warned"
    FAILED = "failed"
    SKIPPED = "skipped"


_STATUS = {
    "success": Status.OK,
    "pass": Status.OK,
    "no-op": Status.OK,
    "warn": Status.WARNED,
    "error": Status.FAILED,
    "fail": Status.FAILED,
    "runtime error": Status.FAILED,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One model or test. `failures`: rows that break the test; `model`: the model that it is about."""

    unique_id: str
    name: str
    model: str
    is_test: bool
    status: Status
    seconds: float
    failures: int | None = None
    message: str = ""

    @property
    def sentence(self) -> str:
        """What is the matter with it, without values from the data."""
        if not self.is_test:
            return f"model {self.name}: {self.message}"
        if self.failures:
            return f"test of {self.model}: {self.name}, broken by {self.failures:,} rows"
        return f"test of {self.model}: {self.name} could not be evaluated: {self.message}"


def discreet(message: str) -> str:
    """The first telling line of one of dbt's messages, without what it may quote from the data."""
    stripped = map(str.strip, message.splitlines())
    lines = [line for line in stripped if line and not line.startswith(("Database Error", "Runtime Error"))]
    return without_addresses(_QUOTED_VALUE.sub(MASK, lines[0]))[:300] if lines else ""


#: Called when a model or test begins: its number, how many there are, and the name of the model ("tests" for tests).
OnNode = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A model's SQL as it runs, with what its yml declares: `personal` of columns, and its small groups (`Masking.relation`)."""

    relation: tuple[str, str]  # schema, table
    sql: str
    declared: Mapping[str, bool]
    small_groups: Mapping[str, Any]


def compiled_of(node: Any) -> Compiled:
    declared = {name: column.meta["personal"] for name, column in node.columns.items() if "personal" in column.meta}
    return Compiled((node.schema, node.alias), node.compiled_code, declared, node.config.meta.get("small_groups", {}))


def invoke(parsed: Any, words: Sequence[str], folder: Path, environment: Mapping[str, str], on_node: OnNode | None) -> Sequence[Any]:
    """dbt's results of a command; it writes into `folder` and reads its profile from the `environment`. Raises WarehouseError."""
    folders = ("--target-path", str(folder), "--log-path", str(folder), "--no-write-json")

    def observe(event: Any) -> None:
        if on_node and event.info.name == "LogStartLine":
            node = event.data.node_info
            on_node(event.data.index, event.data.total, "tests" if node.resource_type == "test" else node.node_name)

    with warnings.catch_warnings(action="ignore"), _environment(environment):
        from dbt.adapters.duckdb.connections import DuckDBConnectionManager
        from dbt.cli.main import dbtRunner

        try:
            result = dbtRunner(parsed, [observe] if on_node else []).invoke([*words, *QUIET, *folders])
        finally:
            DuckDBConnectionManager.close_all_connections()  # type: ignore[no-untyped-call]
    if isinstance(result.exception, KeyboardInterrupt):
        raise result.exception
    if result.exception is not None:
        raise WarehouseError(f"the models cannot be built: {discreet(str(result.exception))}")
    return getattr(result.result, "results", ())


def outcome_of(result: Any) -> Outcome:
    node = result.node
    is_test = str(node.resource_type) == "test"
    return Outcome(
        unique_id=node.unique_id,
        name=(node.description if is_test else "") or node.name,
        model=str(node.attached_node or "").rsplit(".", 1)[-1] if is_test else node.name,
        is_test=is_test,
        status=_STATUS.get(str(result.status), Status.SKIPPED),
        seconds=float(result.execution_time),
        failures=result.failures,
        message=discreet(result.message or ""),
    )


def manifest() -> Any:
    with warnings.catch_warnings(action="ignore"):
        from dbt.contracts.graph.manifest import Manifest

        return Manifest.from_msgpack((_prepared() / _PARSED).read_bytes())


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """dbt reads its profile from the environment."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, former in before.items():
            if former is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = former
