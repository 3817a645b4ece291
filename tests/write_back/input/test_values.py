"""Dates are read as people write them, and never in two ways."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from write_back.input.rows import MARKS, cell_of
from write_back.input.values import (
    BadValue,
    field_value,
    parse_moment,
    read_address,
    read_tags,
)

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("value", "wall"),
    [
        ("20.11.2026 14:00", "2026-11-20 14:00"),
        ("20.11.2026", "2026-11-20 00:00"),
        ("1.2.2026, 9:05", "2026-02-01 09:05"),
        ("2026-11-20T14:00Z", "2026-11-20 15:00"),
        ("2026-11-20 2:00 PM", "2026-11-20 14:00"),
        ("2026-11-20 14:00:00+00", "2026-11-20 15:00"),
        ("2026-11-20 14:00:00.123456+00", "2026-11-20 15:00"),
        ("2026-11-20 14:00+01", "2026-11-20 14:00"),
        ("2026-11-20 14:00:00 UTC", "2026-11-20 15:00"),
        ("2026/11/20 14:00", "2026-11-20 14:00"),
        ("2026.11.20", "2026-11-20 00:00"),
        ("25-11-2026 14:00", "2026-11-25 14:00"),
        ("11-25-2026", "2026-11-25 00:00"),
        (dt.datetime(2026, 11, 20, 14), "2026-11-20 14:00"),
        (dt.date(2026, 11, 20), "2026-11-20 00:00"),
    ],
)
def test_dates_are_read_as_people_write_them(value: object, wall: str) -> None:
    assert parse_moment(cell_of(value), BERLIN).wall == dt.datetime.fromisoformat(wall)


@pytest.mark.parametrize(
    "text",
    [
        "20.13.2026",
        "20 Nov 2026",
        "20.11.26",
        "Nov 20",
        "20.11.2026 25:00",
        "20.11.20261",
        "x" * 999,
    ],
)
def test_what_is_no_date_is_rejected_with_an_example(text: str) -> None:
    with pytest.raises(BadValue, match="write it like 2026-01-31 14:05"):
        parse_moment(text, BERLIN)


_DAYS = st.dates(dt.date(1971, 1, 1), dt.date(2099, 12, 31))


@given(_DAYS, st.sampled_from(["%d.%m.%Y", "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d"]))
def test_every_day_is_read_back_from_every_form(day: dt.date, form: str) -> None:
    assert parse_moment(day.strftime(form), BERLIN).wall.date() == day


@given(_DAYS, st.sampled_from(["%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"]))
def test_dates_of_numbers_are_read_as_they_were_meant_or_not_at_all(day: dt.date, form: str) -> None:
    if day.day > 12 or day.day == day.month:
        assert parse_moment(day.strftime(form), BERLIN).wall.date() == day
    else:
        with pytest.raises(BadValue, match="day or the month first: write it like 2026-01-31"):
            parse_moment(day.strftime(form), BERLIN)


@pytest.mark.parametrize(
    "text", ["“ann@example.com”", "mailto:ann@example.com", "ann@example.com;", "\u200bann@example.com"]
)
def test_what_stands_around_an_address_is_refused(text: str) -> None:
    with pytest.raises(BadValue) as refusal:
        read_address(text)
    assert "ann" not in str(refusal.value)


def test_what_is_more_than_an_address_is_said() -> None:
    with pytest.raises(BadValue, match="has a name and an e-mail address"):
        read_address("Ann <ann@example.com>")
    with pytest.raises(BadValue, match="more than one @"):
        read_address("ann@example.com, bo@example.com")


@pytest.mark.parametrize(
    "text", ["ann@example.com", "o'brien@example.com", "a%20b@example.com", "_a@exämple.de"]
)
def test_an_address_may_have_unusual_letters_within(text: str) -> None:
    assert read_address(text) == text


#: A cell, and the tags that are meant.
TAGS = [
    ("vip, news", "vip,news"),
    ("vip;news;", "vip,news"),
    ("vip|news", "vip,news"),
    ("a::b", "a::b"),
    ("v\u200bip,\ufeffvip,vip\xa0", "vip"),
    ("cafe\u0301,caf\xe9", "caf\xe9"),
    ("a \xa0 b", "a b"),
    ("👩\u200d💻", "👩\u200d💻"),
    ("O'Brien,5\" pipe", "O'Brien,5\" pipe"),
    ("a/b,c: d", "a/b,c: d"),
]


@pytest.mark.parametrize(("text", "wanted"), TAGS)
def test_tags_are_read_as_others_write_them(text: str, wanted: str) -> None:
    assert ",".join(read_tags(text)) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"Portland, Oregon"', "put only commas"),
        ('["vip", "news"]', "put only commas"),
        ("vip\nnews", "has a line break in it"),
        ("a;b,c", "several kinds of separators"),
        ("R&amp;D", "write the character itself"),
        ("NULL,vip", "“NULL” means that there is none"),
        ("“vip”", "put only commas"),
        ("#a #b", "looks like several tags"),
        ("\u200b", "the tag is missing"),
        ("caf\x8e", "has a control character in it"),
        ("caf\ufffd", "in place of a letter"),
    ],
)
def test_tags_that_may_be_others_are_rejected(text: str, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        read_tags(text)


_LETTERS = st.characters(categories=["L", "Nd"], max_codepoint=0x2FF)
_WORDS = st.text(_LETTERS, min_size=1).filter(lambda word: word not in MARKS)


@given(st.lists(_WORDS, min_size=1))
@example(["vip", "news"])
def test_tags_come_back_from_every_way_of_listing_them(words: list[str]) -> None:
    wanted = read_tags(",".join(words))
    for sign in ";|":
        assert read_tags(sign.join(words)) == wanted


def test_what_a_spreadsheet_made_of_a_number_is_rejected() -> None:
    with pytest.raises(BadValue, match="has shortened"):
        field_value("4.917E+10", "column “Phone”")
