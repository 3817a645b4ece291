"""Generates files of the package from the models and the declarations of tables. Run `python -m
docs.models` to write them, or add `--check` to list stale ones, as a test does.

`models/staging`: a view for each `source` table that a model reads, without `extra`, and with plain
names for the columns that loads add. `models/history/versions`: the tables that keep every version.
`macros/rate_parts.sql`: the rates. `compiled.jsonl`: every model and test as dbt compiles it. Not
here: which columns are personal (`tests.warehouse.test_lineage` writes that)."""

import contextlib
import json
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from graphlib import TopologicalSorter
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import jinja2
import msgspec
import yaml

from warehouse.dbt_project import COMPILED, PLACEHOLDER, PROJECT, Node
from warehouse.models import ModelSettings
from warehouse.tables import SYNC_TABLES, TABLES, Column, Table

MODELS = PROJECT / "models"
#: Options of every call of dbt: print nothing, send no statistics.
QUIET = (
    *("--quiet", "--log-level", "none", "--log-level-file", "none", "--no-use-colors"),
    *("--no-send-anonymous-usage-stats", "--no-version-check"),
)
_STAGING, _VERSIONS, _RATES = "staging", "history/versions", "../macros/rate_parts.sql"

_PLAIN_NAMES = {
    "_first_seen_at": "first_seen_at",
    "_changed_at": "changed_at",
    "_deleted_at": "deleted_at",
}


def render() -> dict[str, str]:
    """Path below `MODELS` → text."""
    texts = (
        path.read_text(encoding="utf-8")
        for path in MODELS.rglob("*.sql")
        if path.parent.name != _STAGING
    )
    named = {name for text in texts for name in re.findall(r"'stg_(\w+)'", text)}
    read = [table for table in TABLES.values() if table.name in named]
    files = {f"{_STAGING}/stg_{table.name}.sql": _filled("view.sql", table=table) for table in read}
    for area, tables in groupby(read, key=lambda table: table.area):
        files[f"{_STAGING}/{area}.yml"] = _filled("views.yml", tables=list(tables))
    files[f"{_STAGING}/sources.yml"] = _filled(
        "sources.yml",
        tables=TABLES.values(),
        sync_tables=SYNC_TABLES,
    )
    versioned = [table for table in TABLES.values() if table.has_history]
    files |= {
        f"{_VERSIONS}/history_{table.name}.sql": _filled("versions.sql", table=table)
        for table in versioned
    }
    files[_RATES] = _filled("rates.sql", metrics=metrics().values())
    return files | {f"{_VERSIONS}/versions.yml": _filled("versions.yml", tables=versioned)}


def found() -> dict[str, str]:
    """The existing files, in the same form."""
    paths = [
        path.relative_to(MODELS).as_posix()
        for folder in (_STAGING, _VERSIONS)
        for path in (MODELS / folder).iterdir()
    ]
    return {path: (MODELS / path).read_text(encoding="utf-8") for path in (*paths, _RATES)}


def columns(table: Table) -> Iterator[tuple[Column, str]]:
    """The columns of the table's view: (column of the table, name in the view)."""
    for column in table.columns:
        if column.name in _PLAIN_NAMES:
            yield column, _PLAIN_NAMES[column.name]
        elif column.name != "extra" and not column.name.startswith("_"):
            yield column, column.name


def _filled(template: str, **values: object) -> str:
    """The templates use their own brackets, since dbt uses braces."""
    wrapped = partial(textwrap.fill, width=96, break_long_words=False, break_on_hyphens=False)
    environment = jinja2.Environment(  # SQL and YAML from our own declarations: nothing to escape
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates" / "models"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701
        keep_trailing_newline=True,
        trim_blocks=True,
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
    )
    environment.filters |= {
        "json": lambda text: wrapped(
            json.dumps(text, ensure_ascii=False), subsequent_indent=" " * 6
        ),
        "listed": lambda names: wrapped(
            ", ".join(f"'{name}'" for name in names), subsequent_indent=" " * 4
        ),
    }
    return environment.get_template(template).render(values, columns=columns)


@dataclass(frozen=True, slots=True)
class Metric:
    """`mart`: the mart with its columns. `expression`: the value to add up over rows; for a rate,
    (numerator, denominator)."""

    name: str
    mart: str
    expression: str | tuple[str, str]

    @property
    def formula(self) -> str:
        """For readers: the sum, or the sums that are divided."""
        if isinstance(self.expression, str):
            return f"sum({self.expression})"
        return " / ".join(f"sum({part})" for part in self.expression)

    @property
    def sql(self) -> str:
        """For any rows of the mart, grouped or not. A rate only includes rows that know both parts.
        It is NULL if the denominator is 0 or smaller than the numerator, as in the macro
        `safe_rate`."""
        if isinstance(self.expression, str):
            return self.formula
        part, whole = self.expression
        part, whole = (
            f"sum({part}) filter ({whole} is not null)",
            f"sum({whole}) filter ({part} is not null)",
        )
        return f"case when {part} between 0 and {whole} then {part} / nullif({whole}, 0) end"


@cache
def metrics() -> Mapping[str, Metric]:
    """The metrics of `models/metrics.yml`, which MetricFlow also reads, by name in the order of the
    file."""
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


# ---- the models as compiled by dbt


