"""The log of loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from warehouse.archive import Archive
from warehouse.errors import ArchiveDamaged


def test_loads_are_logged_in_their_order(root: Path) -> None:
    with Archive(root) as archive:
        assert list(archive.loads()) == []
        archive.log_load({"table": "contacts", "request_ids": [1, 2], "note": "line\nbreak ü"})
        archive.log_load({"n": 2})
    with Archive(root) as archive:
        assert list(archive.loads()) == [{"table": "contacts", "request_ids": [1, 2], "note": "line\nbreak ü"}, {"n": 2}]


def test_a_torn_last_line_counts_as_not_logged(root: Path) -> None:
    with Archive(root) as archive:
        archive.log_load({"n": 1})
        whole = (root / "loads.jsonl").read_bytes()
        archive.log_load({"n": 2, "long": "x" * 100_000})
        line = (root / "loads.jsonl").read_bytes()[len(whole) :]
        for length in (1, 10, 70_000, len(line) - 1):
            (root / "loads.jsonl").write_bytes(whole + line[:length])
            assert list(archive.loads()) == [{"n": 1}]
            archive.log_load({"n": 3})
            assert list(archive.loads()) == [{"n": 1}, {"n": 3}]


def test_a_damaged_line_amid_the_log_is_not_passed_over(root: Path) -> None:
    with Archive(root) as archive:
        (root / "loads.jsonl").write_bytes(b'{"n": 1}\n{"n"\n{"n": 3}\n')
        with pytest.raises(ArchiveDamaged, match="line 2"):
            list(archive.loads())
