"""Builds the models of a home: runs the SQL that dbt compiled (`dbt_project`) and reports the
outcome of each model and test.

Unchanged models are not built. A model's version is a hash of its rows (for a view, of its inputs).
A model stays if its inputs have the versions that it was last built from. Every model is one
transaction. Not here: the models themselves (`models/`)."""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Unpack

import duckdb

from warehouse.connection import Waits, open_database
from warehouse.dbt_project import Node, compile_nodes, project_fingerprint
from warehouse.duckdb_errors import mask_error
from warehouse.errors import NoWarehouse
from warehouse.policies import GRACE
from warehouse.schema import (
    ensure_schema,
    kinds_of,
    note_fact,
    read_fact,
    read_facts,
    row_counts,
    version_of,
)
from warehouse.sql import (
    fetch_rows,
    fetch_value,
    quote_name,
    quote_relation,
    quote_text,
    transaction,
)


class Status(Enum):
    """Unchanged: its inputs did not change, so it was not run. Failed: it is wrong, or could not be
    built. Skipped: something that it needs failed."""

    OK = "ok"
    UNCHANGED = "unchanged"
    WARNED = "warned"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one model or test. `failures`: rows that break the test."""

    node: Node
    status: Status
    seconds: float = 0.0
    failures: int = 0
    message: str = ""

    @property
    def name(self) -> str:
        """The description of a test that has one, else the name."""
        return (self.node.description if self.node.is_test else "") or self.node.name

    @property
    def sentence(self) -> str:
        """What is wrong with it, without values from the data."""
        if not self.node.is_test:
            return f"model {self.name}: {self.message}"
        test = f"test of {self.node.model}: {self.name.rstrip('.')}"
        return (
            f"{test}, broken by {self.failures:,} rows"
            if self.failures
            else f"{test} could not be evaluated: {self.message}"
        )


@dataclass(frozen=True, slots=True)
class BuildReport:
    """Every model and test of the build, in the order of running. `is_full`: nothing was reused."""

    outcomes: tuple[Outcome, ...] = ()
    is_full: bool = False

    def with_status(self, *statuses: Status) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.status in statuses]

    @property
    def failures(self) -> list[str]:
        """What is wrong, one line each, without values from the data."""
        return [outcome.sentence for outcome in self.with_status(Status.FAILED)]

    @property
    def failure_summary(self) -> str:
        """What failed and what that means, in one sentence; empty if nothing failed."""
        found = self.failures
        if not found:
            return ""
        waiting = sorted(
            {
                outcome.name
                for outcome in self.with_status(Status.SKIPPED)
                if not outcome.node.is_test
            }
        )
        kept = f"; not built because of that: {_list_some(waiting)}" if waiting else ""
        return f"{_list_some(found)}{kept}"

    @property
    def warnings(self) -> list[str]:
        return [outcome.sentence for outcome in self.with_status(Status.WARNED)]


def _list_some(texts: Sequence[str], most: int = 5) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more


#: Names in sync.meta: what the models were made with, what blocks publishing them, and (prefix)
#: what a model was built from.
_MARK = "models"
_BLOCKER = "models_doubt"
_BUILT = "model "
_NOT_BUILT = "the models are not built yet: run `marketing-sync sync`, or the job refresh_models"

#: One build at a time in this process: all write into the same schemas.
_one_at_a_time = threading.Lock()

#: Called when a model or test begins: its number, the total, and the name of the model ("tests" for
#: tests).
OnNode = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings that models depend on. `zones`: time zones of accounts, if the settings differ
    from the account. `attribution_hours`: of all touches, or by channel (`email=120,visit=24`).
    `rate_messages`: rates of fewer messages are marked."""

    attribution_hours: int | str = 120
    rate_messages: int = 100
    timezone: str = "UTC"
    zones: Mapping[str, str] = field(default_factory=dict)
    memory: str = "2GB"

    def list_nodes(self) -> list[Node]:
        """The models and tests with these settings."""
        return compile_nodes(self.variables)

    @property
    def variables(self) -> dict[str, str]:
        return {
            "attribution_hours": f"{self.attribution_hours}",
            "rate_messages": f"{self.rate_messages}",
            "default_time_zone": self.timezone,
            "time_zones": json.dumps(dict(self.zones), sort_keys=True),
            "grace_hours": f"{GRACE.total_seconds() / 3600:g}",
        }


