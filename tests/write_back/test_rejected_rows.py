"""The input's rows that a push keeps, to tell later which of them were refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.attack.damage import WAYS, harm, remove
from write_back.input.rows import Rows
from write_back.item import Source
from write_back.rejected_rows import keep_rows, kept_rows


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
