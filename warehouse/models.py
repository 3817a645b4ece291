"""Builds the models of a home, with dbt in this process, and says what became of them and of their tests.

DuckDB lets one process have a file open. So the file is opened as everywhere (`connection`: waiting, and saying for whom), and dbt
joins as a further connection of the same process; nobody can come in between. Not here: dbt's internals (`dbt_internals`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import duckdb

from marketing_api.redaction import MASK, without_addresses
from warehouse import model_project
from warehouse.connection import DEADLINE_S, OnWait, connect
from warehouse.errors import NoWarehouse, WarehouseError
from warehouse.loads.coverage import GRACE
from warehouse.schema import ensure_schema
from warehouse.sql import quoted, rows, transaction, value
from warehouse.tables import TABLES

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


def status_of(word: str) -> Status:
    """What dbt's word means."""
    return _STATUS.get(word, Status.SKIPPED)


def discreet(message: str) -> str:
    """The first telling line of one of dbt's messages, without what it may quote from the data."""
    lines = [
        line.strip() for line in message.splitlines() if line.strip() and not line.lstrip().startswith(("Database Error", "Runtime Error"))
    ]
    return without_addresses(_QUOTED_VALUE.sub(MASK, lines[0]))[:300] if lines else ""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """Every model and test that was to run, in the order of finishing."""

    outcomes: tuple[Outcome, ...]
    is_full: bool

    def of(self, *statuses: Status) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.status in statuses]

    @property
    def problem(self) -> str:
        """What failed and what that means, in one sentence; empty when nothing did."""
        failed, skipped = self.of(Status.FAILED), self.of(Status.SKIPPED)
        if not failed:
            return ""
        waiting = sorted({outcome.name for outcome in skipped if not outcome.is_test})
        kept = f"; not built because of that: {_some(waiting)}" if waiting else ""
        return f"{_some(outcome.sentence for outcome in failed)}{kept}"

    @property
    def warnings(self) -> list[str]:
        return [outcome.sentence for outcome in self.of(Status.WARNED)]


def _some(texts: Iterable[str], most: int = 5) -> str:
    texts = list(texts)
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more


#: Names in sync.meta: what the models were made with, and what speaks against them.
_MARK, _DOUBT = "models", "models_doubt"
_NOT_BUILT = "the models were never built: run `marketing-sync sync`"

#: dbt's command. The unit tests are for whoever changes the models: the test suite runs them.
_BUILD = ("build", "--exclude-resource-type", "unit_test")

#: Told when a model or test begins: its number, how many there are, and the name of the model ("tests" for tests).
OnNode = Callable[[int, int, str], None]

#: dbt keeps what it does in module-wide state, the environment included.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What the models depend on beside the data. `zones`: time zones of accounts that are not as the account says."""

    attribution_hours: int = 120
    timezone: str = "UTC"
    zones: Mapping[str, str] = field(default_factory=dict)
    memory: str = "2GB"

    def environment(self, path: Path) -> dict[str, str]:
        """The variables that profiles.yml and the models read."""
        return {
            "MARKETING_ATTRIBUTION_HOURS": str(self.attribution_hours),
            "MARKETING_MODELS_TIMEZONE": self.timezone,
            "MARKETING_MODELS_ZONES": json.dumps(dict(self.zones)),
            "MARKETING_MODELS_MEMORY": self.memory,
            "MARKETING_MODELS_GRACE_HOURS": f"{GRACE.total_seconds() / 3600:g}",
            "MARKETING_MODELS_FILE": str(path),
        }


def build(
    path: Path,
    settings: ModelSettings | None = None,
    *,
    select: Sequence[str] = (),
    full: bool = False,
    deadline_s: float = DEADLINE_S,
    on_wait: OnWait | None = None,
    on_node: OnNode | None = None,
) -> BuildReport:
    """Build the models of the warehouse at `path` and test them; `select` (names, or dbt's selectors) leaves out others.

    What can be kept is kept, unless the models or the settings changed since the last build, or `full` is set. `history` is always
    kept. What failed is in the report. Raises NoWarehouse, WarehouseLocked and the other errors of `connect`, ProjectBroken.
    """
    settings = settings or ModelSettings()
    path = path.resolve()
    if not path.exists():
        raise NoWarehouse(f"there is no {path} yet: run `marketing-sync sync` first")
    manifest = _manifest()
    with _one_at_a_time, connect(path, deadline_s=deadline_s, memory_limit=settings.memory, on_wait=on_wait) as connection:
        ensure_schema(connection, TABLES.values())
        mark = _mark(connection, settings)
        full = full or _marked(connection) != mark
        words = [*(["--select", *select] if select else []), *(["--full-refresh"] if full else [])]
        doubted = _doubt(connection)
        _note(connection, _DOUBT, "the last building of the models did not come to its end")
        report = BuildReport(tuple(_run(manifest, path, settings, words, on_node)), full)
        _note(connection, _DOUBT, report.problem or (doubted if select else ""))
        if not select and not report.problem:
            _note(connection, _MARK, mark)
        connection.execute("checkpoint")
    return report


_MADE = "database_name = current_database() and schema_name in ('staging', 'history', 'marts')"


