"""Fixtures of the warehouse's tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import duckdb
import pytest

from tests.conftest import Once
from tests.simulators.model_data import make
from tests.warehouse.answering import Home
from tests.warehouse.in_memory import Tables
from warehouse.connection import open_database
from warehouse.models import build_models
from warehouse.schema import ensure_schema
from warehouse.sql import add_mask_addresses, add_normal_form, fetch_rows


@pytest.fixture
def home(tmp_path: Path, empty_tables: Path) -> Iterator[Home]:
    """An empty warehouse and its archive."""
    shutil.copy(empty_tables, tmp_path)
    home = Home(tmp_path)
    yield home
    with patch.object(home.archive, "seal_requests"):  # nobody reads them any more
        home.close()


@pytest.fixture
def kept_open(home: Home) -> Iterator[None]:
    """The file of `home` stays open during a test: opening it takes longer than most of what is done with it."""
    with home.kept_open():
        yield


@pytest.fixture(scope="session")
def first_night(once: Once) -> Path:
    """A file with all models over 300 contacts of two accounts."""

    def build(folder: Path) -> None:
        make(folder / "warehouse.duckdb", 300, 1500)
        report = build_models(folder / "warehouse.duckdb")
        assert not report.failure_summary, report.failure_summary
        assert report.is_full

    return once("models", build) / "warehouse.duckdb"


@pytest.fixture
def path(first_night: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copy(first_night, tmp_path))


@pytest.fixture(scope="module")
def memory() -> Iterator[Tables]:
    """Empty tables in memory."""
    connection = duckdb.connect()
    fetch_rows(connection, "set timezone = 'UTC'")
    add_normal_form(connection)
    add_mask_addresses(connection)
    ensure_schema(connection)
    connection.begin()
    yield Tables(connection)
    connection.close()


@pytest.fixture
def filled(tmp_path: Path, empty_tables: Path) -> Path:
    """A home whose warehouse holds a row or two in every schema."""
    path = tmp_path / "home"
    path.mkdir()
    copy = path / "warehouse.duckdb"
    copy.write_bytes(empty_tables.read_bytes())
    with open_database(copy) as connection:
        for statement in _FILL:
            connection.execute(statement)
    return path


_FILL = (
    "insert into source.lists by name select 'main' account, 7 list_id, 'News' as name, 'boss@example.com' "
    "reply_to, 'x' _listing_hash",
    "insert into source.contacts by name select 'main' account, 7 list_id, n contact_id, 'ann' || n || "
    "'@example.com' email, "
    "timestamptz '2026-01-01 10:00+00' registered_at from range(3) as t(n)",
    "insert into sync.coverage by name select 'main' account, 'contacts' table_name, 'list_id=7' scope, "
    "timestamptz '2026-03-02 08:00+00' as_of, true is_complete, 3 as rows",
    "create schema if not exists marts",
    "create table marts.sizes as select account, list_id, count(*) as contact_count, 1 as _stamp from "
    "source.contacts group by all",
    "comment on table marts.sizes is 'One row per list; it''s small.'",
    "comment on column marts.sizes.contact_count is 'Contacts.'",
    "create view marts.sizes_again as from marts.sizes",
    "create schema staging",
    "create table staging.scratch as select 1 as n",
)
