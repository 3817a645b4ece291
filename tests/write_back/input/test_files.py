"""Files of every usual kind become the same rows, numbered as in a spreadsheet; errors are reported."""

import csv
import datetime as dt
import io
import re
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from write_back.input.files import InputBudget, read_file, rows_of_batches
from write_back.input.rows import FORMULA_SIGNS, CannotBeSent, InputError, Rows, cell_of, number_text, text_of


def reading(content: bytes | str) -> Rows:
    """The rows of what comes on standard input."""
    return read_file(Path("-"), stdin=io.BytesIO(content.encode() if isinstance(content, str) else content))


def records(rows: Rows) -> list[dict[str, Any]]:
    return [dict(zip(rows.columns, values, strict=True)) for values in zip(*rows.cells.values(), strict=True)]


WANTED = [{"email": "ann@example.com", "city": "Köln"}, {"email": "bo@example.com", "city": "a,b;c\td"}]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_csv_is_read_whatever_its_delimiter_encoding_and_line_ends(
    delimiter: str, encoding: str, line_end: str
) -> None:
    text = line_end.join([delimiter.join(("email", " city ")), delimiter.join(("ann@example.com ", "Köln"))])
    text += line_end + delimiter.join(("bo@example.com", '"a,b;c\td"'))
    rows = reading(text.encode(encoding))
    assert records(rows) == WANTED
    assert (rows.numbers, rows.warnings) == ([2, 3], ())


def test_the_same_cells_have_the_same_hash_however_they_are_written() -> None:
    hashes = {
        reading(text).source.content_hash
        for text in ("email,city\na@b.co,x", "email;city\r\na@b.co ;x", "\ufeffemail\tcity\na@b.co\tx")
    }
    assert len(hashes) == 1
    assert reading("email,city\na@b.co,y").source.content_hash not in hashes


def test_a_quoted_line_break_stays_in_its_row_and_blank_rows_count_but_are_left_out() -> None:
    rows = reading('email,note\n"a@b.co","one\ntwo"\n\n , \nc@d.co,three\n\n')
    assert records(rows) == [{"email": "a@b.co", "note": "one\ntwo"}, {"email": "c@d.co", "note": "three"}]
    assert rows.numbers == [2, 5]
    assert list(map(rows.find_place, rows.numbers)) == ["standard input, line 2", "standard input, line 6"]


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=,", "sep="])
def test_a_first_line_that_tells_excel_the_delimiter_is_no_header(first: str) -> None:
    rows = reading(f"\ufeff{first}\r\nemail;city\r\na@b.co;x,y\r\n")
    assert records(rows) == [{"email": "a@b.co", "city": "x,y"}]
    assert list(map(rows.find_place, rows.numbers)) == ["standard input, line 3"]


@pytest.mark.parametrize("sign", FORMULA_SIGNS)
def test_a_formula_is_data_and_the_mark_that_keeps_it_from_running_is_taken_off(sign: str) -> None:
    rows = reading(f"a,b,c\n{sign}1+1,'{sign}1+1,'quoted'\n")
    assert records(rows) == [{"a": f"{sign}1+1", "b": f"{sign}1+1", "c": "'quoted'"}]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_blank_before_a_quoted_cell_is_no_part_of_it(delimiter: str) -> None:
    cells = [
        ("email", ' "note"', " on"),
        ("a@b.co", f' "Called{delimiter} asked back"', "  2026"),
        (' "c@d.co"', ' "Said ""no"""', ' ""'),
    ]
    rows = reading("\n".join(map(delimiter.join, cells)))
    assert records(rows) == [
        {"email": "a@b.co", "note": f"Called{delimiter} asked back", "on": "2026"},
        {"email": "c@d.co", "note": 'Said "no"', "on": None},
    ]


