"""A cell has the text that Excel displays, or its stored value and a sentence in the plan."""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.styles.numbers import BUILTIN_FORMATS

from tests.write_back.input.test_files import reading
from tests.write_back.input.test_workbook import book
from write_back.input.columns import pick_columns
from write_back.input.number_formats import show_date, show_number
from write_back.input.rows import Seen, Stored, cell_text
from write_back.item import Options
from write_back.kinds import CONTACTS

_EURO = '_-* #,##0.00\\ _€_-;\\-* #,##0.00\\ _€_-;_-* "-"??\\ _€_-;_-@_-'
#: Value, format, what Excel displays in English, without blanks at both ends.
NUMBERS = [
    (1067, "00000", "01067"),
    (-1067, "00000", "-01067"),
    (0.15, "0%", "15%"),
    (0.1234, "0.0%", "12.3%"),
    (0.15, "0 %", "15 %"),
    (1234567.5, "#,##0.00", "1,234,567.50"),
    (-1234.5, "#,##0", "-1,235"),
    (0, "#,##0.00", "0.00"),
    (-5, "0", "-5"),
    (2.5, "0", "3"),
    (-0.1, "0", "0"),
    (1.005, "0.00", "1.01"),
    (9.999, "#,##0.00", "10.00"),
    (1e15, "General", "1000000000000000"),
    (12, "@", "12"),
    (4532015112830366, "0", "4532015112830366"),
]
_MOMENT = dt.datetime(2026, 11, 23, 14, 30)
DATES = [
    (_MOMENT, "mm/dd/yyyy", "11/23/2026"),
    (_MOMENT, "dddd, mmmm d, yyyy h:mm AM/PM", "Monday, November 23, 2026 2:30 PM"),
    (_MOMENT, "d-mmm-yy", "23-Nov-26"),
    (_MOMENT, "mm/dd/yyyy;@", "11/23/2026"),
    (_MOMENT, "[$-409]mmmm d, yyyy", "November 23, 2026"),
    (_MOMENT, "[$-407]dd.mm.yyyy", "23.11.2026"),
    (_MOMENT, "dd\\.mm\\.yyyy", "23.11.2026"),
    (_MOMENT, 'yyyy"-"mm"-"dd', "2026-11-23"),
    (_MOMENT, "mm-dd-yy", "2026-11-23"),
    (_MOMENT, "yyyymmddhhmmss", "20261123143000"),
    (dt.time(14, 30), "h:mm:ss", "14:30:00"),
    (dt.time(0, 1), "mm:ss", "01:00"),
]
#: Formats that are not supported, and what is read.
STORED = [
    (1234567.5, '#,##0.00 "€"', "1234567.5"),
    (1234.5, _EURO, "1234.5"),
    (-5, "0;(0)", "-5"),
    (491701234567, "+## ### #######", "491701234567"),
    (12345.678, "0.00E+00", "12345.678"),
    (1.25, "# ?/?", "1.25"),
    (1e300, "0.00", "1" + 300 * "0"),
]
STORED_DATES = [
    (_MOMENT, "[$-407]d. mmmm yyyy", "2026-11-23 14:30:00"),  # Excel displays the month in German
    (_MOMENT, "[$-F800]dddd\\, mmmm dd\\, yyyy", "2026-11-23 14:30:00"),
    (_MOMENT, "[$-107041E]d/m/yyyy", "2026-11-23 14:30:00"),  # in the Buddhist calendar
    (_MOMENT, "hh:mm:ss.000", "2026-11-23 14:30:00"),
    (_MOMENT, "mmmmm", "2026-11-23 14:30:00"),
]


def show(value: float | dt.datetime | dt.time, code: str) -> Seen:
    return show_number(float(value), code) if isinstance(value, int | float) else show_date(value, code)


@pytest.mark.parametrize(("value", "code", "text"), NUMBERS + DATES)
def test_a_cell_has_the_text_that_excel_displays(value: Any, code: str, text: str) -> None:
    found = show(value, code)
    assert found == text
    assert not isinstance(found, Stored)


@pytest.mark.parametrize(("value", "code", "text"), STORED + STORED_DATES)
def test_an_unsupported_format_leaves_the_stored_value(value: Any, code: str, text: str) -> None:
    found = show(value, code)
    assert isinstance(found, Stored)
    assert (found, cell_text(found)) == (text, text)


@given(
    st.floats(-1e300, 1e300) | st.datetimes(dt.datetime(1900, 3, 1)),
    st.text(st.sampled_from('0#?.,%E+-/ymdhsAPM[]"\\_*;@G $<>=5x'), max_size=12),
)
def test_no_format_keeps_a_workbook_from_being_read(value: float | dt.datetime, code: str) -> None:
    assert isinstance(show(value, code), str)


def test_the_plan_names_columns_with_unsupported_formats_that_are_used() -> None:
    table: tuple[tuple[Any, ...], ...] = (
        ("email", "list", "price", "share", "since", "note"),
        ("a@b.co", 1, 1.25, 0.15, dt.datetime(2026, 11, 23), 1.5),
        ("c@d.co", 1, 2.5, 0.2, dt.datetime(2026, 11, 24), 1.5),
    )
    fractions = dict.fromkeys(("C2", "C3", "F2"), "# ?/?")
    shares = dict.fromkeys(("D2", "D3"), "0%")
    rows = reading(book(*table, formats={**fractions, **shares, "E2": "[$-F800]dddd", "E3": "yyyy-mm-dd"}))
    picked = pick_columns(rows, CONTACTS.columns, Options(ignore=("note",)), ["price", "share", "since"])
    assert picked.warnings == tuple(
        f"column “{title}”: the stored values of {cells} are used, because the number format is not "
        "supported; Excel may display something else"
        for title, cells in (("price", "2 cells"), ("since", "1 cell"))
    )
    assert picked.fields["price"] == ["1.25", "2.5"]
    assert picked.fields["share"] == ["15%", "20%"]


def test_built_in_formats_of_the_readers_system_are_not_guessed() -> None:
    """openpyxl writes the number of a built-in format, as Excel does, without its code."""
    table = (("email", "price", "on"), ("a@b.co", 1234.5, dt.datetime(2026, 11, 23)))
    cells = reading(book(*table, formats={"B2": BUILTIN_FORMATS[44], "C2": BUILTIN_FORMATS[14]})).cells
    assert (cells["price"], isinstance(cells["price"][0], Stored)) == (["1234.5"], True)
    assert (cells["on"], isinstance(cells["on"][0], Stored)) == (["2026-11-23"], False)
