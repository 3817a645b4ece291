"""Our dbt project in compiled form: every model and test. `load_models` reads them.

dbt is only the compiler: `python -m docs.models` compiles the project after a change, with
placeholders for the values of settings. A test fails if `compiled.jsonl` is stale."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import msgspec

#: The folder of dbt_project.yml, models, macros and tests.
PROJECT = Path(__file__).parent
COMPILED = PROJECT / "compiled.jsonl"

#: Placeholder for the value of a variable in compiled SQL.
PLACEHOLDER = "<{}>"


@dataclass(frozen=True, slots=True)
class Node:
    """A model, or a test of one. Relations are named `schema.table`, e.g. `marts.contact_campaign`.

    `kind`: view, table, incremental or test. `model` and `relation`: its own name and the relation
    that it makes; for a test, those of its model. `sql`: its query; for an incremental model, the
    query for an empty table. `later_sql`: the query for new rows of an incremental model; they
    replace rows with the same `key`. `needs`: the relations that it reads. `key` of a test: the
    columns that identify a row of the model. `meta`: from its yml; a mart also has `metrics`, the
    SQL of each by name."""

    name: str
    kind: str
    model: str
    relation: str
    description: str
    sql: str
    needs: tuple[str, ...]
    later_sql: str = ""
    key: tuple[str, ...] = ()
    is_kept: bool = False  # never rebuilt: its content can't be fetched again
    is_warning: bool = False  # a test that only warns
    columns: Mapping[str, str] = field(default_factory=dict)  # name → description
    meta: Mapping[str, Any] = field(default_factory=dict)
    # column → whether its yml calls it personal
    declared: Mapping[str, bool] = field(default_factory=dict)

    @property
    def is_test(self) -> bool:
        return self.kind == "test"

    @property
    def id(self) -> str:
        """For a model its relation; for a test the relation and its name."""
        return f"{self.relation} {self.name}" if self.is_test else self.relation

    @property
    def schema(self) -> str:
        return self.relation.partition(".")[0]

    @property
    def table(self) -> str:
        return self.relation.partition(".")[2]


@cache
def project_fingerprint() -> str:
    """Hash of the compiled project and the version of what runs it."""
    compiled_with = duckdb.__version__.encode()
    return hashlib.blake2b(COMPILED.read_bytes() + compiled_with, digest_size=12).hexdigest()


def compile_nodes(settings: Mapping[str, str]) -> list[Node]:
    """Every model and test, in an order in which they can run. `settings`: the values of the
    project's variables."""

    def fill_settings(sql: str) -> str:
        for name, text in settings.items():
            sql = sql.replace(PLACEHOLDER.format(name), text.replace("'", "''"))
        return sql

    return [
        replace(node, sql=fill_settings(node.sql), later_sql=fill_settings(node.later_sql))
        for node in _load_nodes()
    ]


@cache
def load_models() -> Mapping[str, Node]:
    """Our models and tests by relation, with placeholders for the values of settings."""
    return {node.relation: node for node in _load_nodes() if not node.is_test}


def _load_nodes() -> list[Node]:
    return msgspec.json.Decoder(Node).decode_lines(COMPILED.read_bytes())
