"""What is used of dbt without being documented is as it was when it was written for: a new version is looked at before it is taken."""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.metadata import version
from typing import Any

import pytest

from tests.pipelines.test_dagster_internals import ROOT, imported
from warehouse.dbt_internals import COMMAND

pytestmark = pytest.mark.filterwarnings("ignore")

#: The versions that warehouse/dbt_internals.py was written for.
VERSIONS = {"dbt-core": "1.11", "dbt-duckdb": "1.11"}
#: Module, name, and the parameters that are relied on.
USED: list[tuple[str, str, set[str]]] = [
    ("dbt.cli.main", "dbtRunner", {"manifest", "callbacks"}),
    ("dbt.cli.main", "dbtRunner.invoke", {"args"}),
    ("dbt.contracts.graph.manifest", "Manifest.from_msgpack", {"d"}),
    ("dbt.adapters.duckdb.connections", "DuckDBConnectionManager.close_all_connections", set()),
]


@pytest.mark.parametrize("package", VERSIONS)
def test_the_version_is_the_one_that_was_looked_at(package: str) -> None:
    found = version(package)
    assert found.startswith(f"{VERSIONS[package]}."), "look through warehouse/dbt_internals.py with the new version, then name it here"


@pytest.mark.parametrize(("module", "name", "parameters"), USED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_used_has_not_moved(module: str, name: str, parameters: set[str]) -> None:
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    assert parameters <= set(inspect.signature(found).parameters)


def test_the_event_that_progress_listens_to_has_its_fields() -> None:
    event: Any = import_module("dbt.events.types").LogStartLine
    fields = getattr(event.PROTO_TYPES_MODULE, event.__name__).DESCRIPTOR.fields_by_name
    assert {"index", "total", "node_info"} <= set(fields)
    assert {"resource_type", "node_name"} <= set(fields["node_info"].message_type.fields_by_name)


def test_no_other_module_reaches_in() -> None:
    assert hasattr(import_module(COMMAND), "cli")
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for package in ("marketing_api", "warehouse", "assets", "pipelines")
        for path in (ROOT / package).rglob("*.py")
        if path.name != "dbt_internals.py"
        for name in imported(path)
        if name.partition(".")[0] == "dbt"
    ]
    assert found == []