@pytest.mark.parametrize("cell", ['="0170123"', '"=""0170""&""123"""', '="0170'])
def test_a_formula_with_a_text_is_not_sent_as_it_is_written(cell: str) -> None:
    rows = reading(f"email,phone\na@b.co,{cell}")
    assert rows.cells["phone"] == ["#N/A"]
    assert "column “phone”: it is the formula “=" in rows.cell_faults["phone"][2]


def test_a_short_row_is_filled_up_and_a_long_one_is_a_fault_of_its_own() -> None:
    rows = reading("a,b\n1\n1,2,3\n1,2,,\n")
    assert records(rows)[0] == {"a": "1", "b": None}
    assert rows.faults == {3: "it has 3 cells, but the header names 2 columns"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "standard input is empty"),
        ("\n , \n", "standard input is empty"),
        ('email,note\na@b.co,"open\nb@c.co,x\n', "row 2 cannot be read: a quotation mark"),
        ("a,b\n1,2\n3," + "x" * 131_073, "row 3 has a cell of more than 131,072 characters"),
        ("email,Email,email\n1,2,3", "two columns are called “email”"),
        (b"\x00\x01\x02", "is not text"),
        (b"\xd0\xcf\x11\xe0 old", "save it as .xlsx"),
        (b"PAR1 cut", "not a complete Parquet file"),
        (b"PK\x03\x04 cut", "cannot be read as an Excel workbook"),
        ('email,"note" ,tag\na@b.co,x,y', "row 1 cannot be read: a quotation mark"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(text: str | bytes, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)) as refusal:
        reading(text)
    assert "\n" not in str(refusal.value)


#: All of them have one row: `a@b.co` with the tags x and y.
SURROUNDINGS = [
    "\ufeff\ufeffemail;tag\na@b.co;x,y",
    "email|tag\na@b.co|x,y",
    "\n\nemail;tag\na@b.co;x,y",
    'email\t"ta\ng"\na@b.co\tx,y',
    'email,tag\na@b.co,"x,y"\nNULL,\\N',
]


@pytest.mark.parametrize("text", SURROUNDINGS)
def test_a_file_is_read_whatever_stands_around_its_rows(text: str) -> None:
    rows = records(reading(text))
    assert [list(row.values()) for row in rows if any(row.values())] == [["a@b.co", "x,y"]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_heading_may_have_line_breaks(delimiter: str) -> None:
    header, row = delimiter.join(["email", '"Your\ncity, or town"']), delimiter.join(["a@b.co", "Rom"])
    rows = reading(f"{header}\n{row}")
    assert records(rows) == [{"email": "a@b.co", "Your\ncity, or town": "Rom"}]


@pytest.mark.parametrize(
    "text", ["<html><table>", "\ufeff <?xml version='1.0'?>", "%PDF-1.7", '{"email": "a@b.co"}']
)
def test_a_page_that_is_called_a_table_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "people.xls").write_text(text)
    said = r"people\.xls contains a web page, XML, JSON or a PDF.*\.xlsx or CSV"
    with pytest.raises(InputError, match=said):
        read_file(tmp_path / "people.xls")


def test_an_unnamed_column_can_be_named_and_left_out() -> None:
    rows = reading("email,,tag\na@b.co,remove,x")
    assert rows.columns == ("email", "column 2", "tag")


def test_single_precision_is_shown_as_it_was_meant(tmp_path: Path) -> None:
    values = [0.1, 16777.21, None, 1e10, 3.0]
    table = {"a": pa.array(values, pa.float32()), "b": pa.array(values, pa.float64()), "c": pa.array([1] * 5)}
    pq.write_table(pa.table(table), tmp_path / "f.parquet")
    rows = read_file(tmp_path / "f.parquet")
    assert rows.cells["a"] == rows.cells["b"] == ["0.1", "16777.21", None, "10000000000", "3"]


