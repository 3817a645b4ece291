"""The input's rows that a push keeps, to tell later which of them were refused."""

import datetime as dt
import random
from pathlib import Path

import pytest

from tests.attack.damage import WAYS, harm, remove
from write_back.input.rows import Rows, Seen, kept_text
from write_back.item import Source
from write_back.rejected_rows import keep_rows, kept_rows


@pytest.mark.parametrize("way", WAYS)
def test_kept_rows_that_are_damaged_are_given_up_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    path = tmp_path / "7" / "rows.parquet"
    rows = Rows({"email": ["a@x.example", "b@x.example"]}, [2, 3], Source("", ""))
    for seed in range(20):
        keep_rows(path, rows, [2, 3], "tags")
        harm(path, way, random.Random(seed))
        caplog.clear()
        found = kept_rows(path)
        assert found == rows or (
            found is None and (way in ("gone", "folder") or "of push 7 is damaged" in caplog.text)
        )
        remove(path)


def test_a_date_is_kept_as_it_is_displayed_and_as_a_time_of_an_activity() -> None:
    day = Seen("11/12/2026", dt.datetime(2026, 11, 12, 14))
    kept = [kept_text(day, kind) for kind in ("contacts", "activities")]
    assert kept == ["11/12/2026", "2026-11-12 14:00:00"]


def test_places_are_kept(tmp_path: Path) -> None:
    places = {2: "line 2", 5: "line 9"}
    rows = Rows({"email": ["a@x.example", "b@x.example"]}, [2, 5], Source("x.csv", ""), places=places)
    keep_rows(tmp_path / "rows.parquet", rows, [5], "tags")
    kept = kept_rows(tmp_path / "rows.parquet")
    assert kept is not None
    assert kept.places == {5: "line 9"}
