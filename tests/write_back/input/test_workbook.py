"""What is read of a workbook is what it shows."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import zipfile
from collections.abc import Mapping
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

from tests.write_back.input.test_files import reading, records
from write_back.input.columns import pick
from write_back.input.number_formats import Unshown, shown_number, shown_text
from write_back.input.rows import Seen, held, text_of
from write_back.item import Options
from write_back.kinds import CONTACTS, TAGS

#: Value, format, what a spreadsheet shows in English.
NUMBERS = [
    (1067, "00000", "01067"),
    (0.15, "0%", "15%"),
    (0.1234, "0.0%", "12.3%"),
    (4915112345678, "+0", "+4915112345678"),
    (491701234567, "+## ### #######", "+49 170 1234567"),
    (5551234567, "(###) ###-####", "(555) 123-4567"),
    (5551234, "[<=9999999]###-####;(###) ###-####", "555-1234"),
    (5551234567, "[<=9999999]###-####;(###) ###-####", "(555) 123-4567"),
    (123456789, "000-00-0000", "123-45-6789"),
    (1234567.5, '#,##0.00 "€"', "1,234,567.50 €"),
    (1234, "[$$-409]#,##0.00", "$1,234.00"),
    (1234.5, "_-* #,##0.00\\ _€_-", "1,234.50"),
    (1234567, "0.0,,", "1.2"),
    (1234567, "#,##0,", "1,235"),
    (-5, "0", "-5"),
    (-5, "0;(0)", "(5)"),
    (0, '0;-0;"zero"', "zero"),
    (3, ";;;", ""),
    (1, '[=1]"yes";[=0]"no";General', "yes"),
    (7, '[=1]"yes";[=0]"no";General', "7"),
    (0, "#", ""),
    (0.5, "#.##", ".5"),
    (1.5, "0.???", "1.5"),
    (2.5, "0", "3"),
    (-2.5, "0", "-3"),
    (-0.1, "0", "0"),
    (1.005, "0.00", "1.01"),
    (12345.678, "0.00E+00", "1.23E+04"),
    (0.00012, "0.00E+00", "1.20E-04"),
    (9.999e9, "0.00E+00", "1.00E+10"),
    (12345, "##0.0E+0", "12.3E+3"),
    (1.25, "# ?/?", "1 1/4"),
    (0.3125, "# ?/16", "5/16"),
    (0.9999, "# ?/?", "1"),
    (5, 'General" kg"', "5 kg"),
    (1e15, "General", "1000000000000000"),
    (12, "@", "12"),
]
DATES = [
    (46349, "mm/dd/yyyy", "11/23/2026"),
    (46349.604166667, "m/d/yy h:mm", "11/23/26 14:30"),
    (46349.604166667, "dddd, mmmm d, yyyy h:mm AM/PM", "Monday, November 23, 2026 2:30 PM"),
    (46349.604166667, "d-mmm-yy", "23-Nov-26"),
    (46349.5, "[$-407]dd.mm.yyyy", "23.11.2026"),
    (46349.5, "[$-407]d. mmmm yyyy", "2026-11-23"),  # November is written otherwise in other languages
    (46349, "[$-F800]dddd\\, mmmm dd\\, yyyy", "2026-11-23"),
    (46349.6042, "hh:mm:ss.000", "14:30:02.880"),
    (0.6041666666666666, "h:mm:ss", "14:30:00"),
    (46349.25, "h AM/PM", "6 AM"),
    (1.25, "[hh]:mm:ss", "30:00:00"),
    (0.5, "[m]", "720"),
    (0.000694, "mm:ss", "01:00"),
    (61, "yyyy-mm-dd", "1900-03-01"),
    (60, "yyyy-mm-dd", "1900-02-29"),
    (1, "yyyy-mm-dd", "1900-01-01"),
    (0.99999999, "h:mm:ss", "0:00:00"),
]


@pytest.mark.parametrize(("value", "code", "text"), NUMBERS + DATES)
def test_a_number_is_read_as_its_format_shows_it(value: float, code: str, text: str) -> None:
    assert shown_number(value, code)[0] == text


@pytest.mark.parametrize(
    ("code", "text"),
    [("General", "Ann"), ("00000", "Ann"), ('"Ms. "@', "Ms. Ann"), (";;;", ""), ("0;-0;0;@", "Ann")],
)
def test_a_text_is_read_as_its_format_shows_it(code: str, text: str) -> None:
    assert shown_text("Ann", code) == text


@given(
    st.floats(-1e300, 1e300) | st.sampled_from([0.0, 59.5, 2_958_465.999999]),
    st.text(st.sampled_from('0#?.,%E+-/ymdhsAPM[]"\\_*;@G $<>=5x'), max_size=12),
)
def test_no_format_keeps_a_workbook_from_being_read(value: float, code: str) -> None:
    with contextlib.suppress(Unshown):
        assert isinstance(shown_number(value, code)[0], str)
    assert isinstance(shown_text("Ann", code), str)


@pytest.mark.parametrize("value", [-1.0, 2_958_466.0])
def test_a_date_that_there_is_not_is_not_shown(value: float) -> None:
    with pytest.raises(Unshown):
        shown_number(value, "yyyy-mm-dd")


def book(*table: tuple[Any, ...], formats: Mapping[str, str] | None = None, **how: Any) -> bytes:
    """A workbook of this table, with formats by cell; `rows` and `columns` are hidden."""
    written = openpyxl.Workbook()
    written.epoch = how.get("epoch", CALENDAR_WINDOWS_1900)
    sheet = written.active
    assert sheet is not None
    for record in table:
        sheet.append(record)
    for cell, code in (formats or {}).items():
        sheet[cell].number_format = code
    for row in how.get("rows", ()):
        sheet.row_dimensions[row].hidden = True
    for column in how.get("columns", ()):
        sheet.column_dimensions[column].hidden = True
    written.save(stream := io.BytesIO())
    return stream.getvalue()


@pytest.mark.parametrize("epoch", [CALENDAR_WINDOWS_1900, CALENDAR_MAC_1904])
@pytest.mark.parametrize(
    "day", [dt.datetime(1904, 2, 29), dt.datetime(2026, 11, 23, 14, 30), dt.datetime(9999, 12, 31)]
)
def test_both_systems_of_dates_show_the_day_that_was_meant(epoch: dt.datetime, day: dt.datetime) -> None:
    code = "ddd dd/mm/yyyy hh:mm"
    cell = reading(book(("email", "on"), ("a@b.co", day), formats={"B2": code}, epoch=epoch)).cells["on"][0]
    assert (cell, held(cell)) == (day.strftime("%a %d/%m/%Y %H:%M"), held(day))


def test_every_type_of_cell_is_read_as_it_is_shown() -> None:
    table = (
        ("email", "number", "is", "when", "since", "text"),
        (
            *(
                "a@b.co",
                1067,
                True,
                dt.datetime(2026, 11, 23),
                dt.timedelta(hours=30),
                "two_x000D_\nlines _x005F_x000D_",
            ),
        ),
    )
    rows = reading(book(*table, formats={"B2": "00000", "D2": "d/m/yy", "E2": "[h]:mm"}))
    assert records(rows) == [
        {
            "email": "a@b.co",
            "number": "01067",
            "is": "TRUE",
            "when": "23/11/26",
            "since": "30:00",
            "text": "two\nlines _x000D_",
        }
    ]
    assert [held(rows.cells[name][0]) for name in ("number", "when")] == ["1067", "2026-11-23"]


def test_an_id_is_what_the_cell_holds_whatever_it_shows() -> None:
    cell = reading(book(("email", "id"), ("a@b.co", 1001), formats={"B2": "#,##0"})).cells["id"][0]
    assert isinstance(cell, Seen)
    assert (cell, held(cell)) == ("1,001", "1001")
    assert type(text_of(cell)) is str  # as which it is sent


def test_rows_that_are_hidden_are_left_out_and_counted() -> None:
    rows = reading(book(("email", "tag"), ("a@b.co", "x"), ("c@d.co", "x"), (), ("e@f.co", "x"), rows=[3, 4]))
    assert (rows.cells["email"], rows.numbers) == (["a@b.co", "e@f.co"], [2, 5])
    assert rows.warnings == ("1 hidden row left out (row 3): show them in the sheet if they are meant, too",)


def test_a_hidden_column_that_is_used_is_named() -> None:
    rows = reading(book(("email", "tag", "note"), ("a@b.co", "x", "y"), columns=["B", "C"]))
    assert pick(rows, TAGS.columns, Options(ignore=("note",))).warnings == (
        "hidden in the sheet, and used: column “tag”",
    )


def test_a_failed_formula_is_empty_but_empties_no_field() -> None:
    rows = reading(book(("email", "list", "City"), ("a@b.co", 1, "#REF!")))
    assert pick(rows, CONTACTS.columns, Options(), ["City"]).faults == {}
    assert pick(rows, CONTACTS.columns, Options(clear_empty=True), ["City"]).faults == {
        2: "column “City”: a cell shows an error like #N/A"
    }


STRICT = {
    b"http://schemas.openxmlformats.org/spreadsheetml/2006/main": b"http://purl.oclc.org/ooxml/spreadsheetml/main",
    b"http://schemas.openxmlformats.org/officeDocument/2006/relationships": (
        b"http://purl.oclc.org/ooxml/officeDocument/relationships"
    ),
}


def test_a_workbook_of_the_strict_form_is_read() -> None:
    stream = io.BytesIO()
    written = io.BytesIO(book(("email", "on"), ("a@b.co", 1), formats={"B2": "d/m/yyyy"}))
    with zipfile.ZipFile(written) as old, zipfile.ZipFile(stream, "w") as new:
        for entry in old.namelist():
            text = old.read(entry)
            text = text.replace(b'<c r="B2" s="1" t="n"><v>1<', b'<c r="B2" s="1" t="d"><v>2026-11-23<')
            for transitional, strict in STRICT.items():
                text = text.replace(transitional, strict)
            new.writestr(entry, text)
    assert records(reading(stream.getvalue())) == [{"email": "a@b.co", "on": "23/11/2026"}]


def test_titles_above_the_header_are_left_out() -> None:
    rows = reading(book(("People to be tagged",), (), ("email", "tag"), ("a@b.co", "x")))
    assert (records(rows), rows.numbers) == ([{"email": "a@b.co", "tag": "x"}], [4])
    assert rows.warnings == ("row 1 above the header (row 3): left out",)
