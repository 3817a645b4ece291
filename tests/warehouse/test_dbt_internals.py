"""What is used of dbt beyond its command line stands in one module, for versions that are named here."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from warehouse import dbt_internals

#: When this fails: run `tests/warehouse/test_models.py` and `tests/pipelines/test_models_run.py`, mend `dbt_internals`, and write the
#: new version here.
KNOWN = {"dbt-core": "1.11.", "dbt-duckdb": "1.11."}


@pytest.mark.parametrize("name", KNOWN)
def test_the_internals_are_those_of_the_installed_version(name: str) -> None:
    assert version(name).startswith(KNOWN[name])


def test_what_is_reached_into_is_there() -> None:
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager
    from dbt.artifacts.schemas.results import NodeStatus
    from dbt.contracts.graph.manifest import Manifest

    assert callable(Manifest.from_msgpack)
    assert callable(DuckDBConnectionManager.close_all_connections)
    assert {str(status) for status in NodeStatus} - dbt_internals._STATUS.keys() == {"skipped", "partial success"}


def test_no_other_module_of_the_package_imports_dbt() -> None:
    package = Path(dbt_internals.__file__).parent
    importing = re.compile(r"^\s*(from|import) dbt\b", re.MULTILINE)
    assert [path.name for path in package.rglob("*.py") if importing.search(path.read_text())] == ["dbt_internals.py"]