def build_models(
    path: Path,
    settings: ModelSettings | None = None,
    *,
    select: Sequence[str] = (),
    full: bool = False,
    on_node: OnNode | None = None,
    **waits: Unpack[Waits],
) -> BuildReport:
    """Build the models of the warehouse at `path` and test them. `select`: only these models and
    their tests, by name, even if nothing changed.

    Unchanged models are kept, unless the models or the settings changed since the last build, or
    `full` is set. `history` is always kept. The report says what failed. Raises NoWarehouse,
    WarehouseLocked and the other errors of `open_database`."""
    settings = settings or ModelSettings()
    path = path.resolve()
    if not path.exists():
        raise NoWarehouse(f"there is no {path} yet: run `marketing-sync sync` first")
    nodes = settings.list_nodes()
    with (
        _one_at_a_time,
        open_database(path, memory_limit=settings.memory, **waits) as connection,
    ):
        ensure_schema(connection)
        mark = _settings_mark(connection, settings)
        full = full or read_fact(connection, _MARK) != mark
        blocked = _find_blocker(connection)
        with transaction(connection):
            note_fact(connection, _BLOCKER, "the last build of the models did not finish")
        connection.execute("set preserve_insertion_order = false")  # takes less memory
        building = _Build(connection, nodes, is_full=full, is_selected=bool(select))
        report = BuildReport(tuple(building.run_nodes(_choose_nodes(nodes, select), on_node)), full)
        with transaction(connection):
            note_fact(connection, _BLOCKER, report.failure_summary or (blocked if select else ""))
            if not select and not report.failure_summary:
                note_fact(connection, _MARK, mark)
        connection.execute("checkpoint")
    return report


def _choose_nodes(nodes: Sequence[Node], select: Sequence[str]) -> Sequence[Node]:
    """All, or the models of these names with their tests."""
    relations = {node.relation for node in nodes if node.name in select and not node.is_test}
    return [node for node in nodes if node.relation in relations] if select else nodes


class _Build:
    """One build, with what it knows about the relations."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        nodes: Sequence[Node],
        *,
        is_full: bool,
        is_selected: bool,
    ) -> None:
        self._connection = connection
        self._is_full = is_full
        self._views = {node.relation: node for node in nodes if node.kind == "view"}
        #: What models and tests were built from last; ignored if everything is built again.
        self._noted = {} if is_full or is_selected else read_facts(connection, _BUILT)
        self._existing = kinds_of(connection)
        self._versions: dict[str, str] = {}
        self._missing: set[str] = set()  # failed, or needs a model that failed
        self._wrong: set[str] = set()  # fails a test, so nothing is built from it

    def run_nodes(self, nodes: Sequence[Node], on_node: OnNode | None) -> Iterator[Outcome]:
        for number, node in enumerate(nodes, 1):
            if on_node:
                on_node(number, len(nodes), "tests" if node.is_test else node.name)
            blocking = self._missing if node.is_test else self._missing | self._wrong
            is_blocked = not blocking.isdisjoint(node.needs)
            outcome = Outcome(node, Status.SKIPPED) if is_blocked else self._run_node(node)
            if outcome.status in (Status.FAILED, Status.SKIPPED):
                (self._wrong if node.is_test else self._missing).add(node.relation)
            yield outcome

    def _run_node(self, node: Node) -> Outcome:
        began = time.monotonic()
        failures = 0
        try:
            made_from = self._made_from(node)
            noted = self._noted.get(node.id) if node.relation in self._existing else None
            if noted and noted == f"{made_from} {self._relation_version(node.relation)}":
                return Outcome(node, Status.UNCHANGED)  # unchanged since the last build
            with transaction(self._connection):
                if node.is_test:
                    failures = int(
                        fetch_value(self._connection, f"select count(*) from ({node.sql})")
                    )
                else:
                    present = self._existing.get(node.relation)
                    self._existing[node.relation] = materialize_model(
                        self._connection, node, present, is_full=self._is_full
                    )
                    self._versions.pop(node.relation, None)
                built = "" if failures else f"{made_from} {self._relation_version(node.relation)}"
                note_fact(self._connection, _BUILT + node.id, built)
        except duckdb.Error as error:
            return Outcome(node, Status.FAILED, time.monotonic() - began, message=mask_error(error))
        status = Status.OK if not failures else Status.WARNED if node.is_warning else Status.FAILED
        return Outcome(node, status, time.monotonic() - began, failures)

    def _made_from(self, node: Node) -> str:
        return _hash_parts([node.sql, node.later_sql, *map(self._relation_version, node.needs)])

    def _relation_version(self, relation: str) -> str:
        """For a table, the version of its rows; for a view, of its inputs."""
        if relation not in self._versions:
            view = self._views.get(relation)
            if view:
                self._versions[relation] = self._made_from(view)
            else:
                self._versions[relation] = version_of(self._connection, relation)
        return self._versions[relation]


def _hash_parts(parts: object) -> str:
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=12).hexdigest()


def table_sizes(path: Path) -> dict[str, int]:
    """Relation → rows of the models' tables, without the views in `staging`."""
    with open_database(path, read_only=True) as connection:
        made = [
            relation
            for relation, kind in kinds_of(connection).items()
            if relation.startswith(("history.", "marts."))
            or (relation.startswith("staging.") and kind == "table")
        ]
        return row_counts(connection, made)


