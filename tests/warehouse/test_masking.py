"""What becomes of personal data: stable and keyed hashes, nothing at all, and addresses within other
texts."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import json
import re
from collections.abc import Sequence
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
from warehouse.masking import Masking, personal_key
from warehouse.masking import hashed as hashed_by_us
from warehouse.policies import PersonalData

KEY = Secret("a key that nobody guesses")


def hashed(text: str, key: Secret) -> str:
    """What a personal text becomes under `hash`: HMAC-SHA-256 of its normal form, 32 hexadecimal digits."""
    return hmac.new(key.reveal().encode(), normal_form(text).encode(), hashlib.sha256).hexdigest()[:32]


def shown(masking: Masking, text: Any, sql_type: str = "VARCHAR", *, is_personal: bool = True) -> Any:
    with duckdb.connect() as connection:
        masking.prepare(connection)
        expression = masking.expression("text", sql_type, is_personal=is_personal)
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
    assert (
        shown(Masking(PersonalData.HASH, Secret(key)), text)
        == hashed(text, Secret(key))
        == hashed_by_us(text, Secret(key))
    )


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
        ('{"email":"ann@example.com","n":[1]}', "JSON", '{"email":"•••","n":[1]}'),
        (["ann@example.com", "b"], "VARCHAR[]", ["•••", "b"]),
        ("two at once", "VARCHAR", "two at once"),
        (None, "VARCHAR", None),
    ],
)
def test_addresses_are_removed_from_what_is_not_personal(
    masking: Masking, text: Any, sql_type: str, expected: Any
) -> None:
    assert shown(masking, text, sql_type, is_personal=False) == expected


def links(masking: Masking, texts: Sequence[str], sql_type: str = "VARCHAR") -> list[str]:
    """As they are shown, in one copy."""
    with duckdb.connect() as connection:
        masking.prepare(connection)
        expression = masking.expression("text", sql_type, is_personal=False)
        rows = connection.execute(
            f"select {expression} from (select unnest($1)::{sql_type} as text)", [list(texts)]
        ).fetchall()
        return [row[0] for row in rows]


def unmarked(text: str) -> str:
    return re.sub("•••[0-9a-f]{16}", "~", text)


@pytest.mark.parametrize("masking", [HASH, DROP])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://x.org/menu", "https://x.org/menu"),
        (
            "https://x.org/menu?utm_source=mail&utm_campaign=Fr%C3%BChling%20x&page=2",
            ...,
        ),  # nothing of a person
        ("https://x.org/menu?name=Ann", "https://x.org/menu?~"),
        (
            "https://x.org/menu?utm_source=mail&name=Ann&lang=de",
            "https://x.org/menu?utm_source=mail&lang=de&~",
        ),
        ("https://x.org/menu?ann", "https://x.org/menu?~"),  # a value may stand without a name
        ("https://x.org/menu?QW5u==", "https://x.org/menu?~"),
        ("https://x.org/menu#ann", "https://x.org/menu?~"),
        ("https://x.org/#/?name=Ann", "https://x.org/?~"),
        ("https://ann:secret@x.org/menu", "https://x.org/menu?~"),
        ("https://ann@x.org:8080/menu", "https://x.org:8080/menu?~"),
        ("https://x.org/ann%40example.com/a", "https://x.org/•••/a?~"),
        ("https://x.org/ann%2540example.com/a", "https://x.org/•••/a?~"),
        (
            "https://x.org/?utm_content=https%3A%2F%2Fy.org%3Fname%3DAnn",
            "https://x.org/?~",
        ),  # a link within a link
        ("https://x.org/?utm_source=mail&amp;name=Ann", "https://x.org/?utm_source=mail&~"),
        ("https://x.org/?name=Ann Lee", "https://x.org/?~"),
        ("/menu?name=Ann Lee", "/menu?~"),
        ("x.org?name=Ann", "x.org?~"),
        ("mailto:ann@example.com?subject=Hi%20Ann", "mailto:•••?~"),
        ("Hi, see www.x.org/#ann, and x.org/a?b=Ann!", "Hi, see www.x.org/?~ and x.org/a?~"),
        ('<a href="https://x.org/?name=Ann Lee">Our menu</a>', '<a href="https://x.org/?~">Our menu</a>'),
        ("<a href='//x.org/?Ann Lee'>Our menu</a>", "<a href='//x.org/?~'>Our menu</a>"),
        ("Really? 100% & #1", "Really? 100% & #1"),
    ],
)
def test_a_link_keeps_its_page_and_what_is_known_to_be_harmless(
    masking: Masking, text: str, expected: Any
) -> None:
    assert unmarked(links(masking, [text])[0]) == (text if expected is ... else expected)


@pytest.mark.parametrize("masking", [HASH, DROP])
def test_links_stay_apart_and_equal_ones_equal_within_a_copy(masking: Masking) -> None:
    texts = [
        f"https://x.org/{path}?utm_source=a&name={name}"
        for path in ("a", "b@x.org")
        for name in ("Ann", "ann", "Ben")
    ]
    texts += ["https://x.org/a?utm_source=a", "https://x.org/a"]
    assert len(set(links(masking, texts))) == len(texts)
    assert links(masking, [texts[0], texts[0]])[0] == links(masking, [texts[0]] * 2)[1] or masking is DROP
    first, second = links(masking, [texts[0], texts[0]])
    assert first == second


def test_dropped_links_are_others_in_every_copy_and_hashed_ones_the_same() -> None:
    text = ["https://x.org/?name=Ann"]
    assert (
        links(HASH, text)
        == links(HASH, text)
        != links(Masking(PersonalData.HASH, Secret("another key of some length")), text)
    )
    assert links(DROP, text) != links(DROP, text)


def test_links_within_json_are_masked_and_it_stays_json() -> None:
    texts = [
        'https://x.org/?a="Ann" b',
        "see 'https://x.org/?a=Ann\n'",
        "https://x.org?utm_source=a&name=Ann",
        "x?a=Ann\\b",
        '<a href="//x?Ann b">',
    ]
    content = [json.dumps({"text": text, "n": 1}) for text in texts]
    content.append(content[2].replace("&", "\\u0026"))
    for found in links(HASH, content, "JSON"):
        assert json.loads(found)["n"] == 1
        assert "Ann" not in found


@settings(max_examples=examples(200))
@given(
    st.sampled_from(["https://x.org", "//x.org/", "http://x.org/a/b", "www.x.org/", "/a", "x.org/a"]),
    st.lists(
        st.tuples(
            st.sampled_from(["name", "utm_source", "e", "", "q[]"]),
            st.sampled_from(["TOKEN", "TOKEN%20x", "%54OKEN", "a"]),
        ),
        max_size=4,
    ),
    st.sampled_from(["&", "&amp;", ";"]),
    st.sampled_from(["", "#TOKEN", "#a?TOKEN", "#", "?TOKEN"]),
    st.sampled_from(["{}", " {} ", "see {} and", '<a href="{}">x</a>', "<a href='{}'>x</a>", "({})"]),
)
def test_no_value_of_a_link_is_left_but_known_ones(
    place: str, query: list[tuple[str, str]], between: str, end: str, around: str
) -> None:
    kept = [(name, value) for name, value in query if not (name == "utm_source" and "TOKEN" in value.upper())]
    link = (
        place
        + ("?" + between.join(f"{name}={value}" if name else value for name, value in kept) if kept else "")
        + end
    )
    assert "OKEN" not in links(HASH, [around.format(link)])[0]


def test_types_that_nobody_looks_into_are_left_out() -> None:
    for sql_type in ("STRUCT(a VARCHAR)", "MAP(VARCHAR, INTEGER)", "VARCHAR[][]", "BLOB"):
        assert HASH.expression("text", sql_type, is_personal=False) == f'null::{sql_type} as "text"'
    for sql_type in ("BIGINT", "DECIMAL(18,4)", "TIMESTAMPTZ", "BIGINT[]", "DATE"):
        assert HASH.expression("text", sql_type, is_personal=False) == '"text"'


GROUPS = {
    "by": "domain",
    "people": "address_count",
    "sum": ["address_count", "opened_count", "sent_count"],
    "max": ["last_number"],
    "shares": {"open_rate": ["opened_count", "sent_count"]},
}
TYPES = (
    ("account", "VARCHAR"),
    ("domain", "VARCHAR"),
    ("address_count", "BIGINT"),
    ("opened_count", "BIGINT"),
    ("sent_count", "BIGINT"),
)


def folded(sizes: Sequence[int], group_min: int, masking: Masking = DROP) -> list[tuple[Any, ...]]:
    """(domain, people, opened, sent, rate, median, last) of the groups that are shown."""
    masking = Masking(masking.personal_data, KEY, group_min)
    values = ", ".join(
        f"('a', 'd{n}.example', {size}, {n % 2}, {size}, {n % 2} / greatest({size}, 1), {n}, {n})"
        for n, size in enumerate(sizes)
    )
    names = "account, domain, address_count, opened_count, sent_count, open_rate, median_hours, last_number"
    columns = (*TYPES, ("open_rate", "DOUBLE"), ("median_hours", "DOUBLE"), ("last_number", "BIGINT"))
    with duckdb.connect() as connection:
        connection.execute(f"create table t as from (values {values}) as t({names})")
        connection.execute("alter table t alter address_count type bigint")
        shown = masking.relation("t", dict(columns), GROUPS)
        return connection.execute(f"select * exclude (account) from {shown} order by domain").fetchall()


@settings(max_examples=examples(60))
@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 7))
def test_no_group_is_shown_that_has_fewer_people_than_asked_for(sizes: list[int], group_min: int) -> None:
    found = folded(sizes, group_min)
    named = [row for row in found if row[0] != "(other)"]
    other = [row for row in found if row[0] == "(other)"]
    assert all(row[1] >= group_min for row in named)
    assert sum(row[1] for row in found) == sum(row[3] for row in found) == sum(sizes)
    assert sum(row[2] for row in found) == sum(n % 2 for n in range(len(sizes)))
    assert all(row[1] >= group_min or not named or row[1] == 0 for row in other), (
        "an (other) of a few takes the next smallest"
    )
    assert len({row[0] for row in found}) == len(found)


def test_a_folded_row_has_sums_shares_and_no_median() -> None:
    assert folded([1, 2, 6, 3], 5) == [
        ("(other)", 6, 2, 6, 2 / 6, None, 3),
        ("d2.example", 6, 0, 6, 0.0, 2, 2),
    ]
    assert folded([1, 6, 9], 5)[0][:2] == ("(other)", 7)
    assert len(folded([1, 1, 1], 5, KEEP)) == 3


def test_groups_are_folded_within_what_is_kept_apart() -> None:
    groups = {"by": "month", "people": "address_count", "within": ["later"]}
    groups["sum"] = ["address_count", "click_count"]
    columns = (
        ("account", "VARCHAR"),
        ("month", "DATE"),
        ("later", "BIGINT"),
        ("address_count", "BIGINT"),
        ("click_count", "BIGINT"),
    )
    values = ", ".join(
        f"('a', date '2026-0{month}-01', {later}, {size}, 1)"
        for month, size in ((1, 2), (2, 9), (3, 3))
        for later in (0, 1)
    )
    with duckdb.connect() as connection:
        connection.execute(
            f"create table t as from (values {values}) as t({', '.join(name for name, _ in columns)})"
        )
        found = connection.execute(
            f"select * exclude (account) from {DROP.relation('t', dict(columns), groups)} order by all"
        ).fetchall()
    assert found == [
        (dt.date(2026, 2, 1), 0, 9, 1),
        (dt.date(2026, 2, 1), 1, 9, 1),
        (None, 0, 5, 2),
        (None, 1, 5, 2),
    ]


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
    with pytest.raises(
        WarehouseError, match=r"personal\.key holds no key of at least 16 printable characters"
    ):
        personal_key(tmp_path)


def test_hashing_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a key"):
        Masking(PersonalData.HASH)
