"""Fixtures: what planning goes by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.write_back.planning.known import Known
from tests.pipelines.write_back.planning.planner import make_warehouse, open_known
from warehouse.connection import connect


@pytest.fixture(scope="session")
def small_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three lists and seven people; nobody writes to it."""
    return make_warehouse(tmp_path_factory.mktemp("known") / "warehouse.duckdb")


@pytest.fixture(scope="session")
def known(small_warehouse: Path) -> Iterator[Known]:
    """What it knows. The file stays open, since opening it takes longer than asking it."""
    with connect(small_warehouse, read_only=True):
        yield open_known(small_warehouse)
