"""The dbt project of this package as SQL: every model and test, compiled by dbt, and the metrics. `models`
runs it.

dbt is the compiler and nothing else: what it writes depends on the project and on its version, so that it
runs once for each of these, in a process of its own. What it wrote is kept in a folder that this user's homes
share, with places for the values of settings."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

#: The file that dbt believes to work on: its name is the database's in every relation, and is taken out
#: again.
_SCRATCH, _DATABASE = "warehouse.duckdb", '"warehouse".'
_NODES, _PROBLEM = "nodes.json", "problem.txt"

_KINDS = ("table", "view", "incremental")

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
def _project_hash() -> bytes:
    versions = "".join(f"{name} {version(name)}\0" for name in ("dbt-core", "dbt-duckdb", "duckdb"))
    project = [
        *PROJECT.glob("*.yml"),
        *(path for folder in _FOLDERS for path in model_files(PROJECT / folder)),
    ]
    found = hashlib.blake2b(versions.encode(), digest_size=12)
    for path in sorted([*project, Path(__file__)]):
        found.update(f"{path.relative_to(PROJECT)}\0".encode() + path.read_bytes() + b"\0")
    return found.digest()


def fingerprint() -> str:
    """Hash of the project's files and the versions of what compiles and runs them."""
    return _project_hash().hex()


def model_files(folder: Path) -> list[Path]:
    """What dbt reads of a folder."""
    return [path for path in folder.rglob("*") if path.suffix in (".sql", ".yml", ".md") and path.is_file()]


def compiled(settings: Mapping[str, str]) -> tuple[Node, ...]:
    """Every model and test in an order in which they can run. `settings`: the values of the project's
    variables.

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
            entry[form] = entry[form].replace(_PLACEHOLDER.format(name), text.replace("'", "''"))
    return Node(**entry | {"needs": tuple(entry["needs"]), "key": tuple(entry["key"])})


def _compile_into(path: Path, settings: Iterable[str]) -> None:
    """Have it compiled in a process of its own: that computes for seconds, and threads of this one may be
    sending requests meanwhile."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="models-new-") as made:
        variables = json.dumps({name: _PLACEHOLDER.format(name) for name in settings})
        words = [sys.executable, "-W", "ignore", "-m", __name__, made, variables]
        ran = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"MARKETING_HOME": "."})  # noqa: S603 - our own words
        if ran.returncode:
            why = Path(made) / _PROBLEM
            said = " ".join(
                (why.read_text(encoding="utf-8") if why.exists() else ran.stderr or ran.stdout).split()
            )
            raise ProjectBroken(f"the models cannot be read: {said[-600:]}")
        (Path(made) / _NODES).replace(path)


def _nodes(folder: Path, variables: str) -> Iterator[Node]:
    """Have dbt compile the models: as they run from nothing, and incremental ones once more beside tables
    that are there."""
    import duckdb
    from dbt.cli.main import dbtRunner

    folders = (
        "--project-dir",
        str(PROJECT),
        "--profiles-dir",
        str(PROJECT),
        "--target-path",
        str(folder),
        "--log-path",
        str(folder),
    )
    quiet = [*QUIET, *folders, "--vars", variables]

    def run(runner: dbtRunner, *words: str) -> Any:
        ran = runner.invoke([*words, *quiet])
        if not ran.success:
            failed = [
                result.message
                for result in getattr(ran.result, "results", ())
                if str(result.status) == "error"
            ]
            raise SystemExit(str(ran.exception or "; ".join(filter(None, failed))))
        return ran.result

    parsed = run(dbtRunner(), "parse")
    for node in parsed.nodes.values():
        if str(node.resource_type) != "test" and node.config.materialized not in _KINDS:
            raise SystemExit(
                f"model {node.name}: materialized must be {', '.join(_KINDS)}, not {node.config.materialized}"
            )
    runner = dbtRunner(parsed)
    nodes = {result.node.unique_id: result.node for result in run(runner, "compile").results}
    first = {unique_id: node.compiled_code for unique_id, node in nodes.items()}
    incremental = [node for node in nodes.values() if node.config.materialized == "incremental"]
    with duckdb.connect(str(folder / _SCRATCH)) as connection:
        for node in incremental:
            connection.execute(
                f'create schema if not exists {node.schema}; create table {node.schema}."{node.alias}" '
                "(account varchar)"
            )
    again = ("compile", "--select", *(node.name for node in incremental), "--indirect-selection", "empty")
    later = {
        result.node.unique_id: result.node.compiled_code
        for result in (run(runner, *again).results if incremental else ())
    }
    names = names_of(parsed)
    yield from (
        described(nodes[unique_id], names, first[unique_id], later.get(unique_id, ""))
        for unique_id in _in_order(nodes)
    )


def names_of(manifest: Any) -> dict[str, str]:
    """Id of a node or source → relation."""
    names = {unique_id: f"{node.schema}.{node.alias}" for unique_id, node in manifest.nodes.items()}
    return names | {
        unique_id: f"{node.source_name}.{node.name}" for unique_id, node in manifest.sources.items()
    }


def _in_order(nodes: Mapping[str, Any]) -> Iterable[str]:
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


def described(node: Any, names: Mapping[str, str], first: str, later: str = "") -> Node:
    """A node of dbt's with its compiled SQL."""
    is_test = str(node.resource_type) == "test"
    key: Sequence[str] = ()
    if is_test and getattr(node, "attached_node", None) is None:
        raise SystemExit(
            f"test {node.name}: of dbt's tests only generic ones, which stand at a model in its yml, "
            "are supported"
        )
    about, config = node.attached_node if is_test else node.unique_id, node.config
    if is_test and (config.warn_if, config.error_if, config.fail_calc, config.limit) != (
        "!= 0",
        "!= 0",
        "count(*)",
        None,
    ):
        raise SystemExit(
            f"test {node.name}: of dbt's settings for tests only `severity` and `where` are supported"
        )
    if not is_test:
        key = [config.unique_key] if isinstance(config.unique_key, str) else config.unique_key or ()
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
        key=tuple(key),
        is_kept=not is_test and config.full_refresh is False,
        is_warning=is_test and config.severity.lower() == "warn",
        columns={name: _in_a_line(column.description) for name, column in node.columns.items()},
        meta=config.meta,
        declared={
            name: column.meta["personal"]
            for name, column in node.columns.items()
            if "personal" in column.meta
        },
    )


def _in_a_line(description: str) -> str:
    return " ".join(description.split())


def _without_database(sql: str) -> str:
    """Relations by schema and table: the file may have any name."""
    return sql.replace(_DATABASE, "").strip().rstrip(";")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    os.chdir(target)  # where the scratch file is
    try:
        found = [asdict(node) for node in _nodes(target, sys.argv[2])]
    except SystemExit as problem:  # beside what libraries print while they end
        (target / _PROBLEM).write_text(str(problem), encoding="utf-8")
        raise
    (target / _NODES).write_text(json.dumps(found), encoding="utf-8")
