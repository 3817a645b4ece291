"""Rows about people are deleted by key, and nobody else's row changes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.address import normal_form
from warehouse.connection import copy_database
from warehouse.forgetting import Person
from warehouse.person import count_rows_about, delete_rows_about, find_person, rows_about
from warehouse.schema import ensure_schema
from warehouse.sql import NORMAL_FORM, add_normal_form

ANN, BOB = "ann@corner.example", "bob@corner.example"
PERSON = Person((ANN,), (("main", 7),))


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Tables as the program makes them, without a row."""
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
        ensure_schema(connection)
        yield connection


def add(connection: duckdb.DuckDBPyConnection, table: str, **values: Any) -> None:
    columns = ", ".join(f"${name} as {name}" for name in values)
    connection.execute(f"insert into {table} by name select {columns}", values)


def left(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
    return [value for (value,) in connection.execute(sql).fetchall()]


@pytest.mark.parametrize("spelling", [ANN, "Ann@Corner.example", f" {ANN}\t", f"{ANN}\u200b"])
def test_rows_about_them_go_however_the_address_is_spelled(
    warehouse: duckdb.DuckDBPyConnection, spelling: str
) -> None:
    add(warehouse, "source.contacts", account="main", contact_id=7, list_id=1, email=spelling)
    add(warehouse, "source.contacts", account="main", contact_id=8, list_id=1, email=BOB)
    add(warehouse, "source.direct_reviews", account="main", review_id=1, email=spelling, inquiry="I am Ann")
    add(warehouse, "source.timeline_events", account="main", contact_id=7, event_key="k", snippet="called")
    assert find_person(warehouse, None, f"{ANN}\r", None) == PERSON
    told = {table: len(rows) for table, rows in rows_about(warehouse, PERSON).items()}
    tables = ("contacts", "direct_reviews", "timeline_events")
    assert told == count_rows_about(warehouse, [PERSON]) == {f"source.{name}": 1 for name in tables}
    assert delete_rows_about(warehouse, [PERSON]) == told
    assert count_rows_about(warehouse, [PERSON]) == {}
    assert left(warehouse, "select contact_id from source.contacts") == [8]


def test_rows_of_others_stay_as_they_were(warehouse: duckdb.DuckDBPyConnection) -> None:
    others = [f"jo{ANN}", f"{ANN}.org", f"{ANN}-x", f"o'{ANN}", BOB]
    for number, email in enumerate(others, 70):
        add(warehouse, "source.contacts", account="main", contact_id=number, list_id=1, email=email)
        add(
            warehouse,
            "source.direct_reviews",
            account="main",
            review_id=number,
            email=email,
            inquiry=f"{ANN} 7",
        )
    add(warehouse, "source.timeline_events", account="other", contact_id=7, event_key="k")
    assert delete_rows_about(warehouse, [PERSON]) == {}
    assert left(warehouse, "select email from source.contacts order by contact_id") == others
    assert left(warehouse, "select distinct inquiry from source.direct_reviews") == [f"{ANN} 7"]
    assert left(warehouse, "select count(*) from source.timeline_events") == [1]


def test_a_row_that_names_them_beside_stays_without_their_address(
    warehouse: duckdb.DuckDBPyConnection,
) -> None:
    add(
        warehouse,
        "source.lists",
        account="main",
        list_id=3,
        name="News",
        reply_to=ANN.upper(),
        from_email=BOB,
    )
    assert delete_rows_about(warehouse, [PERSON]) == {}
    assert warehouse.execute("select name, reply_to, from_email from source.lists").fetchall() == [
        ("News", None, BOB)
    ]


def test_requests_about_them_and_entries_that_could_not_be_read_go(
    warehouse: duckdb.DuckDBPyConnection,
) -> None:
    timeline, coupon = "emailmarketing/getcontacttimeline", "emailmarketing/getcoupon"
    calls = [(timeline, '{"id": "7"}'), (coupon, f'{{"email": "{ANN.upper()}"}}'), (timeline, '{"id": "77"}')]
    for number, (operation, params) in enumerate(calls):
        add(warehouse, "sync.requests", request_id=number, account="main", operation=operation, params=params)
        raw = f'{{"id": {7 if number == 0 else 70}, "e-mail": "{ANN if number == 1 else BOB}"}}'
        add(warehouse, "sync.rejected_records", account="main", table_name="contacts", raw=raw)
    assert delete_rows_about(warehouse, [PERSON]) == {"sync.requests": 2, "sync.rejected_records": 2}
    assert left(warehouse, "select params from sync.requests") == ['{"id": "77"}']


def test_each_account_has_its_own_rows_and_ids(warehouse: duckdb.DuckDBPyConnection) -> None:
    for account, number in (("main", 7), ("other", 9)):
        add(warehouse, "source.contacts", account=account, contact_id=number, list_id=1, email=ANN)
        add(warehouse, "sync.rejected_records", account=account, table_name="contacts", raw='{"id": 7}')
    assert find_person(warehouse, "main", ANN, None) == PERSON
    found = rows_about(warehouse, PERSON, "main")
    assert [row["account"] for rows in found.values() for row in rows] == ["main", "main"]
    assert count_rows_about(warehouse, [PERSON]) == {"source.contacts": 2, "sync.rejected_records": 1}


def test_any_table_with_their_key_is_searched(warehouse: duckdb.DuckDBPyConnection) -> None:
    """Also one that a later version adds."""
    warehouse.execute("create schema added")
    warehouse.execute("create table added.people as select 'main' as account, ? as email_normalized", [ANN])
    assert delete_rows_about(warehouse, [PERSON]) == {"added.people": 1}


def test_the_copied_file_has_all_that_the_old_one_had_and_no_deleted_bytes(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    warehouse.execute("create view marts.people as select contact_id from source.contacts")
    add(warehouse, "source.contacts", account="main", contact_id=7, list_id=1, email=ANN)
    add(warehouse, "source.contacts", account="main", contact_id=8, list_id=1, email=BOB)
    shown = (
        "select table_name, column_name, data_type, comment from duckdb_columns() where not internal "
        "order by all"
    )
    warehouse.execute("checkpoint")
    delete_rows_about(warehouse, [PERSON])
    before = warehouse.execute(shown).fetchall(), warehouse.execute("from marts.people").fetchall()
    copy_database(warehouse, tmp_path / "new.duckdb")
    with duckdb.connect(str(tmp_path / "new.duckdb")) as after:
        assert (after.execute(shown).fetchall(), after.execute("from marts.people").fetchall()) == before
    assert ANN.encode() not in (tmp_path / "new.duckdb").read_bytes()


@given(st.text(max_size=12))
def test_sql_and_python_have_one_normal_form(text: str) -> None:
    with duckdb.connect() as connection:
        add_normal_form(connection)
        assert connection.execute(f"select {NORMAL_FORM.format('$1::varchar')}", [text]).fetchall() == [
            (normal_form(text),)
        ]