def compiled_models() -> str:
    """One model or test per line, in an order in which they can run, with placeholders for the
    values of settings."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["MARKETING_HOME"] = "."
        lines = [msgspec.json.encode(node).decode() for node in _compiled()]
    return "".join(f"{line}\n" for line in lines)


def _compiled() -> list[Node]:
    """Compiled for an empty database; incremental models also for existing tables."""
    from dbt.cli.main import dbtRunner

    variables = {name: PLACEHOLDER.format(name) for name in ModelSettings().variables}
    folders = (
        "--project-dir",
        str(PROJECT),
        "--profiles-dir",
        str(PROJECT),
        "--target-path",
        str(Path.cwd()),
    )
    options = [*QUIET, *folders, "--vars", json.dumps(variables)]

    def run(runner: dbtRunner, *words: str) -> Any:
        ran = runner.invoke([*words, *options])
        if not ran.success:
            results = getattr(ran.result, "results", ())
            failed = [result.message for result in results if str(result.status) == "error"]
            raise SystemExit(str(ran.exception or "; ".join(filter(None, failed))))
        return ran.result

    duckdb.connect("warehouse.duckdb").close()  # dbt does not create it
    parsed = run(dbtRunner(), "parse")
    runner = dbtRunner(parsed)
    nodes = {result.node.unique_id: result.node for result in run(runner, "compile").results}
    first = {unique_id: node.compiled_code for unique_id, node in nodes.items()}
    incremental = [node for node in nodes.values() if node.config.materialized == "incremental"]
    with duckdb.connect("warehouse.duckdb") as connection:
        for node in incremental:
            connection.execute(f"create schema if not exists {node.schema}")
            connection.execute(f'create table {node.schema}."{node.alias}" (account varchar)')
    names = [node.name for node in incremental]
    again = run(runner, "compile", "--select", *names, "--indirect-selection", "empty")
    later = {result.node.unique_id: result.node.compiled_code for result in again.results}
    relations = _relations(parsed)
    made = (
        _node(nodes[each], relations, first[each], later.get(each, "")) for each in _in_order(nodes)
    )
    return [_with_metrics(node) for node in made]


def _relations(manifest: Any) -> dict[str, str]:
    """Id of a node or source → relation."""
    names = {unique_id: f"{node.schema}.{node.alias}" for unique_id, node in manifest.nodes.items()}
    return names | {
        unique_id: f"{node.source_name}.{node.name}" for unique_id, node in manifest.sources.items()
    }


def _node(node: Any, relations: Mapping[str, str], first: str, later: str) -> Node:
    """A node of dbt with its compiled SQL. The only tests are generic ones of a model."""
    is_test, config, columns = str(node.resource_type) == "test", node.config, node.columns
    about = node.attached_node if is_test else node.unique_id
    key = _proved_key(node) if is_test else config.unique_key
    return Node(
        name=node.name,
        kind=config.materialized,
        model=about.rpartition(".")[2],
        relation=relations[about],
        description=_without_wrapping(node.description),
        sql=_without_database(first),
        needs=tuple(
            dict.fromkeys(relations[needed] for needed in getattr(node.depends_on, "nodes", ()))
        ),
        later_sql=_without_database(later),
        key=(key,) if isinstance(key, str) else tuple(key or ()),
        is_kept=not is_test and config.full_refresh is False,
        is_warning=is_test and config.severity.lower() == "warn",
        columns={name: _in_a_line(column.description) for name, column in columns.items()},
        meta=config.meta,
        declared={
            name: each.meta["personal"] for name, each in columns.items() if "personal" in each.meta
        },
    )


def _proved_key(test: Any) -> list[str]:
    """The columns that identify a row, as proved by a test."""
    is_key = test.test_metadata.name == "key" and not test.config.where
    return list(test.test_metadata.kwargs["columns"]) if is_key else []


def _in_a_line(description: str) -> str:
    return " ".join(description.split())


def _without_wrapping(description: str) -> str:
    """Markdown with each paragraph and each entry of a list in one line."""
    return "\n".join(_in_a_line(line) for line in description.strip().splitlines())


def _without_database(sql: str) -> str:
    """The SQL with relations named by schema and table, since the file may have any name."""
    return sql.replace('"warehouse".', "").strip().rstrip(";")


def _with_metrics(node: Node) -> Node:
    """The node, with the SQL of its metrics if it is a mart that has any."""
    over = {
        each.name: each.sql for each in metrics().values() if f"marts.{each.mart}" == node.relation
    }
    return replace(node, meta={**node.meta, "metrics": over}) if over and not node.is_test else node


def _in_order(nodes: Mapping[str, Any]) -> Iterator[str]:
    """Each model after the models that it needs, and each test as soon as its model exists, so that
    no model is built on one that fails a test."""
    graph = {
        unique_id: set(node.depends_on.nodes) & nodes.keys() for unique_id, node in nodes.items()
    }
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    while sorter.is_active():
        ready = sorted(
            sorter.get_ready(), key=lambda unique_id: (not unique_id.startswith("test."), unique_id)
        )
        yield from ready
        sorter.done(*ready)


def main(*, is_check: bool) -> int:
    stale = []

    def put(path: Path, text: str) -> None:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not is_check:
                path.write_text(text, encoding="utf-8")

    files = render()
    for name in found().keys() - files.keys():  # files of removed tables
        stale.append(MODELS / name)
        if not is_check:
            (MODELS / name).unlink()
    for name, text in files.items():
        put(MODELS / name, text)
    put(COMPILED, compiled_models())
    for path in stale:
        print(f"{'stale' if is_check else 'written'}: {path.relative_to(PROJECT)}")
    return int(is_check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(is_check="--check" in sys.argv))
