"""What the warehouse knows, asked for many contacts of one account; nothing unread is claimed."""

import datetime as dt
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from home.settings import Settings
from marketing_api.exchange import Connection
from marketing_api.redaction import Secret
from tests.write_back.planner import READ_AT
from warehouse.connection import open_database
from write_back.account_state import Content, Known, ListReader, Lists, Member, load_known
from write_back.input.rows import InputError
from write_back.input.values import BadValue, read_address
from write_back.item import Past, State


@pytest.fixture
def path(small_warehouse: Path, tmp_path: Path) -> Path:
    """A warehouse of one's own."""
    return Path(shutil.copy(small_warehouse, tmp_path / "warehouse.duckdb"))


def change(path: Path, *statements: str) -> None:
    with open_database(path) as connection:
        for statement in statements:
            connection.execute(statement)


def test_an_address_has_its_active_contacts_first_then_the_oldest(known: Known) -> None:
    found = known.by_address(["ann@example.com", "bo@example.com", "gone@example.com", "ann@example.com"])
    assert {
        email: [(each.contact_id, each.list_id) for each in members] for email, members in found.items()
    } == {
        "ann@example.com": [(101, 1), (301, 3), (201, 2)],
        "bo@example.com": [(102, 1)],
    }
    assert known.by_address([]) == {}


def test_an_id_has_its_lists_and_other_accounts_are_others(known: Known) -> None:
    assert {
        number: [each.email for each in members] for number, members in known.by_id([102, 77, 999]).items()
    } == {102: ["Bo@Example.com"]}


def test_the_keys_of_shown_fields_are_those_of_any_contact(known: Known) -> None:
    assert known.shown_fields({1, 2, 3}) == {1: {"11", "12"}, 2: {"City"}}