_FIXED = [
    *(pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.date32(), pa.date64(), pa.binary(16)),
    *(pa.decimal128(38, 10), pa.decimal256(76, 0), pa.time32("s"), pa.time64("us"), pa.time64("ns")),
    *(
        pa.timestamp(unit, zone)
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "Europe/Berlin", "Mars/One")
    ),
    *(pa.duration(unit) for unit in ("s", "ns")),
    pa.month_day_nano_interval(),
]


@given(
    st.sampled_from(_FIXED),
    st.binary(min_size=64, max_size=64) | st.sampled_from([b"\xff" * 64, b"\x7f" * 64]),
)
@example(pa.duration("ns"), bytes(64))
def test_whatever_a_column_holds_is_read_or_rejected(kind: pa.DataType, raw: bytes) -> None:
    count = 64 * 8 // kind.bit_width
    values = pa.Array.from_buffers(kind, count, [None, pa.py_buffer(raw)])
    table = pa.table({"email": ["a@b.co"] * count, "value": values})
    rows = rows_of_batches("x", table.schema, table.to_batches(), InputBudget("x", 1 << 20))
    assert rows.numbers == list(range(1, 1 + count))
    for cell in rows.cells["value"]:
        assert isinstance(cell, str | dt.datetime | None)
        (text_of(cell) or "").encode()


@pytest.mark.parametrize(
    "value", [b"x", {"a": 1}, [("a", 1)], [[1]], ["a, b"], float("inf"), Decimal("-Infinity"), object()]
)
def test_what_has_no_text_is_no_cell(value: object) -> None:
    with pytest.raises(CannotBeSent):
        cell_of(value)


@pytest.mark.parametrize("mark", ["NULL", "\\N", "nan", "None", "(null)", "N/A"])
def test_marks_for_nothing_are_empty_and_counted_in_every_form(tmp_path: Path, mark: str) -> None:
    pq.write_table(pa.table({"email": ["a@b.co"], "tag": [mark]}), tmp_path / "a.parquet")
    forms = [
        reading(f"email,tag\na@b.co,{mark}"),
        reading(workbook(("email", "tag"), ("a@b.co", mark))),
        read_file(tmp_path / "a.parquet"),
    ]
    for rows in forms:
        assert rows.cells["tag"] == [None]
        assert rows.warnings == (f"these values count as empty: “{mark}” (1)",)


@pytest.mark.parametrize("error", ["#REF!", "#BEZUG!", "#¿NOMBRE?", "Err:502", "########"])
def test_a_cell_that_shows_an_error_is_a_fault_of_its_row(error: str) -> None:
    rows = reading(workbook(("email", "tag"), ("a@b.co", error), ("c@d.co", "vip"), ("e@f.co", "\u200b")))
    assert rows.cells["tag"] == ["#N/A", "vip", None]
    assert rows.cell_faults == {"tag": {2: "column “tag”: the cell shows an error like #N/A"}}


def test_a_missing_file_and_a_folder_are_said(tmp_path: Path) -> None:
    files = {
        tmp_path / "no.csv": "there is no file",
        tmp_path: "is a folder",
        Path("~$a.xlsx"): "begins with ~",
    }
    for path, said in files.items():
        with pytest.raises(InputError, match=said):
            read_file(path)
    (tmp_path / "no.xlsx").write_text("email\na@b.co")
    with pytest.raises(InputError, match=r"not a complete \.xlsx file"):
        read_file(tmp_path / "no.xlsx")


_CELLS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8).filter(
    lambda cell: not cell.strip().startswith('="')
) | st.sampled_from(['"', "a\nb", ",", "'=1", "=1", ";", "\t", ' "x"'])


@given(st.lists(st.tuples(_CELLS, _CELLS), max_size=5), st.sampled_from(",;\t"))
def test_every_cell_of_a_csv_comes_back(table: list[tuple[str, str]], delimiter: str) -> None:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter).writerows([("one", "two"), *table])
    full = [(number, pair) for number, pair in enumerate(table, 2) if any(cell_of(cell) for cell in pair)]
    rows = reading(stream.getvalue())
    assert rows.numbers == [number for number, _ in full]
    assert [tuple(row.values()) for row in records(rows)] == [(cell_of(a), cell_of(b)) for _, (a, b) in full]


