"""Single values: every form that was observed, and properties over all of them."""

import contextlib
import datetime as dt
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.records.reputation import read_rating
from marketing_api.records.shapes import content_hash
from marketing_api.records.values import (
    as_text,
    is_nothing,
    read_bool,
    read_clicker,
    read_decimal,
    read_int,
    read_moment,
    read_network,
    read_share,
    read_text,
    read_word,
    to_singular,
)
from tests.marketing_api.responses import ZONE, utc
from tests.patterns import MB, plainly

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
)
READERS = (
    read_int,
    read_decimal,
    read_bool,
    read_share,
    read_clicker,
    read_text,
    read_word,
    read_network,
    as_text,
)
OSLO = ZoneInfo("Europe/Oslo")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("11/04/2014 16:33", "2014-11-04 21:33:00"),
        ("08/15/2013 14:52 PM", "2013-08-15 18:52:00"),
        ("05/16/2013 10:34 AM", "2013-05-16 14:34:00"),
        ("2022-05-26 05:40 PM", "2022-05-26 21:40:00"),
        ("23-03-2022 05:13 PM", "2022-03-23 21:13:00"),
        ("2022-05-26 05:40PM", "2022-05-26 21:40:00"),
        ("05/16/2013 12:05 AM", "2013-05-16 04:05:00"),
        ("05/16/2013 12:05 PM", "2013-05-16 16:05:00"),
        ("2022-05-26 17:40:09", "2022-05-26 21:40:09"),
        ("2022-05-26T17:40:09Z", "2022-05-26 17:40:09"),
        ("2022-05-26T17:40:09+02:00", "2022-05-26 15:40:09"),
        ("01/15/2026", "2026-01-15 05:00:00"),
        ("1383582780", "2013-11-04 16:33:00"),
        (1383582780, "2013-11-04 16:33:00"),
        (1383582780.0, "2013-11-04 16:33:00"),
        (" 11/04/2014 16:33 ", "2014-11-04 21:33:00"),
        ("2022-05-26 17:40:09.25", "2022-05-26 21:40:09.25"),
        ("05/16/2013 00:05 AM", "2013-05-16 04:05:00"),
        ("03/08/2026 03:00", "2026-03-08 07:00:00"),
        ("03/08/2026 02:30", "2026-03-08 07:30:00"),
        ("03/08/2026", "2026-03-08 05:00:00"),
        ("11/01/2026 01:30", "2026-11-01 05:30:00"),
    ],
)
def test_every_observed_date_form_is_read_in_the_accounts_zone(text: Any, expected: str) -> None:
    assert read_moment(text, ZONE) == utc(expected)


@pytest.mark.parametrize(
    "value", ["N/A", "-", "", "0", 0, None, False, "0000-00-00 00:00:00", "00/00/0000", "null", []]
)
def test_words_for_no_date_are_none(value: Any) -> None:
    assert read_moment(value, ZONE) is None


@pytest.mark.parametrize(
    "value",
    ["soon", "13/45/2014", "02/30/2014", "2014", True, 5, 20141104, 1e30, {"a": 1}, "11/04/2014 25:00"],
)
def test_what_is_no_date_is_refused_without_repeating_it(value: Any) -> None:
    with pytest.raises(ValueError, match="date or time") as refused:
        read_moment(value, ZONE)
    assert str(value) not in str(refused.value)


LOCAL_FORMS = (
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M %p",
    "%m/%d/%Y %I:%M %p",
    "%Y-%m-%d %I:%M%p",
    "%d-%m-%Y %I:%M %p",
    "%Y-%m-%dT%H:%M:%S",
)


@given(st.datetimes(min_value=dt.datetime(1971, 1, 1), max_value=dt.datetime(2100, 1, 1)))
def test_local_times_come_back_in_their_zone(local: dt.datetime) -> None:
    local = local.replace(second=0, microsecond=0)
    assert {read_moment(local.strftime(form), OSLO) for form in LOCAL_FORMS} == {
        local.replace(tzinfo=OSLO).astimezone(dt.UTC)
    }


def clock_changes(zone: dt.tzinfo) -> Iterator[tuple[dt.datetime, dt.timedelta, dt.timedelta]]:
    """Every change of the zone's clocks in 15 years: when, and their offsets before and after."""
    week, at = dt.timedelta(days=6), dt.datetime(2011, 11, 1, tzinfo=dt.UTC)
    while at < dt.datetime(2026, 12, 1, tzinfo=dt.UTC):
        low, high = at, at + week
        before, after = (each.astimezone(zone).utcoffset() or dt.timedelta() for each in (low, high))
        if before != after:
            while high - low > dt.timedelta(minutes=1):
                middle = low + (high - low) // dt.timedelta(minutes=2) * dt.timedelta(minutes=1)
                low, high = (middle, high) if middle.astimezone(zone).utcoffset() == before else (low, middle)
            yield high, before, after
        at += week


