"""Rows about forgotten people have pseudonyms, texts of others lose whole occurrences of what is theirs, and
nobody else's row changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.address import normal_form
from warehouse.erasure import forget_in_database, numbers_of, people_in
from warehouse.forgetting import Forgotten
from warehouse.person import Person, find_person
from warehouse.schema import ensure_schema
from warehouse.sql import NORMAL_FORM, add_normal_form

ANN, BOB = "ann@corner.example", "bob@corner.example"
WHO = Forgotten(b"a key").including([ANN], [("main", 7)])
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


def forgotten(
    connection: duckdb.DuckDBPyConnection, folder: Path, who: Forgotten = WHO
) -> tuple[dict[str, int], duckdb.DuckDBPyConnection]:
    """What was changed, and the new file."""
    new = folder / "new.duckdb"
    counts = forget_in_database(connection, who, new)
    return counts, duckdb.connect(str(new))


@pytest.mark.slow
@pytest.mark.parametrize("spelling", [ANN, "Ann@Corner.example", f" {ANN}\t", f"{ANN}\u200b"])
def test_rows_about_them_have_pseudonyms_however_the_address_is_spelled(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path, spelling: str
) -> None:
    add(
        warehouse,
        "source.contacts",
        account="main",
        contact_id=7,
        list_id=1,
        email=spelling,
        custom_fields='{"1": "Archive"}',
    )
    add(
        warehouse,
        "source.direct_reviews",
        account="main",
        review_id=1,
        email=spelling,
        inquiry="I am Ann",
        rating="Good",
    )
    assert find_person(warehouse, None, f"{ANN}\r", None) == PERSON == people_in(warehouse, WHO)
    counts, after = forgotten(warehouse, tmp_path)
    assert counts == {"source.contacts": 1, "source.direct_reviews": 1}
    with after:
        pseudonyms = (WHO.contact("main", 7), WHO.address(ANN), None)
        assert after.execute("select contact_id, email, custom_fields from source.contacts").fetchall() == [
            pseudonyms
        ]
        assert after.execute("select email, inquiry, rating from source.direct_reviews").fetchall() == [
            (WHO.address(ANN), None, "Good")
        ]
        assert forget_in_database(after, WHO, None) == {}


def test_rows_of_others_are_as_they_were_but_for_whole_occurrences(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Whatever words she has, and whosever address contains hers."""
    add(
        warehouse,
        "source.contacts",
        account="main",
        contact_id=7,
        list_id=1,
        email=ANN,
        custom_fields='{"1": "Archive", "2": "wine"}',
    )
    texts = [f"jo{ANN}", f"{ANN}.org", f"{ANN}-x", "Archive of wine", "contact 70, 7 and 17", f"o'{ANN}"]
    for number, text in enumerate([*texts, f"wine for {ANN}, contact 7"], 1):
        add(warehouse, "source.direct_reviews", account="main", review_id=number, email=BOB, inquiry=text)
    counts, after = forgotten(warehouse, tmp_path)
    with after:
        left = [
            text
            for (text,) in after.execute(
                "select inquiry from source.direct_reviews order by review_id"
            ).fetchall()
        ]
    assert left == [*texts, f"wine for {WHO.address(ANN)}, contact {WHO.contact('main', 7)}"]
    assert counts["source.direct_reviews"] == 1


def test_any_column_that_is_declared_personal_is_theirs(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Also one that a later version adds; and one that nobody declares is personal."""
    warehouse.execute("create schema added")
    warehouse.execute(
        "create table added.people as select 'main' as account, 7::bigint as contact_id, ? as "
        "email_normalized",
        [ANN],
    )
    counts, after = forgotten(warehouse, tmp_path)
    assert counts == {"added.people": 1}
    with after:
        assert after.execute("select * from added.people").fetchall() == [
            ("main", WHO.contact("main", 7), WHO.address(ANN))
        ]


def test_the_new_file_has_all_that_the_old_one_had(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    warehouse.execute("create view marts.people as select contact_id from source.contacts")
    add(warehouse, "source.contacts", account="main", contact_id=8, list_id=1, email=BOB)
    shown = (
        "select table_name, column_name, data_type, comment from duckdb_columns() where not internal "
        "order by all"
    )
    before = warehouse.execute(shown).fetchall(), warehouse.execute("from marts.people").fetchall()
    _, after = forgotten(warehouse, tmp_path)
    with after:
        assert (after.execute(shown).fetchall(), after.execute("from marts.people").fetchall()) == before


def test_a_telephone_number_is_looked_for_unless_others_have_it_too(
    warehouse: duckdb.DuckDBPyConnection,
) -> None:
    add(warehouse, "source.list_fields", account="main", list_id=1, field_id=1, label="Mobile phone")
    fields = '{"1": "079 555 01 02", "2": "+41 79 555 01 03", "3": "2026-01-02", "4": "5550104"}'
    add(
        warehouse, "source.contacts", account="main", contact_id=7, list_id=1, email=ANN, custom_fields=fields
    )
    assert numbers_of(warehouse, PERSON) == {"0795550102", "41795550103"}
    add(warehouse, "source.direct_reviews", account="main", review_id=1, email=BOB, phone="0041 79 555 0103")
    assert numbers_of(warehouse, PERSON) == {"0795550102"}


@given(st.text(max_size=12))
def test_sql_and_python_have_one_normal_form(text: str) -> None:
    with duckdb.connect() as connection:
        add_normal_form(connection)
        assert connection.execute(f"select {NORMAL_FORM.format('$1::varchar')}", [text]).fetchall() == [
            (normal_form(text),)
        ]