def table_sizes(path: Path) -> dict[tuple[str, str], int]:
    """(schema, table) → rows, of what the models made; the views in `staging` are left out."""
    views = f"select schema_name, view_name from duckdb_views() where {_MADE} and schema_name <> 'staging'"
    with connect(path, read_only=True) as connection:
        names = rows(connection, f"select schema_name, table_name from duckdb_tables() where {_MADE} union all {views}")
        counts = (value(connection, f"select count(*) from {quoted(schema)}.{quoted(name)}") for schema, name in names)
        return {(schema, name): int(count) for (schema, name), count in zip(names, counts, strict=True)}


def table_columns(path: Path) -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """(schema, table) → its columns as (name, type, comment), views included."""
    found: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    with connect(path, read_only=True) as connection:
        sql = f"select schema_name, table_name, column_name, data_type, comment from duckdb_columns() where {_MADE} order by column_index"
        for schema, table, *column in rows(connection, sql):
            found.setdefault((schema, table), []).append((column[0], column[1], column[2] or ""))
    return found


def doubts(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """What speaks against showing the models of the open warehouse to anybody, a line each."""
    if found := _doubt(connection):
        return [f"{found}. Correct that and run `marketing-sync sync`"] if found != _NOT_BUILT else [found]
    return []


def _manifest() -> Any:
    with _quiet():
        from dbt.contracts.graph.manifest import Manifest

        return Manifest.from_msgpack(model_project.parsed_path().read_bytes())


@dataclass(frozen=True, slots=True)
class Compiled:
    """A model's SQL as it runs, with what its yml declares: `personal` of columns, and its small groups (`Masking.relation`)."""

    relation: tuple[str, str]  # schema, table
    sql: str
    declared: Mapping[str, bool]
    small_groups: Mapping[str, Any]


def compiled(path: Path) -> list[Compiled]:
    """Every model of a warehouse without rows: as it runs the first time and, after that was done, as it runs ever after."""
    settings = ModelSettings()
    with _one_at_a_time, connect(path, memory_limit=settings.memory) as connection:
        ensure_schema(connection, TABLES.values())
        first, _, later = (_invoke(_manifest(), path, settings, (word,)) for word in ("compile", "run", "compile"))
    nodes = [result.node for result in (*first, *later) if str(result.node.resource_type) == "model"]
    return [_compiled(node) for node in nodes]


def _compiled(node: Any) -> Compiled:
    declared = {name: column.meta["personal"] for name, column in node.columns.items() if "personal" in column.meta}
    return Compiled((node.schema, node.alias), node.compiled_code, declared, node.config.meta.get("small_groups", {}))


def _run(manifest: Any, path: Path, settings: ModelSettings, words: Sequence[str], on_node: OnNode | None) -> Iterator[Outcome]:
    return map(_outcome, _invoke(manifest, path, settings, (*_BUILD, *words), on_node))


def _invoke(manifest: Any, path: Path, settings: ModelSettings, words: Sequence[str], on_node: OnNode | None = None) -> Sequence[Any]:
    """dbt's results of a command."""
    folder = path.parent / "dbt"
    folders = ("--target-path", str(folder), "--log-path", str(folder), "--no-write-json")
    with _quiet(), _environment(settings.environment(path)):
        from dbt.adapters.duckdb.connections import DuckDBConnectionManager
        from dbt.cli.main import dbtRunner

        try:
            result = dbtRunner(manifest, [_teller(on_node)] if on_node else []).invoke([*words, *model_project.QUIET, *folders])
        finally:
            DuckDBConnectionManager.close_all_connections()  # type: ignore[no-untyped-call]
    if isinstance(result.exception, KeyboardInterrupt):
        raise result.exception
    if result.exception is not None:
        raise WarehouseError(f"the models cannot be built: {discreet(str(result.exception))}")
    return getattr(result.result, "results", ())


def _teller(on_node: OnNode) -> Callable[[Any], None]:
    def tell(event: Any) -> None:
        if event.info.name == "LogStartLine":
            node = event.data.node_info
            on_node(event.data.index, event.data.total, "tests" if node.resource_type == "test" else node.node_name)

    return tell


def _outcome(result: Any) -> Outcome:
    node = result.node
    is_test = str(node.resource_type) == "test"
    model = str(node.attached_node or "").rsplit(".", 1)[-1] if is_test else node.name
    return Outcome(
        unique_id=node.unique_id,
        name=(node.description if is_test else "") or node.name,
        model=model,
        is_test=is_test,
        status=status_of(str(result.status)),
        seconds=float(result.execution_time),
        failures=result.failures,
        message=discreet(result.message or ""),
    )


def _mark(connection: duckdb.DuckDBPyConnection, settings: ModelSettings) -> str:
    """What everything that is kept was made with: another mark, and it is made anew."""
    zones = rows(connection, "select account, timezone from source.business order by all")
    values = {name: value for name, value in asdict(settings).items() if name != "memory"}
    text = json.dumps([model_project.fingerprint(), values, zones], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _marked(connection: duckdb.DuckDBPyConnection) -> str | None:
    return _noted(connection, _MARK)


def _doubt(connection: duckdb.DuckDBPyConnection) -> str:
    found = _noted(connection, _DOUBT)
    return _NOT_BUILT if found is None else found


def _noted(connection: duckdb.DuckDBPyConnection, name: str) -> str | None:
    found = value(connection, "select value from sync.meta where name = ?", [name])
    return None if found is None else str(found)


def _note(connection: duckdb.DuckDBPyConnection, name: str, text: str) -> None:
    with transaction(connection):
        rows(connection, "delete from sync.meta where name = ?", [name])
        rows(connection, "insert into sync.meta values (?, ?)", [name, text])


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of dbt's libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


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
