"""A cell has the text that Excel displays, or its stored value and a sentence in the plan."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.styles.numbers import BUILTIN_FORMATS

from tests.write_back.input.test_files import reading
from tests.write_back.input.test_workbook import book
from write_back.input.columns import pick_columns
from write_back.input.number_formats import show_number
from write_back.input.rows import Stored, cell_text
from write_back.item import Options
from write_back.kinds import CONTACTS

_EURO = '_-* #,##0.00\\ _€_-;\\-* #,##0.00\\ _€_-;_-* "-"??\\ _€_-;_-@_-'
_DOLLAR = '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\);_("$"* "-"??_);_(@_)'
#: Value, format, what Excel displays in English, without blanks at both ends.
NUMBERS = [
    (1067, "00000", "01067"),
    (0.15, "0%", "15%"),
    (0.1234, "0.0%", "12.3%"),
    (0.15, "0 %", "15 %"),
    (4915112345678, "+0", "+4915112345678"),
    (1234567.5, '#,##0.00 "€"', "1,234,567.50 €"),
    (1234.5, "#,##0.00\\ [$€-407]", "1,234.50 €"),
    (1234, "[$$-409]#,##0.00", "$1,234.00"),
    (-1234.5, "$#,##0.00", "-$1,234.50"),
    (1234.5, _EURO, "1,234.50"),
    (-1234.5, _EURO, "-1,234.50"),
    (0, _EURO, "-"),
    (1234.5, _DOLLAR, "$1,234.50"),
    (-1234.5, _DOLLAR, "$(1,234.50)"),
    (0, _DOLLAR, "$-"),
    (0.001, _DOLLAR, "$0.00"),
    (-5, "0", "-5"),
    (-5, "0;(0)", "(5)"),
    (-5, "0.00;[Red]0.00", "5.00"),
    (0, '0;-0;"zero"', "zero"),
    (1, '"yes";"no"', "yes"),
    (0, "0;-0;;@", ""),
    (3, ";;;", ""),
    (0, "#", ""),
    (-0.1, "#", ""),
    (0.5, "#.##", ".5"),
    (1, "0.##", "1."),
    (1.1, "0.0##", "1.1"),
    (12, ".00", "12.00"),
    (5, "#,#00", "05"),
    (2.5, "0", "3"),
    (-2.5, "0", "-3"),
    (-0.1, "0", "0"),
    (1.005, "0.00", "1.01"),
    (9.999, "#,##0.00", "10.00"),
    (1e15, "General", "1000000000000000"),
    (12, "@", "12"),
    (5, '0" ;kg"', "5 ;kg"),
]
DATES = [
    (46349, "mm/dd/yyyy", "11/23/2026"),
    (46349.604166667, "m/d/yy h:mm", "11/23/26 14:30"),
    (46349.604166667, "dddd, mmmm d, yyyy h:mm AM/PM", "Monday, November 23, 2026 2:30 PM"),
    (46349.604166667, "d-mmm-yy", "23-Nov-26"),
    (46349.604166667, "mm/dd/yyyy;@", "11/23/2026"),
    (46349.604166667, 'yyyy-mm-dd"T"hh:mm:ss', "2026-11-23T14:30:00"),
    (46349.604166667, "[$-409]mmmm d, yyyy", "November 23, 2026"),
    (46349.5, "[$-407]dd.mm.yyyy", "23.11.2026"),
    (0.6041666666666666, "h:mm:ss", "14:30:00"),
    (46349.604166667, "yyyymmddhhmmss", "20261123143000"),
    (46349.25, "h AM/PM", "6 AM"),
    (0.000694, "mm:ss", "01:00"),
    (61, "yyyy-mm-dd", "1900-03-01"),
    (0.99999999, "h:mm:ss", "0:00:00"),
]
#: Formats that are not supported, and what is read.
STORED = [
    (491701234567, "+## ### #######", "491701234567"),
    (5551234567, "(###) ###-####", "5551234567"),
    (5551234, "[<=9999999]###-####;(###) ###-####", "5551234"),
    (0, '[=1]"yes";[=0]"no";General', "0"),
    (123456789, "000-00-0000", "123456789"),
    (1234567, "0.0,,", "1234567"),
    (1234567, "#,##0,", "1234567"),
    (1.5, "0.???", "1.5"),
    (12345.678, "0.00E+00", "12345.678"),
    (1.25, "# ?/?", "1.25"),
    (5, 'General" kg"', "5"),
    (-3, "General;-General", "-3"),
    (-3, "General;General", "-3"),
    (-1, '"yes"', "-1"),
    (-1, "0;", "-1"),
    (1e300, "0.00", "1" + 300 * "0"),
    (1, "0" * 256, "1"),
    (46349.5, "[$-407]d. mmmm yyyy", "2026-11-23 12:00:00"),  # Excel displays the month in German
    (46349, "[$-F800]dddd\\, mmmm dd\\, yyyy", "2026-11-23"),
    (46349, "[$-107041E]d/m/yyyy", "2026-11-23"),  # in the Buddhist calendar
    (46349.6042, "hh:mm:ss.000", "46349.6042"),
    (1.25, "[hh]:mm:ss", "1.25"),
    (46349, "mmmmm", "46349"),
    (-1, "yyyy-mm-dd", "-1"),
    (2_958_466, "yyyy-mm-dd", "2958466"),
    (60, "yyyy-mm-dd", "60"),  # the 29th of February 1900
]


@pytest.mark.parametrize(("value", "code", "text"), NUMBERS + DATES)
def test_a_number_has_the_text_that_excel_displays(value: float, code: str, text: str) -> None:
    found = show_number(value, code)
    assert found == text
    assert not isinstance(found, Stored)


@pytest.mark.parametrize(("value", "code", "text"), STORED)
def test_an_unsupported_format_leaves_the_stored_value(value: float, code: str, text: str) -> None:
    found = show_number(float(value), code)
    assert isinstance(found, Stored)
    assert (found, cell_text(found)) == (text, text)


@given(
    st.floats(-1e300, 1e300) | st.sampled_from([0.0, 59.5, 2_958_465.999999]),
    st.text(st.sampled_from('0#?.,%E+-/ymdhsAPM[]"\\_*;@G $<>=5x'), max_size=12),
)
def test_no_format_keeps_a_workbook_from_being_read(value: float, code: str) -> None:
    assert isinstance(show_number(value, code), str)


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


def test_a_date_in_an_unsupported_format_is_read_as_a_date() -> None:
    cell = show_number(46349.604166667, "[$-F800]dddd\\, mmmm dd\\, yyyy")
    assert cell.value == dt.datetime(2026, 11, 23, 14, 30)
