"""The dbt project of this package as SQL: every model and test, compiled by dbt. `models` runs it.

dbt is the compiler and nothing else: what it writes depends on the project and on its version, so that it runs once for each of these, in a
process of its own. What it wrote is kept in a folder that this user's homes share, with places for the values of settings.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from marketing_api.rate_limit.shared_state import private_folder
from warehouse.errors import WarehouseError

#: Where dbt_project.yml, models, macros and tests are.
PROJECT = Path(__file__).parent
_FOLDERS = ("models", "macros", "tests")

#: The file that dbt believes to work on: its name is the database's in every relation, and is taken out again.
_SCRATCH, _DATABASE = "warehouse.duckdb", '"warehouse".'
_NODES = "nodes.json"

#: What every call of dbt is given: the project, nothing on the terminal, no statistics sent.
QUIET = (
    *("--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)),
    *("--quiet", "--log-level", "none", "--log-level-file", "none", "--no-use-colors"),
    *("--no-send-anonymous-usage-stats", "--no-version-check"),
)


class ProjectBroken(WarehouseError):
    """The dbt project of this installation cannot be read: a mistake in a model or its description."""


@dataclass(frozen=True, slots=True)
class Node:
    """A model, or a test of one. Relations are named `schema.table`, e.g. `marts.contact_campaign`.

    `kind`: view, table, incremental or test. `model` and `relation`: its own name and what it makes; of a test, of what it is about.
    `sql`: its query; of an incremental one, as it runs from nothing. `later_sql`: the query for what an incremental one writes
    beside the rows that it has, in place of those with the same `key`. `needs`: the relations that it reads. `key` of a test: the
    columns of which it proves that they identify a row of the model.
    """

    name: str
    kind: str
    model: str
    relation: str
    description: str
    sql: str
    needs: tuple[str, ...]
    later_sql: str = ""
    key: tuple[str, ...] = ()
    is_kept: bool = False  # never made anew: what is in it cannot be had again
    is_warning: bool = False  # a test that breaks nothing
    columns: Mapping[str, str] = field(default_factory=dict)  # name → description
    meta: Mapping[str, Any] = field(default_factory=dict)
    declared: Mapping[str, bool] = field(default_factory=dict)  # column → whether its yml calls it personal

    @property
    def is_test(self) -> bool:
        return self.kind == "test"

    @property
    def id(self) -> str:
        """Of a model the relation that it makes."""
        return f"{self.relation} {self.name}" if self.is_test else self.relation

    @property
    def schema(self) -> str:
        return self.relation.partition(".")[0]

    @property
    def table(self) -> str:
        return self.relation.partition(".")[2]


@cache
def fingerprint() -> str:
    """Hash of the project's files and the versions of what compiles and runs them."""
    found = hashlib.blake2b(digest_size=12)
    for name in ("dbt-core", "dbt-duckdb", "duckdb"):
        found.update(f"{name} {version(name)}\0".encode())
    files = [path for folder in _FOLDERS for path in (PROJECT / folder).rglob("*") if path.suffix in (".sql", ".yml", ".md")]
    for path in sorted([*PROJECT.glob("*.yml"), *files, Path(__file__)]):
        found.update(f"{path.relative_to(PROJECT)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def compiled(settings: Mapping[str, str]) -> tuple[Node, ...]:
    """Every model and test in an order in which they can run. `settings`: the values of the environment variables that models read.

    Takes seconds the first time. Raises ProjectBroken.
    """
    path = private_folder() / f"models-{fingerprint()}.json"
    try:
        entries = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):  # or damaged: it can be had again
        _compile_into(path, settings)
        entries = json.loads(path.read_bytes())
    return tuple(_node(entry, settings) for entry in entries)


def _node(entry: dict[str, Any], settings: Mapping[str, str]) -> Node:
    for form in ("sql", "later_sql"):
        for name, text in settings.items():
            entry[form] = entry[form].replace(_placeholder(name), text.replace("'", "''"))
    return Node(**entry | {"needs": tuple(entry["needs"]), "key": tuple(entry["key"])})


def _placeholder(name: str) -> str:
    """What stands in compiled SQL for the value of an environment variable."""
    return f"<{name}>"


