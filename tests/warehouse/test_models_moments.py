"""The models read moments in details exactly as the loading does, in every form of observation 21."""

import datetime as dt
import random
from functools import cache
from zoneinfo import ZoneInfo

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Environment

from marketing_api.records.values import is_no_moment, read_moment
from tests.depth import examples
from tests.marketing_api.records.spellings import READERS
from warehouse.dbt_project import PROJECT

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
FORMS = (
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M %p",
    "%m/%d/%Y %I:%M %p",
    "%Y-%m-%d %I:%M %p",
    "%d-%m-%Y %I:%M %p",
    "%Y-%m-%d %I:%M%p",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S.25",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S+02:00",
    "%Y-%m-%d",
    "%m/%d/%Y",
)


@cache
def _reader(macro: str = "moment") -> tuple[duckdb.DuckDBPyConnection, str]:
    text = "".join(
        (PROJECT / "macros" / name).read_text(encoding="utf-8")
        for name in ("local_time.sql", "timeline_details.sql")
    )
    macros = Environment().from_string(text).module  # as dbt has them: all in one place
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    words = ("word", "zone") if macro == "moment" else ("word",)
    return connection, str(getattr(macros, macro)(*words))


def in_sql(text: str, zone: str) -> dt.datetime | None:
    connection, expression = _reader()
    ((found,),) = connection.execute(
        f"select {expression} from (select ? as word, ? as zone)", [text, zone]
    ).fetchall()
    return found.astimezone(dt.UTC) if found else None


def in_python(text: str, zone: str) -> dt.datetime | None:
    try:
        return read_moment(text, ZoneInfo(zone))
    except ValueError:
        return None


@settings(max_examples=examples(150))
@given(
    st.datetimes(dt.datetime(2001, 9, 10), dt.datetime(2037, 1, 1)),
    st.sampled_from(FORMS),
    st.sampled_from(ZONES),
)
def test_every_form_is_read_as_the_loading_reads_it(local: dt.datetime, form: str, zone: str) -> None:
    text = local.strftime(form)
    assert in_sql(text, zone) == in_python(text, zone) is not None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "1415119980",
            "1415119980.5",
            "  05/16/2013 10:34 AM",
            "N/A",
            "-",
            "",
            "0000-00-00 00:00:00",
            "13/45/2020 10:00",
            "soon",
            "12",
            " ",
        ),
        *("14151199800", "02/26/2021 24:00", "02/26/2021 10:30:60", "02/26/21 10:30"),
    ],
)
def test_numbers_nothing_and_nonsense(text: str) -> None:
    assert in_sql(text, "Europe/Berlin") == in_python(text, "Europe/Berlin")


def test_near_misses_are_refused_as_the_loading_refuses_them() -> None:
    rng = random.Random(10)
    texts = [READERS["moment"].twist(rng) for _ in range(2_000)]
    connection, expression = _reader()
    read = connection.execute(
        f"select word, {expression} as at from (select unnest(?) as word, 'America/New_York' as zone)",
        [texts],
    )
    assert [word for word, at in read.fetchall() if at is not None] == []
    assert [text for text in texts if in_python(text, "America/New_York") is not None] == []


@pytest.mark.parametrize(
    "text", ["2026-10-25 02:30 AM", "2026-03-29 02:30 AM", "2026-11-01 01:30 AM", "2026-03-08 02:30 AM"]
)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_hours_that_clocks_show_twice_or_never(text: str, zone: str) -> None:
    assert in_sql(text, zone) == in_python(text, zone)


def test_a_zone_whose_clocks_changed_lately() -> None:
    text = "2026-11-20 11:30 PM"
    assert in_sql(text, "America/Vancouver") == in_python(text, "America/Vancouver")


@pytest.mark.parametrize(
    "text",
    ["[]", "false", "00/00/0000 00:00", "-0001-11-30 00:00:00", "11/30/-0001 00:00", "11/30/2026 00:00"],
)
def test_no_moment_means_that_nothing_happened(text: str) -> None:
    connection, expression = _reader("is_told")
    told = connection.execute(f"select {expression} from (select ? as word)", [text]).fetchall()
    assert told == [(text not in ("[]", "false") and not is_no_moment(text),)]