# -- typed values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12.0, "12"),
        (0.1 + 0.2, "0.3"),
        (1e21, "1000000000000000000000"),
        (1e-7, "0.0000001"),
        (1234567890123456789.0, "1.2345678901234568e+18"),
        (float("nan"), None),
        (12, "12"),
        (True, "true"),
        (Decimal("12.50"), "12.50"),
        (dt.date(2026, 1, 31), "2026-01-31"),
        (dt.datetime(2026, 1, 31, 14, 5), "2026-01-31 14:05:00"),
        (dt.datetime(2026, 1, 31, tzinfo=dt.UTC), "2026-01-31 00:00:00+00:00"),
        (dt.time(14, 5), "14:05:00"),
        ([" vip", None, "new"], "vip,new"),
        ("  ", None),
        ("'", "'"),
    ],
)
def test_typed_values_become_text_as_a_spreadsheet_shows_them(value: Any, text: str | None) -> None:
    assert text_of(cell_of(value)) == text


@given(st.integers(1 - 2**53, 2**53 - 1))
def test_whole_numbers_lose_nothing_as_floats(number: int) -> None:
    assert number_text(float(number)) == str(number)


def test_parquet_keeps_moments_and_numbers(tmp_path: Path) -> None:
    moment = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
    moments = pa.array([moment, None, moment], pa.timestamp("ns", "Europe/Berlin"))
    ids, tags = pa.array([12.0, None, 14.0]), pa.array([["a", "b"], None, []])
    table = pa.table({"contact_id": ids, "datetime": moments, "tag": tags})
    pq.write_table(table, tmp_path / "x.data")
    rows = read_file(tmp_path / "x.data")
    assert records(rows) == [
        {"contact_id": "12", "datetime": moment, "tag": "a,b"},
        {"contact_id": "14", "datetime": moment, "tag": None},
    ]
    assert rows.numbers == [1, 3]


def test_columns_that_cannot_be_sent_are_said(tmp_path: Path) -> None:
    pq.write_table(pa.table({"email": [b"x"]}), tmp_path / "x.parquet")
    rows = read_file(tmp_path / "x.parquet")
    said = (
        "column “email”: values of the type bytes cannot be sent: turn them into text, or leave the column "
    )
    assert rows.cell_faults == {"email": {1: f"{said}out with --ignore"}}


# -- Excel


def workbook(*records: tuple[Any, ...], sheets: int = 1) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for record in records:
        sheet.append(record)
    for _ in range(sheets - 1):
        book.create_sheet()
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def test_excel_gives_numbers_dates_and_rows_as_it_shows_them() -> None:
    moment = dt.datetime(2026, 1, 31, 14, 5, 7)
    people = (("a@b.co", 12.0, moment), (), ("c@d.co", 0.5, dt.date(2026, 2, 1)))
    rows = reading(workbook(("email", "id", "when", None), *people, sheets=2))
    assert records(rows) == [
        {"email": "a@b.co", "id": "12", "when": "2026-01-31 14:05:07"},
        {"email": "c@d.co", "id": "0.5", "when": "2026-02-01"},
    ]
    assert [cell.value for cell in rows.cells["when"]] == [moment, dt.datetime(2026, 2, 1)]  # type: ignore[union-attr]
    assert rows.numbers == [2, 4]
    assert rows.warnings == ("standard input: the sheet “Sheet” is read; --sheet chooses another: “Sheet1”",)


