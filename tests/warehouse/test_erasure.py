"""Which values of a person are theirs alone, so that they may be taken out wherever they stand."""

from __future__ import annotations

import duckdb
import pytest

from warehouse.erasure import Erasing, tokens_of
from warehouse.forgetting import Forgotten
from warehouse.person import Person

ANN = "ann@example.com"
PERSON = Person((ANN,))
ERASING = Erasing(PERSON, Forgotten(b"a key").including(PERSON.addresses, PERSON.contacts))


def tokens(*others: str, name: str) -> tuple[str, ...]:
    """Those of Ann, who is called `name`, where the texts of other rows are these."""
    with duckdb.connect() as connection:
        connection.execute("create schema source")
        connection.execute("create table source.direct_reviews (account text, review_id bigint, email text, phone text, inquiry text)")
        rows = [("main", 1, ANN, name, None), *(("main", number, None, None, text) for number, text in enumerate(others, 2))]
        connection.executemany("insert into source.direct_reviews values (?, ?, ?, ?, ?)", rows)
        return tokens_of(connection, ERASING)


def test_a_value_that_nobody_else_has_is_theirs() -> None:
    assert tokens("It was good", name="+41 79 555 01") == ("+41 79 555 01",)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Élodie", "élodie was kind"),
        ("elodie", "ÉLODIE AND ELODIE"),
        ('the "best"', r'{"text": "the \"best\" of all"}'),
        ("Anna", "Annabel"),
        ("a.b c?", "What is A.B C? It is this"),
    ],
)
def test_a_value_in_the_text_of_another_row_is_not_whatever_its_case_and_spelling(name: str, other: str) -> None:
    assert tokens("nothing", other, name=name) == ()


def test_one_that_others_have_too_hides_no_other() -> None:
    both = Erasing(Person((ANN, "bo@example.com")), ERASING.forgotten.including(["bo@example.com"], []))
    with duckdb.connect() as connection:
        connection.execute("create schema source")
        connection.execute("create table source.direct_reviews (account text, email text, phone text, inquiry text)")
        values = [
            ("main", ANN, "5550101", "shared words"),
            ("main", "bo@example.com", "5550102", ""),
            ("main", None, None, "Shared words!"),
        ]
        connection.executemany("insert into source.direct_reviews values (?, ?, ?, ?)", values)
        assert tokens_of(connection, both) == ("5550101", "5550102")