def _compile_into(path: Path, settings: Iterable[str]) -> None:
    """Have it compiled in a process of its own: that computes for seconds, and threads of this one may be sending requests meanwhile."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="models-new-") as made:
        variables = os.environ | {name: _placeholder(name) for name in settings} | {"MARKETING_MODELS_FILE": str(Path(made) / _SCRATCH)}
        words = [sys.executable, "-W", "ignore", "-m", __name__, made]
        ran = subprocess.run(words, capture_output=True, text=True, env=variables)  # noqa: S603 - our own words and paths
        if ran.returncode:
            raise ProjectBroken(f"the models cannot be read: {' '.join((ran.stderr or ran.stdout).split())[-600:]}")
        (Path(made) / _NODES).replace(path)


def _nodes(folder: Path) -> Iterator[Node]:
    """Have dbt compile the project: as it runs from nothing, and the incremental models once more beside tables that are there."""
    import duckdb
    from dbt.cli.main import dbtRunner

    quiet = [*QUIET, "--target-path", str(folder), "--log-path", str(folder)]

    def run(runner: dbtRunner, *words: str) -> Any:
        ran = runner.invoke([*words, *quiet])
        if not ran.success:
            failed = [result.message for result in getattr(ran.result, "results", ()) if str(result.status) == "error"]
            raise SystemExit(str(ran.exception or "; ".join(filter(None, failed))))
        return ran.result

    parsed = run(dbtRunner(), "parse")
    runner = dbtRunner(parsed)
    nodes = {result.node.unique_id: result.node for result in run(runner, "compile").results}
    first = {unique_id: node.compiled_code for unique_id, node in nodes.items()}
    incremental = [node for node in nodes.values() if node.config.materialized == "incremental"]
    with duckdb.connect(str(folder / _SCRATCH)) as connection:
        for node in incremental:
            connection.execute(f'create schema if not exists {node.schema}; create table {node.schema}."{node.alias}" (account varchar)')
    again = run(runner, "compile", "--select", *(node.name for node in incremental), "--indirect-selection", "empty").results
    later = {result.node.unique_id: result.node.compiled_code for result in again}
    names = {unique_id: f"{node.schema}.{node.alias}" for unique_id, node in nodes.items()}
    names |= {unique_id: f"{node.source_name}.{node.name}" for unique_id, node in parsed.sources.items()}
    for unique_id in _in_order(nodes):
        yield _described(nodes[unique_id], names, first[unique_id], later.get(unique_id, ""))


def _in_order(nodes: Mapping[str, Any]) -> Iterable[str]:
    """A model behind what it needs, a test as soon as there is what it looks at: what fails a test is not built on."""
    graph = {unique_id: set(node.depends_on.nodes) & nodes.keys() for unique_id, node in nodes.items()}
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=lambda unique_id: (not unique_id.startswith("test."), unique_id))
        yield from ready
        sorter.done(*ready)


def _described(node: Any, names: Mapping[str, str], first: str, later: str) -> Node:
    is_test = str(node.resource_type) == "test"
    if is_test and getattr(node, "attached_node", None) is None:
        raise SystemExit(f"test {node.name}: of dbt's tests only generic ones, which stand at a model in its yml, are supported")
    about, config = node.attached_node if is_test else node.unique_id, node.config
    if is_test and (config.warn_if, config.error_if, config.fail_calc, config.limit) != ("!= 0", "!= 0", "count(*)", None):
        raise SystemExit(f"test {node.name}: of dbt's settings for tests only `severity` and `where` are supported")
    return Node(
        name=node.name,
        kind=config.materialized,
        model=about.rpartition(".")[2],
        relation=names[about],
        description=_in_a_line(node.description),
        sql=_without_database(first),
        needs=tuple(dict.fromkeys(names[needed] for needed in node.depends_on.nodes)),
        later_sql=_without_database(later),
        key=_proven_key(node) if is_test else tuple(config.unique_key or ()),
        is_kept=not is_test and config.full_refresh is False,
        is_warning=is_test and config.severity.lower() == "warn",
        columns={name: _in_a_line(column.description) for name, column in node.columns.items()},
        meta=config.meta,
        declared={name: column.meta["personal"] for name, column in node.columns.items() if "personal" in column.meta},
    )


def _proven_key(test: Any) -> tuple[str, ...]:
    is_key = test.test_metadata.name == "key" and not test.config.where
    return tuple(test.test_metadata.kwargs["columns"]) if is_key else ()


def _in_a_line(description: str) -> str:
    return " ".join(description.split())


def _without_database(sql: str) -> str:
    """Relations by schema and table: the file may have any name."""
    return sql.replace(_DATABASE, "").strip()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    (target / _NODES).write_text(json.dumps([asdict(node) for node in _nodes(target)]), encoding="utf-8")
