"""What becomes of personal data: stable and keyed hashes, nothing at all, and addresses within other texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketing_api.secret import Secret
from warehouse.errors import WarehouseError
from warehouse.masking import Masking, hashed, personal_key
from warehouse.personal_data import PersonalData

KEY = Secret("a key that nobody guesses")


def shown(masking: Masking, text: Any, sql_type: str = "VARCHAR", *, is_personal: bool = True) -> Any:
    with duckdb.connect() as connection:
        masking.prepare(connection)
        expression = masking.expression("text", sql_type, is_personal=is_personal)
        return connection.execute(f"select {expression} from (select $1::{sql_type} as text)", [text]).fetchall()[0][0]


HASH, DROP, KEEP = Masking(PersonalData.HASH, KEY), Masking(PersonalData.DROP), Masking(PersonalData.KEEP)


@settings(max_examples=25, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), st.text("0123456789abcdef", min_size=16))
def test_a_hash_can_be_computed_elsewhere_with_the_key(text: str, key: str) -> None:
    ascii_only = text.encode("ascii", "ignore").decode() or "x"  # outside of it, tools disagree on lower case
    assert shown(Masking(PersonalData.HASH, Secret(key)), ascii_only) == hashed(ascii_only, Secret(key))


def test_spellings_of_an_address_have_one_hash_and_other_keys_another() -> None:
    assert shown(HASH, " Ann@Example.com") == shown(HASH, "ann@example.com") == hashed("ann@example.com", KEY)
    assert shown(HASH, "ann@example.com") != shown(Masking(PersonalData.HASH, Secret("another key of some length")), "ann@example.com")
    assert len(shown(HASH, "ann@example.com")) == 32


@pytest.mark.parametrize(
    ("masking", "text", "sql_type", "expected"),
    [
        (KEEP, "Ann", "VARCHAR", "Ann"),
        (HASH, None, "VARCHAR", None),
        (HASH, "", "VARCHAR", ""),
        (HASH, '{"phone":"555"}', "JSON", None),
        (DROP, "Ann", "VARCHAR", None),
        (DROP, '{"phone":"555"}', "JSON", None),
        (DROP, 7, "BIGINT", None),
    ],
)
def test_a_personal_value(masking: Masking, text: Any, sql_type: str, expected: Any) -> None:
    assert shown(masking, text, sql_type) == expected


@pytest.mark.parametrize("masking", [HASH, DROP])
@pytest.mark.parametrize(
    ("text", "sql_type", "expected"),
    [
        ("https://x.org/?mail=ann%40example.com&n=1", "VARCHAR", "https://x.org/?mail=•••&n=1"),
        ("no such contact: ann.lee+x@mail.example.com.", "VARCHAR", "no such contact: •••"),
        ('{"email":"ann@example.com","n":[1]}', "JSON", '{"email":"•••","n":[1]}'),
        (["https://x.org/ann@example.com/a", "b"], "VARCHAR[]", ["https://x.org/•••/a", "b"]),
        ("two at once", "VARCHAR", "two at once"),
        (None, "VARCHAR", None),
    ],
)
def test_addresses_are_removed_from_what_is_not_personal(masking: Masking, text: Any, sql_type: str, expected: Any) -> None:
    assert shown(masking, text, sql_type, is_personal=False) == expected


def test_the_key_stands_in_no_statement_and_no_message() -> None:
    with duckdb.connect() as connection:
        HASH.prepare(connection)
        expression = HASH.expression("text", "VARCHAR", is_personal=True)
        with pytest.raises(duckdb.Error) as caught:
            connection.execute(f"select {expression} from nowhere")
    assert KEY.reveal() not in expression + str(caught.value)


def test_the_homes_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    key = personal_key(tmp_path)
    assert personal_key(tmp_path) == key
    assert len(key.reveal()) == 64
    assert [(path.name, path.stat().st_mode & 0o777) for path in tmp_path.iterdir()] == [("personal.key", 0o600)]
    assert personal_key(tmp_path, KEY) == KEY


def test_a_key_that_got_lost_is_not_replaced_silently(tmp_path: Path) -> None:
    (tmp_path / "personal.key").touch()
    with pytest.raises(WarehouseError, match=r"personal\.key does not hold a key of at least 16 characters"):
        personal_key(tmp_path)


def test_hashing_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a key"):
        Masking(PersonalData.HASH)
