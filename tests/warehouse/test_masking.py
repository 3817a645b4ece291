"""What becomes of personal data: stable and keyed hashes, nothing, and addresses in other texts."""

import hashlib
import hmac
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketing_api.address import normal_form
from marketing_api.redaction import Secret
from tests.depth import examples
from warehouse.errors import WarehouseError
from warehouse.masking import Masking, PublishedColumn, personal_key
from warehouse.policies import PersonalData

KEY = Secret("a key that nobody guesses")


def hashed(text: str, key: Secret) -> str:
    """What a personal text becomes under `hash`: HMAC-SHA-256 of its normal form, 32 hexadecimal digits."""
    return hmac.new(key.reveal().encode(), normal_form(text).encode(), hashlib.sha256).hexdigest()[:32]


def shown(
    masking: Masking, text: Any, sql_type: str = "VARCHAR", *, is_personal: bool = True, is_link: bool = False
) -> Any:
    with duckdb.connect() as connection:
        masking.prepare_connection(connection)
        expression = masking.mask_column("text", PublishedColumn(sql_type, is_personal, is_link))
        return connection.execute(
            f"select {expression} from (select $1::{sql_type} as text)", [text]
        ).fetchall()[0][0]


HASH, DROP, KEEP = Masking(PersonalData.HASH, KEY), Masking(PersonalData.DROP), Masking(PersonalData.KEEP)


@settings(max_examples=examples(25))
@given(
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
    st.text("0123456789abcdef", min_size=16),
)
def test_a_hash_can_be_computed_elsewhere_with_the_key(text: str, key: str) -> None:
    assert shown(Masking(PersonalData.HASH, Secret(key)), text) == hashed(text, Secret(key))


def test_spellings_of_an_address_have_one_hash_and_other_keys_another() -> None:
    assert (
        shown(HASH, " Ann@Example.com\t") == shown(HASH, "ann@example.com") == hashed("ann@example.com", KEY)
    )
    assert (
        shown(HASH, "ΝΙΚΟΣ@example.com")
        == shown(HASH, "νικος@example.com")
        != shown(HASH, "nikos@example.com")
    )
    assert shown(HASH, "ann@example.com") != shown(
        Masking(PersonalData.HASH, Secret("another key of some length")), "ann@example.com"
    )
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
        ("no such contact: ann.lee+x@mail.example.com.", "VARCHAR", "no such contact: •••"),
        ("to ann%2540example.com, ann&#64;example.com", "VARCHAR", "to •••, •••"),
        (["ann@example.com", "b"], "VARCHAR[]", ["•••", "b"]),
        ("two at once", "VARCHAR", "two at once"),
        (None, "VARCHAR", None),
    ],
)
def test_addresses_are_removed_from_what_is_not_personal(
    masking: Masking, text: Any, sql_type: str, expected: Any
) -> None:
    assert shown(masking, text, sql_type, is_personal=False) == expected


@pytest.mark.parametrize("masking", [HASH, DROP])
@pytest.mark.parametrize(
    ("text", "sql_type"),
    [
        ("https://x.org/menu?utm_source=mail&name=Ann", "VARCHAR"),
        ('<a href="https://x.org/ann">Our menu</a>', "VARCHAR"),
        ("", "VARCHAR"),
        (["https://x.org/ann"], "VARCHAR[]"),
        (2, "BIGINT"),
    ],
)
def test_a_column_of_links_is_dropped(masking: Masking, text: Any, sql_type: str) -> None:
    assert shown(masking, text, sql_type, is_personal=False, is_link=True) is None
    assert shown(masking, text, sql_type, is_personal=True, is_link=True) is None
    assert shown(KEEP, text, sql_type, is_personal=False, is_link=True) == text


@pytest.mark.parametrize("masking", [HASH, DROP])
def test_json_is_dropped_and_not_looked_into(masking: Masking) -> None:
    assert shown(masking, '{"email":"ann@example.com"}', "JSON", is_personal=False) is None


def test_types_that_nobody_looks_into_are_left_out() -> None:
    for sql_type in ("STRUCT(a VARCHAR)", "MAP(VARCHAR, INTEGER)", "VARCHAR[][]", "BLOB"):
        assert (
            HASH.mask_column("text", PublishedColumn(sql_type, is_personal=False))
            == f'null::{sql_type} as "text"'
        )
    for sql_type in ("BIGINT", "DECIMAL(18,4)", "TIMESTAMPTZ", "BIGINT[]", "DATE"):
        assert HASH.mask_column("text", PublishedColumn(sql_type, is_personal=False)) == '"text"'


def test_the_key_stands_in_no_statement_and_no_message() -> None:
    with duckdb.connect() as connection:
        HASH.prepare_connection(connection)
        expression = HASH.mask_column("text", PublishedColumn("VARCHAR", is_personal=True))
        with pytest.raises(duckdb.Error) as caught:
            connection.execute(f"select {expression} from nowhere")
    assert KEY.reveal() not in expression + str(caught.value)


def test_the_homes_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    key = personal_key(tmp_path)
    assert personal_key(tmp_path) == key
    assert len(key.reveal()) == 64
    assert [(path.name, path.stat().st_mode & 0o777) for path in tmp_path.iterdir()] == [
        ("personal.key", 0o600)
    ]
    assert personal_key(tmp_path, KEY) == KEY


@pytest.mark.parametrize("has_key", [False, True])
def test_what_a_process_left_that_was_killed_while_it_made_the_key_goes(
    tmp_path: Path, *, has_key: bool
) -> None:
    if has_key:
        personal_key(tmp_path)
    (tmp_path / ".personal.key-0123abcd").write_text("half a k")
    key = personal_key(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["personal.key"]
    assert personal_key(tmp_path) == key


@pytest.mark.parametrize(
    "content", [b"", b"short", bytes(range(64)), b"\xff" * 64, b"0123456789abcdef\x00" * 4]
)
def test_a_key_that_got_lost_is_not_replaced_silently(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "personal.key").write_bytes(content)
    with pytest.raises(WarehouseError, match=r"personal\.key has no key of at least 16 printable characters"):
        personal_key(tmp_path)


def test_hashing_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a key"):
        Masking(PersonalData.HASH)