def test_timelines_are_asked_by_contact_and_minute(known: Known) -> None:
    at = int(dt.datetime(2026, 2, 1, 9, 30, 59, tzinfo=dt.UTC).timestamp())
    assert [
        (contact_id, [each.texts for each in shown])
        for (contact_id, _), shown in known.find_events(
            {(101, at // 60), (102, (at + 1) // 60), (5, at // 60)}
        ).items()
    ] == [(101, [("Called about the offer",)])]


def test_only_lists_that_were_read_to_the_end_count_as_read(path: Path) -> None:
    change(path, "update sync.coverage set is_complete = false where scope = 'list_id=2'")
    known = load_known(Settings(path.parent), "main")
    assert known.as_of == {1: READ_AT.timestamp(), 3: READ_AT.timestamp()}
    assert not known.is_all_known
    in_tokyo = Connection("main", "http://localhost/1", Secret("key"), timezone="Asia/Tokyo")
    assert load_known(Settings(path.parent, (in_tokyo,)), "main").zone.key == "Asia/Tokyo"


def test_the_zone_is_the_accounts_own_or_the_one_for_accounts_that_tell_none(path: Path) -> None:
    assert load_known(Settings(path.parent, timezone="Asia/Tokyo"), "main").zone.key == "Europe/Berlin"
    change(path, "update source.business set timezone = null")
    assert load_known(Settings(path.parent, timezone="Asia/Tokyo"), "main").zone.key == "Asia/Tokyo"


def test_an_account_that_was_never_read_is_said_with_what_to_do(path: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with open_database(tmp_path / "empty" / "warehouse.duckdb"):
        pass
    for home, account in ((path.parent, "other"), (tmp_path / "none", "main"), (tmp_path / "empty", "main")):
        with pytest.raises(
            InputError, match="run `marketing-sync sync --only business lists contacts` first"
        ):
            load_known(Settings(home, lock_seconds=5), account)


# -- lists

LISTS = Lists.from_rows(
    [(1, "News"), (2, "Friends, Family; Fans"), (3, "2"), (4, "Twins"), (5, "twins "), (6, None)],
    [(1, "11", "City"), (1, "12", "city"), (2, "21", "City"), (2, "22", None)],
)


@pytest.mark.parametrize(
    ("cell", "ids"),
    [
        ("news", (1,)),
        (" 1 ; NEWS", (1,)),
        ("1.0", (1,)),
        ("Friends, Family; Fans", (2,)),
        ("2", (2,)),
        ("3,1", (3, 1)),
        ("News,6", (1, 6)),
        ("5", (5,)),
    ],
)
def test_lists_are_named_by_id_or_name_one_or_several(cell: str, ids: tuple[int, ...]) -> None:
    assert LISTS.find_lists(cell) == ids


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("Twins", "2 lists are called “Twins”: use the id of the list, 4 or 5"),
        ("99", "no list “99”"),
        (",", "missing"),
    ],
)
def test_a_list_that_is_not_one_is_said(cell: str, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        LISTS.find_lists(cell)


def test_columns_name_fields_by_id_or_label_and_never_two_at_once() -> None:
    assert LISTS.columns_of(2, ["CITY", "22", "Street"]) == {"CITY": "21", "22": "22"}
    assert LISTS.columns_of(1, ["11"]) == {"11": "11"}
    with pytest.raises(BadValue, match="has 2 fields “City”: name the column by the field's id"):
        LISTS.columns_of(1, ["City"])
    with pytest.raises(BadValue, match="two columns name the same field"):
        LISTS.columns_of(2, ["City", "21"])


# -- how a contact stands


def member(fields: str | None, status: int | None = 1) -> Member:
    return Member(1, 1, "a@example.com", status, fields)


@pytest.mark.parametrize(
    "shown",
    [
        '{"11": "x "}',
        '{"City": "x"}',
        '{"ci ty": "x"}',
        '{"11": {"label": "City", "value": "x"}}',
        '{"zip": 1, "City": "x"}',
    ],
)
def test_a_field_is_found_by_id_or_label_in_any_form(shown: str) -> None:
    reader = ListReader({"11": "City", "12": "Zip code"}, {"11"})
    now = reader.find_present([member(shown)], None, None)
    assert reader.is_so(now, "11", "x")
    assert not reader.is_so(now, "11", "y")


def test_what_is_not_shown_is_not_known_and_what_is_shown_for_others_only_is_empty() -> None:
    for keys, is_empty in ((set(), False), ({"City"}, True)):
        reader = ListReader({"11": "City"}, keys)
        now = reader.find_present([member("{}")], None, None)
        assert reader.is_so(now, "11", "") is is_empty
        assert not reader.is_so(now, "11", "x")
    twins = ListReader({"11": "City", "12": "city"}, {"city"})
    assert not twins.is_so(twins.find_present([member('{"city": "x"}')], None, None), "11", "x")


def test_contacts_with_one_address_on_one_list_have_to_agree() -> None:
    reader = ListReader({"11": "City"}, {"11"})
    now = reader.find_present([member('{"11": "x"}'), member('{"11": "y"}', 2)], None, None)
    assert now.status is None
    assert not reader.is_so(now, "11", "x")


_CONTENT = st.builds(
    Content,
    st.integers(0, 3),
    st.dictionaries(st.sampled_from(["11", "12"]), st.text(max_size=5)),
    st.none() | st.just("203.0.113.7"),
)


@given(
    _CONTENT, st.sampled_from([State.APPLIED, State.VERIFIED, State.PLANNED, State.SENDING, State.UNKNOWN])
)
def test_what_was_sent_since_the_reading_covers_it(content: Content, state: State) -> None:
    assert Content.from_text(content.text) == content
    reader = ListReader({"11": "City", "12": "Zip"}, {"11"})
    past = Past(1, content.text, state, None, 1_000_000.0)
    now = reader.find_present([member('{"11": "before"}', 3)], past, 1_000.0)
    assert (now.status, now.is_ours) == (content.status, True)
    assert all(reader.is_so(now, field_id, text) for field_id, text in content.fields.items())
    later = reader.find_present([member('{"11": "after"}', 3)], past, 2_000_000.0)
    is_open = state not in (State.APPLIED, State.VERIFIED)
    assert (later.status, later.is_ours, later.is_queued) == (
        content.status if is_open else 3,
        is_open,
        is_open,
    )
    assert is_open or reader.is_so(later, "11", "after")


def test_a_value_that_was_sent_may_be_shown_in_another_notation() -> None:
    reader = ListReader({"11": "Firm", "12": "Zip"}, {"11"})
    past = Past(1, Content(1, {"11": "M & S", "12": ""}).text, State.VERIFIED, None, 1_000.0)
    for shown, is_sent in (("M &amp; S", True), ("M  & S", True), ("M and S", False), ("", False)):
        members = [member(json.dumps({"11": shown}))]
        now = reader.find_present(members, past, 2_000_000.0)
        assert reader.is_so(now, "11", "M & S") is is_sent
        assert not reader.is_so(reader.find_present(members, None, None), "11", "M & S")
    twins = [member('{"11": "M &amp; S"}'), member('{"11": "M & S"}', 2)]
    assert not reader.is_so(reader.find_present(twins, past, 2_000_000.0), "11", "M & S")


# -- addresses


@pytest.mark.parametrize(
    "text",
    ["a@b.co", "o'neil+x@x-y.museum", "jörg@köln.de", "用户@例子.公司", "a@xn--kln-sna.de", "x@हिन्दी.भारत"],
)
def test_addresses_of_any_script_are_taken(text: str) -> None:
    assert read_address(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "a@b",
        "a@b..co",
        ".a@b.co",
        "a.@b.co",
        "a@-b.co",
        "a@b-.co",
        "a@b.c",
        "<a@b.co>",
        "Ann <a@b.co>",
        "a@b.co;",
        "a\u200b@b.co",
        "a@b.123",
        "a@b_c.de",
        "@b.co",
        "mailto:a@b.co",
        "a@1.2.3.4",
        "é@-ö.de",
        "a@ö-.de",
        '"a"@b.co',
        "x" * 65 + "@b.co",
        "a@" + "b." * 127 + "co",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        read_address(text)


def test_an_id_with_commas_is_never_taken_for_other_lists() -> None:
    lists = Lists.from_rows([(1, "a"), (2, "b"), (234, "c"), (1234, "d"), (567, "e")], [])
    assert lists.find_lists("1,2") == (1, 2)
    assert lists.find_lists("234,567") == (234, 567)
    with pytest.raises(BadValue, match="may be one id or several"):
        lists.find_lists("1,234")
