"""Builds the models of a home, with dbt in this process, and says what became of them and of their tests.

DuckDB lets one process have a file open. So the file is opened as everywhere (`connection`: waiting, and saying for whom), and dbt
joins as a further connection of the same process; nobody can come in between. Not here: dbt's internals (`dbt_internals`).
"""

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import duckdb

from warehouse.connection import DEADLINE_S, OnWait, connect
from warehouse.dbt_internals import Compiled, OnNode, Outcome, Status, compiled_of, fingerprint, invoke, manifest, outcome_of
from warehouse.errors import NoWarehouse
from warehouse.loads.coverage import GRACE
from warehouse.schema import ensure_schema, fact, note_fact
from warehouse.sql import quoted, rows, transaction, value
from warehouse.tables import TABLES


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


#: Names in sync.meta: what the models were made with, and what blocks publishing them.
_MARK, _BLOCKER = "models", "models_doubt"
_NOT_BUILT = "the models were never built: run `marketing-sync sync`"

#: dbt's command. The unit tests are for whoever changes the models: the test suite runs them.
_BUILD = ("build", "--exclude-resource-type", "unit_test")


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
    parsed = manifest()
    with _one_at_a_time, connect(path, deadline_s=deadline_s, memory_limit=settings.memory, on_wait=on_wait) as connection:
        ensure_schema(connection, TABLES.values())
        mark = _mark(connection, settings)
        full = full or fact(connection, _MARK) != mark
        words = [*(["--select", *select] if select else []), *(["--full-refresh"] if full else [])]
        blocked = _blocker(connection)
        with transaction(connection):
            note_fact(connection, _BLOCKER, "the last building of the models did not come to its end")
        results = invoke(parsed, (*_BUILD, *words), path.parent / "dbt", settings.environment(path), on_node)
        report = BuildReport(tuple(map(outcome_of, results)), full)
        with transaction(connection):
            note_fact(connection, _BLOCKER, report.problem or (blocked if select else ""))
            if not select and not report.problem:
                note_fact(connection, _MARK, mark)
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


def publish_blockers(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """What blocks publishing the models of the open warehouse, a line each."""
    found = _blocker(connection)
    return [found if found == _NOT_BUILT else f"{found}. Correct that and run `marketing-sync sync`"] if found else []


def _blocker(connection: duckdb.DuckDBPyConnection) -> str:
    found = fact(connection, _BLOCKER)
    return _NOT_BUILT if found is None else found


def compiled(path: Path) -> list[Compiled]:
    """Every model of a warehouse without rows: as it runs the first time and, after that was done, as it runs ever after."""
    settings = ModelSettings()
    with _one_at_a_time, connect(path, memory_limit=settings.memory) as connection:
        ensure_schema(connection, TABLES.values())
        run = partial(invoke, folder=path.parent / "dbt", environment=settings.environment(path), on_node=None)
        first, _, later = (run(manifest(), (word,)) for word in ("compile", "run", "compile"))
    nodes = [result.node for result in (*first, *later) if str(result.node.resource_type) == "model"]
    return [compiled_of(node) for node in nodes]


def _mark(connection: duckdb.DuckDBPyConnection, settings: ModelSettings) -> str:
    """What everything that is kept was made with: another mark, and it is made anew."""
    zones = rows(connection, "select account, timezone from source.business order by all")
    values = {name: value for name, value in asdict(settings).items() if name != "memory"}
    text = json.dumps([fingerprint(), values, zones], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
