"""The log of loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.archive import Archive
from warehouse.archive.load_log import LoadLog
from warehouse.loads.load import Load


def test_loads_are_logged_in_their_order(root: Path) -> None:
    with Archive(root) as archive:
        assert list(archive.load_log.read()) == []
        archive.load_log.append({"table": "contacts", "request_ids": [1, 2], "note": "line\nbreak ü"})
        archive.load_log.append({"n": 2})
    with Archive(root) as archive:
        assert list(archive.load_log.read()) == [
            {"table": "contacts", "request_ids": [1, 2], "note": "line\nbreak ü"},
            {"n": 2},
        ]


def test_a_torn_last_line_counts_as_not_logged(root: Path) -> None:
    with Archive(root) as archive:
        archive.load_log.append({"n": 1})
        whole = (root / "loads.jsonl").read_bytes()
        archive.load_log.append({"n": 2, "long": "x" * 100_000})
        line = (root / "loads.jsonl").read_bytes()[len(whole) :]
        for length in (1, 10, 70_000, len(line) - 1):
            (root / "loads.jsonl").write_bytes(whole + line[:length])
            assert list(archive.load_log.read()) == [{"n": 1}]
            archive.load_log.append({"n": 3})
            assert list(archive.load_log.read()) == [{"n": 1}, {"n": 3}]


def _event(number: int) -> dict[str, Any]:
    ids = list(range(10**18, 10**18 + number * 7, 7))
    return Load("main", "a", ("contacts",), tuple(ids), "UTC", {"list_id": number}).event()


EVENTS = [_event(number) for number in range(30)]
NEXT = _event(31)


@given(st.data())
def test_damage_of_any_kind_anywhere_costs_the_lines_that_it_meets_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    path = tmp_path_factory.mktemp("log") / "loads.jsonl"
    log = LoadLog(path)
    log.append(*EVENTS)
    whole = path.read_bytes()
    first = data.draw(st.integers(0, len(whole) - 1))
    last = data.draw(st.integers(first, min(first + 500, len(whole) - 1)))
    damage = (
        bytes(byte ^ data.draw(st.integers(1, 255)) for byte in whole[first : last + 1][:20])
        + whole[first + 20 : last + 1]
    )
    path.write_bytes(whole[:first] + damage + whole[last + 1 :])
    hit = range(whole[:first].count(b"\n"), min(whole[: last + 1].count(b"\n") + 2, 30))
    read = list(log.read())
    assert [event for event in read if event not in EVENTS] == []
    assert [event for number, event in enumerate(EVENTS) if number not in hit] == [
        event for event in read if EVENTS.index(event) not in hit
    ]
    assert list(log.read_backwards()) == read[::-1]
    log.append(NEXT)
    assert list(log.read()) == [*read, NEXT]
    lost = [event for event in EVENTS if event not in read]
    log.rewrite(lambda event: lost if event is None else [])
    assert list(log.read()) == [*lost, *read, NEXT]
    assert log.damaged() == 0


def test_lines_without_a_checksum_are_read_and_looked_at_as_closely_as_can_be(tmp_path: Path) -> None:
    events = [{name: value for name, value in event.items() if name != "place"} for event in EVENTS]
    old = [msgspec.json.encode(event) + b"\n" for event in events]
    path = tmp_path / "loads.jsonl"
    path.write_bytes(b"".join(old))
    log = LoadLog(path)
    log.append(NEXT)
    assert list(log.read()) == [*events, NEXT]
    for harm in (
        b"[1, 2]\n",
        b'{"n": 1}\n',
        old[25].replace(b"eN", b"fN", 1),
        old[3].replace(b"-", b"x"),
        b"\xff\n",
        b"\n",
    ):
        path.write_bytes(b"".join([*old[:5], harm, *old[5:]]))
        assert list(log.read()) == events
        assert log.damaged() == 1


def test_what_was_damaged_is_kept_beside_the_log(tmp_path: Path) -> None:
    log = LoadLog(tmp_path / "loads.jsonl")
    log.append(*EVENTS)
    lines = (tmp_path / "loads.jsonl").read_bytes().splitlines(keepends=True)
    lines[7] = lines[7][:20] + b"~" + lines[7][21:]
    (tmp_path / "loads.jsonl").write_bytes(b"".join(lines))
    aside = log.rewrite(lambda event: [EVENTS[7]] if event == EVENTS[6] else [])
    assert aside is not None
    assert aside.name.startswith("loads.jsonl.damaged-")
    assert aside.read_bytes() == lines[7]
    assert list(log.read()) == EVENTS