@pytest.mark.slow
def test_around_every_change_of_any_zones_clocks_a_time_is_read_by_the_clock_before_until_both_are_past_it() -> (
    None
):
    minute, seen = dt.timedelta(minutes=1), set()
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        changes = tuple(clock_changes(zone))
        if changes in seen:
            continue  # another name of a zone that was looked at
        seen.add(changes)
        for at, before, after in changes:
            early, late = sorted(at.replace(tzinfo=None) + ahead for ahead in (before, after))
            for local in (
                early - minute,
                early,
                early + (late - early) // 2,
                late - minute,
                late,
                late + minute,
            ):
                shown = local.replace(second=0)
                wanted = (shown - (before if shown < late else after)).replace(tzinfo=dt.UTC)
                assert {read_moment(shown.strftime(form), zone) for form in LOCAL_FORMS} == {wanted}, (
                    f"{name}: {shown}"
                )
    assert sum(map(len, seen)) > 1_000


@given(st.integers(100_000_000, 4_000_000_000))
def test_unix_seconds_are_the_same_as_number_and_text(seconds: int) -> None:
    assert (
        read_moment(seconds, ZONE)
        == read_moment(str(seconds), OSLO)
        == dt.datetime.fromtimestamp(seconds, dt.UTC)
    )


@pytest.mark.parametrize(
    ("value", "number"),
    [("12", 12), (12, 12), (12.0, 12), ("12.0", 12), ("1,204", 1204), (" -3 ", -3), ("+3", 3)],
)
def test_whole_numbers_in_every_form(value: Any, number: int) -> None:
    assert read_int(value) == number


@pytest.mark.parametrize(
    "value",
    [
        *("1.5", "x", "", "1e400", "9" * 30, "9" * 5000, "²", "1,5", "1.000"),
        *(1.5, None, [], float("nan"), 1e18, True, 2**63),
        pytest.param(10**5000, id="10**5000"),
    ],
)
def test_what_is_no_whole_number_of_64_bits_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="number"):
        read_int(value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_and_their_texts_are_the_same(number: int) -> None:
    assert read_int(number) == read_int(str(number)) == read_int(f"{number:,}") == number


@pytest.mark.parametrize(
    ("value", "number"), [("80.0000", "80.0000"), (4, "4"), ("1,234.5", "1234.5"), (0.1, "0.1")]
)
def test_decimals_keep_their_digits(value: Any, number: str) -> None:
    assert str(read_decimal(value)) == number
    assert isinstance(read_decimal(value), Decimal)


@pytest.mark.parametrize(
    ("value", "truth"),
    [("1", True), (0, False), ("Yes", True), ("no", False), (True, True), ("FALSE", False)],
)
def test_truth_in_every_form(value: Any, truth: bool) -> None:
    assert read_bool(value) is truth


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("11 (366.67%)", (11, 366.67)),
        ("3 (27.3 %)", (3, 27.3)),
        ("1,204 (5%)", (1204, 5.0)),
        ("0(0%)", (0, 0.0)),
        ("11 (1,366.67 %)", (11, 1366.67)),
        ("12", (12, None)),
        (12, (12, None)),
        ("N/A", (None, None)),
        ("", (None, None)),
    ],
)
def test_counts_with_a_percentage(value: Any, expected: tuple[int | None, float | None]) -> None:
    assert read_share(value) == expected


@given(st.integers(0, 10**9), st.floats(0, 10_000).map(lambda share: round(share, 2)))
def test_any_count_and_percentage_come_back(count: int, share: float) -> None:
    assert read_share(f"{count} ({share:f}%)") == (count, share)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name@example.com(2 clicks)", ("name@example.com", 2)),
        ("name@example.com (1 click)", ("name@example.com", 1)),
        ("name@example.com", ("name@example.com", 1)),
        ('"odd(name)"@example.com(1,000 Clicks)', ('"odd(name)"@example.com', 1000)),
        ("name@example.com (2)", ("name@example.com", 2)),
        ("name@example.com: 3 clicks", ("name@example.com", 3)),
        ("name@example.com - 3", ("name@example.com", 3)),
        ("3 clicks name@example.com", ("name@example.com", 3)),
        ("Ann Lee <name@example.com> (2)", ("name@example.com", 2)),
        ("mailto:name@example.com, 2", ("name@example.com", 2)),
        ({"email": "name@example.com", "clicks": "2"}, ("name@example.com", 2)),
        (["name@example.com", 2], ("name@example.com", 2)),
    ],
)
def test_clickers(text: Any, expected: tuple[str, int]) -> None:
    assert read_clicker(text) == expected


