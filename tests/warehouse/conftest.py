"""Fixtures of the warehouse's tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.warehouse.answering import Home
from tests.warehouse.in_memory import Tables
from warehouse.schema import ensure_schema
from warehouse.sql import rows
from warehouse.tables import TABLES


@pytest.fixture
def home(tmp_path: Path, empty_tables: Path) -> Iterator[Home]:
    """An empty warehouse and its archive."""
    shutil.copy(empty_tables, tmp_path)
    home = Home(tmp_path)
    yield home
    home.close()


@pytest.fixture(scope="module")
def memory() -> Iterator[Tables]:
    """Empty tables in memory."""
    connection = duckdb.connect()
    rows(connection, "set timezone = 'UTC'")
    ensure_schema(connection, TABLES.values())
    connection.begin()
    yield Tables(connection)
    connection.close()
