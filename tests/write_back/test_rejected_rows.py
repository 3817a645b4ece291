"""The input's rows that a push keeps, to tell later which of them were refused."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from tests.attack.damage import WAYS, harm, remove
from write_back.input import values
from write_back.input.rows import Rows
from write_back.item import Reason, Source
from write_back.rejected_rows import RejectedRow, RejectedRows, keep_rows, kept_rows, write_csv


@pytest.mark.parametrize(
    "cell",
    ["'ann@x.example", "“ann@x.example”", "%20ann@x.example", "MAILTO:%20ann@x.example", "<ann@x.example>;"],
    ids=str,
)
def test_an_address_without_what_stands_around_it_is_proposed_in_the_file_alone(cell: str) -> None:
    with pytest.raises(values.BadValue) as problem:
        values.read_address(cell)
    reason = str(problem.value)
    assert "ann" not in reason, "reasons are logged"
    stream = io.StringIO()
    rows = [RejectedRow(1, Reason((2,), reason), ("(call ann@home)", cell))]
    write_csv(stream, RejectedRows(("note", "email"), rows))
    assert ": take them away: ann@x.example" in stream.getvalue()


@pytest.mark.parametrize("way", WAYS)
def test_kept_rows_that_are_damaged_are_given_up_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    path = tmp_path / "7" / "rows.parquet"
    rows = Rows({"email": ["a@x.example", "b@x.example"]}, [2, 3], Source("", ""))
    for seed in range(20):
        keep_rows(path, rows, [2, 3])
        harm(path, way, random.Random(seed))
        caplog.clear()
        found = kept_rows(path)
        assert found == rows or (
            found is None and (way in ("gone", "folder") or "of push 7 is damaged" in caplog.text)
        )
        remove(path)
