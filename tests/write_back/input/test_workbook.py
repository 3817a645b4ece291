"""What is read of a workbook is what it shows."""

from __future__ import annotations

import datetime as dt
import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

from tests.write_back.input.test_files import reading, records
from tests.write_back.planner import Memory
from write_back.account_state import Known
from write_back.input.columns import has_needed, pick_columns
from write_back.input.files import read_file
from write_back.input.rows import InputError, Rows, Seen, cell_text, text_of
from write_back.item import Options
from write_back.kinds import CONTACTS, TAGS, make_plan


def book(*table: tuple[Any, ...], formats: Mapping[str, str] | None = None, **how: Any) -> bytes:
    """A workbook of this table, with formats by cell; `rows` and `columns` are hidden, and `merged` cells one."""
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
                dt.timedelta(hours=30),
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
    assert rows.warnings == ("1 hidden row left out (row 3): show them in the sheet if they are meant, too",)


def test_a_hidden_column_that_is_used_is_named() -> None:
    rows = reading(book(("email", "tag", "note"), ("a@b.co", "x", "y"), columns=["B", "C"]))
    assert pick_columns(rows, TAGS.columns, Options(ignore=("note",))).warnings == (
        "hidden in the sheet, and used: column “tag”",
    )


def test_a_failed_formula_is_empty_but_empties_no_field() -> None:
    rows = reading(book(("email", "list", "City"), ("a@b.co", 1, "#REF!")))
    assert pick_columns(rows, CONTACTS.columns, Options(), ["City"]).faults == {}
    assert pick_columns(rows, CONTACTS.columns, Options(clear_empty=True), ["City"]).faults == {
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


# -- merged cells

HEADER = ("email", "list", "status", "tag", "action")
NAMES = ("ann@example.com", "bo@example.com", "ed@example.com")


def merged_book(merged: tuple[str, ...], cells: Mapping[str, Any], **how: Any) -> bytes:
    """Three people with the tag vip; `cells` say otherwise, before some of them are merged."""
    table = [list(HEADER), *([name, "News", None, "vip", None] for name in NAMES)]
    for cell, value in cells.items():
        table[int(cell[1:]) - 1]["ABCDE".index(cell[0])] = value
    return book(*map(tuple, table), merged=merged, **how)


#: Merged cells, values of cells, a column, and what it says in each row.
FILLED = [
    (("E2:E4",), {"E2": "remove"}, "action", ["remove"] * 3),
    (("E2:E3",), {"E2": "remove", "E4": "add"}, "action", ["remove", "remove", "add"]),
    (("C2:C4",), {"C2": "unsubscribed"}, "status", ["unsubscribed"] * 3),
    (("A2:A4",), {}, "email", [NAMES[0]] * 3),
    (("B2:B3", "D3:D4"), {"B2": "Shop"}, "list", ["Shop", "Shop", "News"]),
    (("B2:B3", "D3:D4"), {"D3": "gold"}, "tag", ["vip", "gold", "gold"]),
    (("C2:C4",), {}, "status", [None] * 3),
    (("C2:D3",), {"D2": None, "D3": None}, "tag", [None, None, "vip"]),
    (("E2:E900",), {"E2": "remove"}, "action", ["remove"] * 3),
    (("A2:A2",), {}, "email", list(NAMES)),
]


@pytest.mark.parametrize(("merged", "cells", "column", "said"), FILLED)
def test_a_merged_cell_says_the_same_in_all_of_its_rows(
    merged: tuple[str, ...], cells: dict[str, Any], column: str, said: list[str | None]
) -> None:
    rows = reading(merged_book(merged, cells))
    assert (rows.cells[column], rows.numbers, rows.cell_faults) == (said, [2, 3, 4], {})


def test_a_merged_action_removes_from_everybody(known: Known) -> None:
    rows = reading(merged_book(("E2:E4",), {"E2": "remove"}))
    plan = make_plan(TAGS, rows, known, Memory(), Options(ignore=("list", "status")))  # type: ignore[arg-type]
    assert {item.operation for item in plan.items} == {"emailmarketing/removetag"}
    assert sorted(row for item in plan.items for row in item.rows) == [2, 2, 2, 3, 4]


def test_a_merged_status_unsubscribes_everybody(known: Known) -> None:
    rows = reading(merged_book(("C2:C4",), {"C2": "unsubscribed", "B4": "Friends, Family"}))
    plan = make_plan(CONTACTS, rows, known, Memory(), Options(ignore=("tag", "action")))  # type: ignore[arg-type]
    assert [(item.rows, item.params["status"]) for item in plan.items] == [
        ((2,), "Disactive"),
        ((4,), "Disactive"),
    ]
    assert [idle.rows for idle in plan.idle] == [(3,)], "who is so already"


def test_a_merged_cell_counts_where_its_first_row_is_hidden() -> None:
    rows = reading(merged_book(("E2:E4",), {"E2": "remove"}, rows=[2]))
    assert (rows.cells["action"], rows.numbers) == (["remove"] * 2, [3, 4])


def test_a_cell_that_one_of_another_column_covers_is_unknown() -> None:
    rows = reading(merged_book(("B2:C3",), {}))
    assert rows.cells["list"] == ["News"] * 3
    assert {number: reason.partition(":")[0] for number, reason in rows.cell_faults["status"].items()} == {
        2: "column “status”",
        3: "column “status”",
    }
    assert "a merged cell that begins in another column" in rows.cell_faults["status"][2]


def test_a_merged_title_is_no_header() -> None:
    rows = reading(book(("Our people",), (), ("email", "tag"), ("a@b.co", "x"), merged=["A1:C1"]))
    assert records(rows) == [{"email": "a@b.co", "tag": "x"}]


def test_merged_cells_count_like_others_against_the_limit(tmp_path: Path) -> None:
    (tmp_path / "x.xlsx").write_bytes(book(*[("email", "tag")] * 3, merged=["A1:XFD3"]))
    with pytest.raises(InputError, match="cells"):
        read_file(tmp_path / "x.xlsx", limit=400_000)


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
PEOPLE = [("My people",), ("E-Mail", "Label"), ("a@b.co", "x")]
TAGGED = [("email", "tag"), ("c@d.co", "y")]


def read_sheets(content: bytes, sheet: str | None = None, mapping: Mapping[str, str] | None = None) -> Rows:
    return read_file(
        Path("-"),
        stdin=io.BytesIO(content),
        sheet=sheet,
        fits=lambda header: has_needed(header, TAGS.columns, mapping or {}),
    )


def test_the_first_sheet_with_the_columns_that_are_needed_is_read_and_named() -> None:
    content = sheets(Notes=NOTES, People=PEOPLE, Tagged=TAGGED, Last=TAGGED)
    rows = read_sheets(content)
    assert rows.cells["email"] == ["c@d.co"]
    assert rows.warnings == ("standard input: the sheet “Tagged” is read, one of 4; --sheet chooses another",)
    assert read_sheets(content, mapping={"tag": "Label"}).cells["E-Mail"] == ["a@b.co"]


def test_a_hidden_sheet_is_only_read_by_its_name() -> None:
    content = sheets({"Old": "hidden", "Older": "veryHidden"}, Old=TAGGED, Older=TAGGED, Notes=NOTES)
    assert read_sheets(content).columns == ("Made by", "on")
    assert read_sheets(content, "OLDER").cells["email"] == ["c@d.co"]


def test_where_no_sheet_has_the_columns_the_first_is_read_and_named() -> None:
    rows = read_sheets(sheets(Notes=NOTES, Empty=[], More=PEOPLE))
    assert rows.columns == ("Made by", "on")
    assert "“Notes” is read" in rows.warnings[0]


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
