"""The dbt project of this package as SQL: every model and test, compiled by dbt, and the metrics. `models`
runs it.

dbt is the compiler and nothing else: what it writes depends on the project and on its version, so that it
runs once for each of these, in a process of its own. What it wrote is kept in a folder that this user's homes
share, with places for the values of settings."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from marketing_api.rate_limit.shared_state import private_folder
from warehouse.archive.disk import write_file
from warehouse.child import Child, Ended, Silent, other_side
from warehouse.errors import WarehouseError

#: Where dbt_project.yml, models, macros and tests are.
PROJECT = Path(__file__).parent
_FOLDERS = ("models", "macros", "tests")

#: The file that dbt believes to work on: its name is the database's in every relation, and is taken out
#: again.
_SCRATCH, _DATABASE = "warehouse.duckdb", '"warehouse".'
#: How long dbt may take to compile the project.
_COMPILING_S = 300.0

#: What stands in compiled SQL for the value of a variable.
_PLACEHOLDER = "<{}>"

#: The schema of models of the user's.
OWN = "custom"

#: What every call of dbt is given: nothing on the terminal, no statistics sent.
QUIET = (
    *("--quiet", "--log-level", "none", "--log-level-file", "none", "--no-use-colors"),
    *("--no-send-anonymous-usage-stats", "--no-version-check"),
)


class ProjectBroken(WarehouseError):
    """The dbt project of this installation cannot be read: a mistake in a model or its description."""


@dataclass(frozen=True, slots=True)
class Node:
    """A model, or a test of one. Relations are named `schema.table`, e.g. `marts.contact_campaign`.

    `kind`: view, table, incremental or test. `model` and `relation`: its own name and what it makes; of a
    test, of what it is about. `sql`: its query; of an incremental one, as it runs from nothing. `later_sql`:
    the query for what an incremental one writes beside the rows that it has, in place of those with the same
    `key`. `needs`: the relations that it reads. `key` of a test: the columns of which it proves that they
    identify a row of the model."""

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


@dataclass(frozen=True, slots=True)
class Metric:
    """`mart`: where its columns are. `expression`: what is added up over rows; of a rate, (numerator,
    denominator)."""

    name: str
    mart: str
    expression: str | tuple[str, str]

    @property
    def sql(self) -> str:
        """Over any rows of the mart, grouped or not; NULL when there is nothing to divide by."""
        if isinstance(self.expression, str):
            return f"sum({self.expression})"
        part, whole = self.expression
        return f"sum({part}) / nullif(sum({whole}), 0)"


@cache
def metrics() -> Mapping[str, Metric]:
    """Those of `models/metrics.yml`, which MetricFlow reads, too, by name in the order of the file."""
    import yaml  # only who asks for metrics waits for it

    declared: dict[str, list[dict[str, Any]]] = yaml.safe_load(
        (PROJECT / "models" / "metrics.yml").read_text(encoding="utf-8")
    )
    measures = {
        measure["name"]: (model["model"].removeprefix("ref('").removesuffix("')"), measure["expr"])
        for model in declared["semantic_models"]
        for measure in model["measures"]
    }
    found: dict[str, Metric] = {}
    for metric in declared["metrics"]:
        of = metric["type_params"]
        names = [of["measure"]] if "measure" in of else [of["numerator"], of["denominator"]]
        mart, expression = measures[names[0]]
        found[metric["name"]] = Metric(
            metric["name"], mart, (expression, measures[names[1]][1]) if names[1:] else expression
        )
    return found


@cache
def fingerprint() -> str:
    """Hash of the project's files and the versions of what compiles and runs them."""
    found = hashlib.blake2b(digest_size=12)
    for name in ("dbt-core", "dbt-duckdb", "duckdb"):
        found.update(f"{name} {version(name)}\0".encode())
    project = [path for folder in _FOLDERS for path in model_files(PROJECT / folder)]
    for path in sorted([*project, *PROJECT.glob("*.yml"), Path(__file__)]):
        found.update(f"{path.relative_to(PROJECT)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def model_files(folder: Path) -> list[Path]:
    """What dbt reads of a folder."""
    return [path for path in folder.rglob("*") if path.suffix in (".sql", ".yml", ".md") and path.is_file()]


def compiled(settings: Mapping[str, str]) -> Sequence[Node]:
    """Every model and test in an order in which they can run. `settings`: the values of the project's
    variables.

    Takes seconds the first time. Raises ProjectBroken.
    """
    path = private_folder() / f"models-{fingerprint()}.json"
    try:
        nodes = _decode(path.read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):  # or damaged: it can be had again
        _compile_into(path, settings)
        nodes = _decode(path.read_bytes())

    def filled(sql: str) -> str:
        for name, text in settings.items():
            sql = sql.replace(_PLACEHOLDER.format(name), text.replace("'", "''"))
        return sql

    return [replace(node, sql=filled(node.sql), later_sql=filled(node.later_sql)) for node in nodes]


_decode = msgspec.json.Decoder(list[Node]).decode


def _compile_into(path: Path, settings: Iterable[str]) -> None:
    """Have it compiled in a process of its own: that computes for seconds, and threads of this one may be
    sending requests meanwhile."""
    with (
        tempfile.TemporaryDirectory(dir=path.parent, prefix="models-new-") as folder,
        Child(__name__, folder=Path(folder)) as child,
    ):
        child.send(json.dumps({name: _PLACEHOLDER.format(name) for name in settings}))
        try:
            problem, nodes = msgspec.json.decode(child.receive(_COMPILING_S), type=tuple[str, msgspec.Raw])
        except (Silent, Ended) as end:
            raise ProjectBroken("the models cannot be read: dbt did not come to its end") from end
    if problem:
        raise ProjectBroken(f"the models cannot be read: {' '.join(problem.split())[-600:]}")
    write_file(path, bytes(nodes))


def _nodes(variables: str) -> list[Node]:
    """Have dbt compile the models: as they run from nothing, and incremental ones once more beside tables
    that are there. Works in the current folder."""
    import duckdb
    from dbt.cli.main import dbtRunner

    folders = ("--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT))
    options = [*QUIET, *folders, "--target-path", str(Path.cwd()), "--vars", variables]

    def run(runner: dbtRunner, *words: str) -> Any:
        ran = runner.invoke([*words, *options])
        if not ran.success:
            results = getattr(ran.result, "results", ())
            failed = [result.message for result in results if str(result.status) == "error"]
            raise ProjectBroken(str(ran.exception or "; ".join(filter(None, failed))))
        return ran.result

    parsed = run(dbtRunner(), "parse")
    runner = dbtRunner(parsed)
    nodes = {result.node.unique_id: result.node for result in run(runner, "compile").results}
    first = {unique_id: node.compiled_code for unique_id, node in nodes.items()}
    incremental = [node for node in nodes.values() if node.config.materialized == "incremental"]
    later = {}
    if incremental:
        with duckdb.connect(_SCRATCH) as connection:
            for node in incremental:
                connection.execute(f"create schema if not exists {node.schema}")
                connection.execute(f'create table {node.schema}."{node.alias}" (account varchar)')
        names = [node.name for node in incremental]
        again = run(runner, "compile", "--select", *names, "--indirect-selection", "empty")
        later = {result.node.unique_id: result.node.compiled_code for result in again.results}
    relations = names_of(parsed)
    return [described(nodes[each], relations, first[each], later.get(each, "")) for each in _in_order(nodes)]


def names_of(manifest: Any) -> dict[str, str]:
    """Id of a node or source → relation."""
    names = {unique_id: f"{node.schema}.{node.alias}" for unique_id, node in manifest.nodes.items()}
    return names | {
        unique_id: f"{node.source_name}.{node.name}" for unique_id, node in manifest.sources.items()
    }


def _in_order(nodes: Mapping[str, Any]) -> Iterator[str]:
    """A model behind what it needs, a test as soon as there is what it looks at: what fails a test is not
    built on."""
    graph = {unique_id: set(node.depends_on.nodes) & nodes.keys() for unique_id, node in nodes.items()}
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    while sorter.is_active():
        ready = sorted(
            sorter.get_ready(), key=lambda unique_id: (not unique_id.startswith("test."), unique_id)
        )
        yield from ready
        sorter.done(*ready)


def described(node: Any, names: Mapping[str, str], first: str = "", later: str = "") -> Node:
    """A node of dbt's with its compiled SQL. Of tests, generic ones at a model are known."""
    is_test, config, columns = str(node.resource_type) == "test", node.config, node.columns
    about = node.attached_node if is_test else node.unique_id
    key = None
    if not is_test:
        key = config.unique_key
    elif node.test_metadata.name == "key" and not config.where:
        key = node.test_metadata.kwargs["columns"]
    return Node(
        name=node.name,
        kind=config.materialized,
        model=about.rpartition(".")[2],
        relation=names[about],
        description=_in_a_line(node.description),
        sql=_without_database(first),
        needs=tuple(dict.fromkeys(names[needed] for needed in getattr(node.depends_on, "nodes", ()))),
        later_sql=_without_database(later),
        key=(key,) if isinstance(key, str) else tuple(key or ()),
        is_kept=not is_test and config.full_refresh is False,
        is_warning=is_test and config.severity.lower() == "warn",
        columns={name: _in_a_line(column.description) for name, column in columns.items()},
        meta=config.meta,
        declared={name: each.meta["personal"] for name, each in columns.items() if "personal" in each.meta},
    )


def _in_a_line(description: str) -> str:
    return " ".join(description.split())


def _without_database(sql: str) -> str:
    """Relations by schema and table: the file may have any name."""
    return sql.replace(_DATABASE, "").strip().rstrip(";")


if __name__ == "__main__":
    lines, send = other_side()
    os.environ["MARKETING_HOME"] = "."  # where the scratch file is
    try:
        reply = ("", _nodes(next(lines)))
    except Exception as problem:  # whatever it is, it is said
        reply = (str(problem), [])
    send(msgspec.json.encode(reply).decode())