def with_values(content: bytes, replaced: bytes, by: bytes) -> bytes:
    """The workbook as a program that calculates would have stored it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
        for entry in old.namelist():
            text = old.read(entry)
            new.writestr(entry, re.sub(replaced, by, text) if entry.endswith("sheet1.xml") else text)
    return stream.getvalue()


def test_a_formula_gives_its_stored_value_and_without_one_its_row_is_bad_never_empty() -> None:
    content = workbook(("email", "city"), ("a@b.co", '="Kö"&"ln"'), ("c@d.co", "Rom"), ("e@f.co", "=NA()"))
    rows = reading(content)
    stored = content
    for number, kind, value in ((2, b"str", b"K"), (4, b"e", b"#N/A")):
        said = f"column “city”: the formula in cell B{number} has no stored value: ope"
        assert rows.cell_faults["city"].pop(number).startswith(said)
        place = b'<c r="B%d"' % number
        empty = place + rb"[^>]*>(<f>[^<]*</f>)<v ?/>|" + place + rb"[^>]*>(<f>[^<]*</f>)<v></v>"
        stored = with_values(stored, empty, place + rb' t="%s">\1\2<v>%s</v>' % (kind, value))
    assert not rows.cell_faults["city"]
    rows = reading(stored)
    assert [row["city"] for row in records(rows)] == ["K", "Rom", "#N/A"]
    assert rows.cell_faults == {"city": {4: "column “city”: the cell shows an error like #N/A"}}
    empty = reading(with_values(stored, rb"<v>K</v>", b"<v></v>"))
    assert [row["city"] for row in records(empty)] == [None, "Rom", "#N/A"]
    assert list(empty.cell_faults["city"]) == [4]


# -- sizes


def test_a_file_is_refused_when_it_is_larger_than_its_limit_or_has_more_cells(tmp_path: Path) -> None:
    table = pa.table({"email": ["a@example.com"] * 1_000})
    pq.write_table(table, tmp_path / "a.parquet")
    flags = [True] * 1_000
    pq.write_table(pa.table({"is_one": flags, "is_two": flags}), tmp_path / "b.parquet")
    (tmp_path / "a.csv").write_text("email\n" + "a@example.com\n" * 1_000)
    (tmp_path / "b.csv").write_text("email\n" + "," * 5_000)
    large = [("a.parquet", 10_000, "10,000 bytes"), ("a.csv", 10_000, "10,000 bytes")]
    many_cells = [("b.parquet", 30_000, "1,200 cells"), ("b.csv", 20_000, "800 cells")]
    for name, limit, said in [*large, *many_cells]:
        with pytest.raises(InputError, match=said):
            read_file(tmp_path / name, limit=limit)
    assert len(read_file(tmp_path / "a.csv", limit=30_000)) == 1_000


@pytest.mark.parametrize("is_lying", [False, True])
def test_a_workbook_counts_as_it_is_unpacked_whatever_its_directory_says(
    tmp_path: Path, is_lying: bool
) -> None:
    path = tmp_path / "book.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/workbook.xml", b" " * 2_000_000)
        book.infolist()[0].file_size = 10 if is_lying else 2_000_000
    assert path.stat().st_size < 10_000
    with pytest.raises(InputError, match="more than 1,000,000 bytes"):
        read_file(path, limit=1_000_000)


def package(*parts: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for part in parts:
            archive.writestr(part, "x")
    return stream.getvalue()


@pytest.mark.parametrize(
    "parts",
    [
        ("mimetype", "content.xml"),
        ("[Content_Types].xml", "xl/workbook.bin"),
        ("Index/Document.iwa",),
        ("people.csv",),
    ],
)
def test_what_is_packed_and_no_workbook_is_refused(parts: tuple[str, ...]) -> None:
    said = r"\.ods, \.xlsb or \.numbers, which cannot be read: save the table as"
    with pytest.raises(InputError, match=said):
        reading(package(*parts))


def test_one_long_line_is_a_sentence_about_it() -> None:
    with pytest.raises(InputError, match="more than 131,072 characters"):
        reading("a" * 1_000_000)
    with pytest.raises(InputError, match="more than 131,072 characters"):
        reading("email,tag\n" + "a" * 1_000_000)