@pytest.mark.parametrize(
    "value",
    [
        *({"email": "a@b.example", "name": "Ann"}, {"clicks": 2}, {"email": ["a@b.example"]}),
        {"email": "a@b.example (3)", "clicks": 2},
        *(["a@b.example", True], ["a@b.example", -2], ["a@b.example", 2, 3], ["a@b.example", None]),
        *(7, True, None, [], {}),
    ],
)
def test_what_is_no_clicker_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="number"):
        read_clicker(value)


@given(st.emails().filter(lambda email: "**" not in email), st.integers(1, 10**6))  # as masked ones have
def test_any_address_and_number_of_clicks_come_back(email: str, count: int) -> None:
    assert read_clicker(f"{email}({count} clicks)") == (email, count)


@pytest.mark.parametrize(
    ("word", "one"),
    [
        ("Pages", "page"),
        ("profiles", "profile"),
        ("companies", "company"),
        ("boards", "board"),
        ("Positives", "positive"),
        ("Neutral", "neutral"),
        ("business", "business"),
        ("businesses", "business"),
        ("inboxes", "inbox"),
        ("status", "status"),
        ("SMS", "sms"),
        ("News", "news"),
        ("Series", "series"),
    ],
)
def test_singular(word: str, one: str) -> None:
    assert to_singular(word) == one


@pytest.mark.parametrize(
    ("value", "text"),
    [("", ""), ("N/A", "N/A"), (7, "7"), (1.5, "1.5"), (True, "true"), ([], None), ({}, None)],
)
def test_texts_stay_as_they_came(value: Any, text: str | None) -> None:
    assert read_text(value) == as_text(value) == text


@pytest.mark.parametrize(
    "value", [{"a": "é"}, ["a"], 1e300, float("nan"), pytest.param(10**5000, id="10**5000")]
)
def test_structures_and_numbers_that_lost_digits_are_no_text(value: Any) -> None:
    with pytest.raises(ValueError, match=r"text|digits"):
        read_text(value)


def test_structures_are_json_where_the_raw_form_is_asked_for() -> None:
    assert as_text({"a": "é"}) == '{"a": "é"}'


@given(ANYTHING)
def test_readers_refuse_with_value_errors_only(value: Any) -> None:
    is_nothing(value)
    for reader in (*READERS, lambda item: read_moment(item, ZONE)):
        with contextlib.suppress(ValueError):
            reader(value)


@pytest.mark.parametrize("depth", [900, 100_000])
def test_absurd_depth_is_refused_like_anything_else(depth: int) -> None:
    deep: Any = []
    for _ in range(depth):
        deep = [deep]
    for reader in (*READERS, lambda item: read_moment(item, ZONE)):
        with contextlib.suppress(ValueError):
            reader(deep)
    assert read_rating(deep) is None
    assert content_hash([deep])


@pytest.mark.parametrize(
    "hostile",
    [
        *("a@" + "b." * 500_000, "a" * MB + "@b.example", "a@b.example" + " " * MB + "x"),
        *('"' + "\\" * MB + '"@b.example', "9" * MB, "1," * 500_000, "1 (" + " " * MB + "%"),
        *("05/16/2013 10:34" + " " * MB + "x", "é" * MB, "a@" + "b." * 490, "a" * 900 + "@b.example"),
        *("a@b.example" + " " * 980 + "x", "i:" * 4_000, "{i:" * 3_000, "<" * 1_000, "\\" * 990 + '"@b.c'),
    ],
    ids=lambda text: f"{text[:5]!r} {len(text)}",
)
def test_a_megabyte_of_hostile_text_takes_no_time(hostile: str) -> None:
    began = time.thread_time()
    for reader in (*READERS, lambda item: read_moment(item, ZONE), read_rating):
        with contextlib.suppress(ValueError):
            reader(hostile)
    times = (time.thread_time() - began) / plainly()
    assert times < 5, "times a plain search through a megabyte: one of them is not linear"
