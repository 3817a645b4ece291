"""Fixtures of the warehouse's tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.simulators.model_data import make
from tests.warehouse.answering import Home
from tests.warehouse.in_memory import Tables
from warehouse.models import build
from warehouse.schema import ensure_schema
from warehouse.sql import add_normal_form, rows


@pytest.fixture
def home(tmp_path: Path, empty_tables: Path) -> Iterator[Home]:
    """An empty warehouse and its archive."""
    shutil.copy(empty_tables, tmp_path)
    home = Home(tmp_path)
    yield home
    home.close()


@pytest.fixture(scope="session")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all models over 300 contacts of two accounts."""
    path = tmp_path_factory.mktemp("models") / "warehouse.duckdb"
    make(path, 300, 1500)
    report = build(path)
    assert not report.problem, report.problem
    assert report.is_full
    return path


@pytest.fixture
def path(first_night: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copy(first_night, tmp_path))


@pytest.fixture(scope="module")
def memory() -> Iterator[Tables]:
    """Empty tables in memory."""
    connection = duckdb.connect()
    rows(connection, "set timezone = 'UTC'")
    add_normal_form(connection)
    ensure_schema(connection)
    connection.begin()
    yield Tables(connection)
    connection.close()