def publish_blockers(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """What blocks publishing the models of the open warehouse, one line each."""
    found = _find_blocker(connection)
    advice = "" if found == _NOT_BUILT else ". Correct that and run `marketing-sync sync`"
    return [f"{found}{advice}"] if found else []


def _find_blocker(connection: duckdb.DuckDBPyConnection) -> str:
    found = read_fact(connection, _BLOCKER)
    return _NOT_BUILT if found is None else found


def _settings_mark(connection: duckdb.DuckDBPyConnection, settings: ModelSettings) -> str:
    """A mark of the settings that kept tables were built with. If it changes, they are rebuilt."""
    zones = fetch_rows(connection, "select account, timezone from source.business order by all")
    values = {name: value for name, value in asdict(settings).items() if name != "memory"}
    return _hash_parts([project_fingerprint(), values, zones])


# ---- how a compiled model becomes a view or a table


def materialize_model(
    connection: duckdb.DuckDBPyConnection, node: Node, present: str | None, *, is_full: bool
) -> str:
    """Make the model, with its descriptions as COMMENTs, within the caller's transaction; returns
    whether it is a table or a view. `present`: what has its name now.

    `is_full`: an incremental model is made again, too, unless its rows cannot be read again."""
    made = "view" if node.kind == "view" else "table"
    name = quote_relation(node.relation)
    is_grown = node.kind == "incremental" and present == made and (node.is_kept or not is_full)
    if not (is_grown and _merge_rows(connection, node)):
        fetch_rows(connection, f"create schema if not exists {quote_name(node.schema)}")
        if present not in (made, None):
            fetch_rows(connection, f"drop {present} {name}")
        # a single query, without a second statement after it
        fetch_rows(connection, f"create or replace {made} {name} as (\n{node.sql}\n)")
    if is_full or not is_grown:
        describe_model(connection, node, made)
    return made


def describe_model(connection: duckdb.DuckDBPyConnection, node: Node, made: str = "table") -> None:
    """Write the model's descriptions as COMMENTs."""
    name = quote_relation(node.relation)
    fetch_rows(connection, f"comment on {made} {name} is {quote_text(node.description)}")
    for column in node.columns.keys() & _read_columns(connection, name).keys():
        text = quote_text(node.columns[column])
        fetch_rows(connection, f"comment on column {name}.{quote_name(column)} is {text}")


def _merge_rows(connection: duckdb.DuckDBPyConnection, node: Node) -> bool:
    """Write new rows into the table, instead of those with the same key. False if the columns have
    changed and the table can be made again."""
    table = quote_relation(node.relation)
    there = _read_columns(connection, table)
    declared = _read_columns(connection, f"(\n{node.sql}\n)")
    if there != declared and not node.is_kept:
        return False
    for name in declared.keys() - there.keys():  # before its SQL runs, which may read these columns
        fetch_rows(
            connection, f"alter table {table} add column {quote_name(name)} {declared[name]}"
        )
    fetch_rows(connection, f"create or replace temp table fresh as (\n{node.later_sql}\n)")
    if node.key:  # without a key, rows are only added
        same = " and ".join(
            f"fresh.{quote_name(name)} = there.{quote_name(name)}" for name in node.key
        )
        fetch_rows(connection, f"delete from {table} as there using fresh where {same}")
    fetch_rows(connection, f"insert into {table} by name from fresh")
    fetch_rows(connection, "drop table fresh")
    return True


def _read_columns(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    return {name: sql_type for name, sql_type, *_ in fetch_rows(connection, f"describe {relation}")}
