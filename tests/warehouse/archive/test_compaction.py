"""Files written anew have the rows that a plain calculation leaves, whatever overlaps and whatever goes."""

import datetime as dt
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketing_api.exchange import id_at
from warehouse import disk
from warehouse.archive import sealed
from warehouse.archive.archive import Archive
from warehouse.archive.file_store import Files
from warehouse.archive.row import DROPPED, Row

MONTHS = 3
#: Requests are numbered across the months, 10 in each.
NUMBERS = st.integers(0, 10 * MONTHS - 1)


def moment(number: int) -> dt.datetime:
    return dt.datetime(2026, 1 + number // 10, 1 + number % 10, tzinfo=dt.UTC)


def row(number: int, ref: int | None, size: int) -> Row:
    at = moment(number)
    body_ref = None if ref is None else id_at(moment(ref))
    return Row(
        id_at(at),
        "main",
        "contacts/timeline",
        "00" * 32,
        "{}",
        at,
        0,
        1,
        200,
        "ok",
        None,
        size,
        "",
        "11" * 32,
        None,
        body_ref,
    )


def body_of(row: Row) -> bytes:
    return b"%d" % row.request_id if row.bytes else b""


@st.composite
def archives(draw: st.DrawFn) -> tuple[list[Row], list[set[int]]]:
    """Rows, some of which refer to an earlier one with a body; and which rows each file has."""
    made: dict[int, Row] = {}
    for number in sorted(draw(st.sets(NUMBERS, min_size=1))):
        own = [earlier for earlier, each in made.items() if each.bytes and each.body_ref is None]
        ref = draw(st.sampled_from([None, *own]))
        made[number] = row(number, ref, 1 if ref is not None else draw(st.integers(0, 1)))
    return list(made.values()), [
        {each.request_id for each in made.values() if draw(st.booleans())} for _ in range(2)
    ]


@given(archives(), NUMBERS, NUMBERS, st.sets(NUMBERS))
@settings(deadline=None)
def test_what_is_left_is_what_a_plain_calculation_leaves(
    archive: tuple[list[Row], list[set[int]]], bodies: int, before: int, needed: set[int]
) -> None:
    rows, files = archive
    bodies_before, rows_before = id_at(moment(bodies)), id_at(moment(min(bodies, before)))
    wanted = {id_at(moment(number)) for number in needed}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(sealed, "_GROUP", (3, 1000))
        root = Path(folder) / "archive"
        others = {each.request_id for each in rows}.difference(*files)
        for number, ids in enumerate([others, *files]):
            for month in range(MONTHS):
                own = [
                    each for each in rows if each.request_id in ids and each.requested_at.month == month + 1
                ]
                if own:
                    tables = sealed.tables_of((each, b"" if each.body_ref else body_of(each)) for each in own)
                    name = f"date=2026-0{month + 1}-01/{number}.parquet"
                    sealed.write_sealed(tables, Files(root), name, disk.Workspace(Path(folder)))
        with Archive(root) as opened:
            opened.compact_files(
                moment(0) + dt.timedelta(days=100),
                bodies_before=bodies_before,
                rows_before=rows_before,
                needed=wanted,
            )
            names = opened.ledger.list_names()
            opened_files = [sealed.SealedFile(opened.files, name) for name in names]
        left = [
            each
            for file in opened_files
            for table in sealed.merge_files([file])
            for each in table.to_pylist()
        ]
        assert len(names) == len({each["requested_at"].month for each in left}), "one a month"

    kept = {
        each.body_ref or each.request_id
        for each in rows
        if each.request_id >= bodies_before or each.request_id in wanted
    }
    expected = []
    for each in rows:
        if each.request_id >= bodies_before or (each.body_ref or each.request_id) in kept:
            expected.append((each, None if each.body_ref else body_of(each) or None))
        elif each.request_id >= rows_before:
            expected.append((msgspec.structs.replace(each, body_ref=DROPPED) if each.bytes else each, None))
    assert [(each["request_id"], each["body_ref"], each["body"]) for each in left] == [
        (each.request_id, each.body_ref, body) for each, body in expected
    ]
