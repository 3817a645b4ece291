"""What is read of a workbook is what it shows."""

import datetime as dt
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

from tests.write_back.input.test_files import reading, records, with_values
from write_back.input.files import read_file
from write_back.input.rows import InputError, Rows, Seen, cell_text, text_of


def book(*table: tuple[Any, ...], formats: Mapping[str, str] | None = None, **how: Any) -> bytes:
    """A workbook of this table, with formats by cell; `rows` are hidden, and `merged` cells one."""
    written = openpyxl.Workbook()
    written.epoch = how.get("epoch", CALENDAR_WINDOWS_1900)
    sheet = written.active
    assert sheet is not None
    for record in table:
        sheet.append(record)
    for cell, code in (formats or {}).items():
        sheet[cell].number_format = code
    for cells in how.get("merged", ()):
        sheet.merge_cells(cells)
    for row in how.get("rows", ()):
        sheet.row_dimensions[row].hidden = True
    written.save(stream := io.BytesIO())
    return stream.getvalue()


@pytest.mark.parametrize("epoch", [CALENDAR_WINDOWS_1900, CALENDAR_MAC_1904])
@pytest.mark.parametrize(
    "day", [dt.datetime(1904, 2, 29), dt.datetime(2026, 11, 23, 14, 30), dt.datetime(9999, 12, 31)]
)
def test_both_systems_of_dates_show_the_day_that_was_meant(epoch: dt.datetime, day: dt.datetime) -> None:
    code = "ddd dd/mm/yyyy hh:mm"
    cell = reading(book(("email", "on"), ("a@b.co", day), formats={"B2": code}, epoch=epoch)).cells["on"][0]
    assert (cell, cell_text(cell)) == (day.strftime("%a %d/%m/%Y %H:%M"), cell_text(day))


def test_every_type_of_cell_is_read_as_it_is_shown() -> None:
    table = (
        ("email", "number", "is", "when", "since", "text"),
        (
            *(
                "a@b.co",
                1067,
                True,
                dt.datetime(2026, 11, 23),
                dt.time(6),
                "two_x000D_\nlines _x005F_x000D_",
            ),
        ),
    )
    rows = reading(book(*table, formats={"B2": "00000", "D2": "d/m/yy", "E2": "h:mm"}))
    assert records(rows) == [
        {
            "email": "a@b.co",
            "number": "01067",
            "is": "TRUE",
            "when": "23/11/26",
            "since": "6:00",
            "text": "two\nlines _x000D_",
        }
    ]
    assert [cell_text(rows.cells[name][0]) for name in ("number", "when")] == ["1067", "2026-11-23"]


def test_an_id_is_what_the_cell_holds_whatever_it_shows() -> None:
    cell = reading(book(("email", "id"), ("a@b.co", 1001), formats={"B2": "#,##0"})).cells["id"][0]
    assert isinstance(cell, Seen)
    assert (cell, cell_text(cell)) == ("1,001", "1001")
    assert type(text_of(cell)) is str  # as which it is sent


def test_rows_that_are_hidden_are_left_out_and_counted() -> None:
    rows = reading(book(("email", "tag"), ("a@b.co", "x"), ("c@d.co", "x"), (), ("e@f.co", "x"), rows=[3, 4]))
    assert (rows.cells["email"], rows.numbers) == (["a@b.co", "e@f.co"], [2, 5])
    assert rows.warnings == ("1 hidden row left out (row 3): unhide them to push them, too",)


# -- sheets


def sheets(states: Mapping[str, str] | None = None, **tables: list[tuple[Any, ...]]) -> bytes:
    """A workbook of these sheets; `states` of those that are hidden."""
    written = openpyxl.Workbook()
    assert written.active is not None
    written.remove(written.active)
    for title, table in tables.items():
        sheet = written.create_sheet(title)
        sheet.sheet_state = (states or {}).get(title, "visible")
        for record in table:
            sheet.append(record)
    written.save(stream := io.BytesIO())
    return stream.getvalue()


NOTES = [("Made by", "on"), ("Ann", "2026")]
PEOPLE = [("E-Mail", "Label"), ("a@b.co", "x")]
TAGGED = [("email", "tag"), ("c@d.co", "y")]


def read_sheets(content: bytes, sheet: str | None = None) -> Rows:
    return read_file(Path("-"), stdin=io.BytesIO(content), sheet=sheet)


def test_the_first_sheet_is_read_and_named() -> None:
    rows = read_sheets(sheets(Tagged=TAGGED, People=PEOPLE))
    assert rows.find_place(2) == "standard input, sheet “Tagged”, row 2"
    assert rows.cells["email"] == ["c@d.co"]
    assert rows.warnings == ("standard input: the sheet “Tagged” is read; --sheet chooses another: “People”",)


def test_a_hidden_sheet_is_only_read_by_its_name() -> None:
    content = sheets({"Old": "hidden", "Older": "veryHidden"}, Old=TAGGED, Older=TAGGED, Notes=NOTES)
    assert read_sheets(content).columns == ("Made by", "on")
    assert read_sheets(content, "OLDER").cells["email"] == ["c@d.co"]


def test_a_sheet_with_merged_cells_is_refused() -> None:
    content = book(("email", "tag"), ("a@b.co", "x"), ("c@d.co", None), merged=["B2:B3"])
    with pytest.raises(InputError, match="the sheet “Sheet” has merged cells, like B2:B3: unmerge them"):
        reading(content)


@pytest.mark.parametrize(
    ("sheet", "said"),
    [
        ("Poeple", "has no sheet “Poeple” (did you mean “People”?); it has “Notes”, “People”"),
        ("", "has no sheet “”; it has “Notes”, “People”"),
    ],
)
def test_a_sheet_that_is_not_there_is_said(sheet: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        read_sheets(sheets(Notes=NOTES, People=PEOPLE), sheet)


def test_a_text_file_has_no_sheets() -> None:
    with pytest.raises(InputError, match="leave --sheet out"):
        read_sheets(b"email,tag\na@b.co,x", "People")


def test_a_sheet_with_more_rows_than_excel_has_is_damaged() -> None:
    content = with_values(book(("email", "tag"), ("a@b.co", "x")), rb'r="2"', b'r="999999999"')
    with pytest.raises(InputError, match="cannot be read as an Excel workbook"):
        reading(content)
