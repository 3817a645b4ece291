"""Forgotten people are taken out of what was archived, and never archived again; everybody else's responses
stay as they were."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from marketing_api import validation
from marketing_api.envelope import Body
from marketing_api.exchange import Outcome, Response
from marketing_api.operations import contacts
from tests.depth import DEEP
from tests.warehouse.exchanges import NOON, envelope, exchange, files, rows
from warehouse import disk
from warehouse.archive import Archive
from warehouse.archive.file_store import Files
from warehouse.archive.rewriting import forget_in_archive
from warehouse.archive.suppression import NAME, Suppression, add, load
from warehouse.errors import ArchiveDamaged, ArchiveError
from warehouse.forgetting import Forgotten

PROJECT = Path(__file__).parents[3]
ANN, BOB = "ann.lee@example.com", "bob@example.com"
PEOPLE = ([ANN], [("main", 7)])


def contact(number: int, email: str) -> dict[str, Any]:
    return {"id": number, "email": email, "status": "Active", "fields": {"12": f"the name of {email}"}}


def timeline(number: int, email: str) -> bytes:
    entry = {"key": "note", "snippet": f"called {email}", "datetime": "2026-01-02 03:04:05", "details": []}
    return envelope(
        {"id": number, "email": email, "timeline": {"count": 1, "total": 1, "data": [entry]}},
        remaining=random.randrange(9),
    )


def fill(root: Path, spool: Path) -> None:
    """Three nights: a listing too large for a row, timelines that stay the same, refusals, a coupon; and what
    a killed run left."""
    people = [
        contact(number, ANN if number == 7 else f"contact{number}@example.com") for number in range(1, 40)
    ]
    for _ in range(3):
        with Archive(root, full_rows=30) as archive:
            spool.write_bytes(envelope({"contacts": {"count": len(people), "items": people}}))
            archive.record(exchange(spool, contacts.GETCONTACTS.bind(listid=3)))
            for one in people:
                archive.record(
                    exchange(timeline(one["id"], one["email"]), contacts.TIMELINE.bind(id=one["id"]))
                )
            archive.record(
                exchange(
                    b"<html>",
                    contacts.TIMELINE.bind(id=7),
                    outcome=Outcome.BROKEN,
                    error=f"no response for {ANN}",
                )
            )
            archive.record(
                exchange(
                    envelope({"coupons": [{"id": 7, "couponcode": "X"}]}),
                    contacts.GETCOUPON.bind(email=ANN.upper()),
                )
            )
            archive.record(exchange(envelope({"coupons": []}), contacts.GETCOUPON.bind(email=BOB)))
            archive.ledger.log_loads(
                {
                    "account": "main",
                    "asset": "contacts",
                    "scope": {"reason": f"{ANN} was left out"},
                    "request_ids": [1],
                }
            )
    killed = Archive(root)
    killed.record(exchange(timeline(7, ANN), contacts.TIMELINE.bind(id=7)))
    killed.ledger.close()


def contents(root: Path) -> dict[int, tuple[Any, ...]]:
    """Of each request its row, without the name of a body's file, and the response with its body."""
    with Archive(root) as archive:
        found = rows(archive)
        own = [request_id for request_id, row in found.items() if row["outcome"] == "ok"]
        bodies = {
            response.request_id: (response.call.params, text_of(response.body))
            for response in archive.responses(own)
        }
    return {
        each: (row | {"body_file": bool(row["body_file"])}, bodies.get(each)) for each, row in found.items()
    }


def text_of(body: Body) -> bytes:
    return body.read_bytes() if isinstance(body, Path) else body


def traces(root: Path, left_out: Path | None = None) -> list[str]:
    """Files that name Ann once they are unpacked."""

    def plain(path: Path) -> bytes:
        if path.suffix == ".zst":
            return bytes(pa.CompressedInputStream(path, "zstd").read())
        return (
            repr(pq.read_table(path).to_pylist()).encode() if path.suffix == ".parquet" else path.read_bytes()
        )

    names = [name for name in files(root) if root / name != left_out]
    return [
        name for name in names if b"ann.lee" in (found := plain(root / name).lower()) or b'"id": "7"' in found
    ]


@pytest.fixture
def full(root: Path, spool: Path) -> Path:
    fill(root, spool)
    return root


@pytest.fixture
def forgotten(full: Path) -> Forgotten:
    return add(full, *PEOPLE)


def test_nothing_names_them_any_more_and_all_others_are_as_they_were(
    full: Path, forgotten: Forgotten
) -> None:
    before = contents(full)
    told = forget_in_archive(full, forgotten, apply=False)
    assert contents(full) == before
    assert traces(full)
    assert forget_in_archive(full, forgotten, apply=True) == told
    # a listing, a timeline and coupons, each stored once; and pages that cannot be read
    assert told == {"requests": 1 + 3 * 3 + 1, "bodies": 3 + 3, "load log": 3}
    assert not traces(full)
    after = contents(full)
    assert before.keys() == after.keys()
    others = {
        each
        for each, (row, _) in before.items()
        if row["operation"] != "emailmarketing/getcontacts" and not is_anns(row)
    }
    assert len(others) == 3 * 39
    assert {each: before[each] for each in others} == {each: after[each] for each in others}
    assert forget_in_archive(full, load(full), apply=True) == {"requests": 0, "bodies": 0, "load log": 0}
    assert contents(full) == after


def is_anns(row: dict[str, Any]) -> bool:
    return row["params"] in ('{"id": "7"}', f'{{"email": "{ANN.upper()}"}}')


def test_responses_are_whole_and_equal_ones_stored_once(full: Path, forgotten: Forgotten) -> None:
    forget_in_archive(full, forgotten, apply=True)
    with Archive(full) as archive:
        found = rows(archive)
        own = {str(forgotten.contact("main", 7)), forgotten.address(ANN)}
        about = [
            each
            for each, row in found.items()
            if own & set(json.loads(row["params"]).values()) and row["outcome"] == "ok"
        ]
        responses = list(archive.responses(about))
        assert len(responses) == 3 * 2 + 1
        assert not list(filter(None, map(validation.flaw, responses)))
        referring = [row for row in found.values() if row["body_ref"]]
        assert len(referring) == 2 * (1 + 39 + 2) + 1
        assert all(row["content_sha256"] == found[row["body_ref"]]["content_sha256"] for row in referring)
        listings = [row for row in found.values() if row["operation"] == "emailmarketing/getcontacts"]
        again = archive.record(exchange(timeline(7, ANN), contacts.TIMELINE.bind(id=7)))
    with Archive(full) as archive:
        assert rows(archive)[again.request_id]["body_ref"] in about
    assert sum(row["body_file"] is not None for row in listings) == len(list((full / "bodies").glob("*/*")))


def derived(root: Path) -> list[list[tuple[Any, ...]]]:
    with contextlib.closing(sqlite3.connect(root / "ledger.sqlite")) as db:
        return [
            db.execute(f"select * from {table} order by 1, 2").fetchall() for table in ("files", "answers")
        ]


def test_the_ledger_is_as_if_it_were_made_of_the_files(full: Path, forgotten: Forgotten) -> None:
    with Archive(full):
        before = derived(full)
    forget_in_archive(full, forgotten, apply=True)
    after = derived(full)
    assert after != before
    (full / "ledger.sqlite").unlink()
    with Archive(full):
        assert derived(full) == after


@pytest.mark.slow
def test_without_their_names_they_are_found_too(full: Path, forgotten: Forgotten, tmp_path: Path) -> None:
    """The list alone, which has no names, says who is meant: only slower."""
    shutil.copytree(full, tmp_path / "other")
    assert load(full).likely is None
    assert forgotten.likely
    assert forget_in_archive(full, load(full), apply=True) == forget_in_archive(
        tmp_path / "other", forgotten, apply=True
    )
    assert contents(full) == contents(tmp_path / "other")


@pytest.mark.slow
def test_interrupted_at_any_step_the_next_time_ends_the_same(
    full: Path, forgotten: Forgotten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Archive(full):
        pass
    shutil.copytree(full, tmp_path / "whole")
    forget_in_archive(tmp_path / "whole", forgotten, apply=True)
    wanted, real = contents(tmp_path / "whole"), disk.move_into_place
    for last in itertools.count(step=1 if DEEP else 4):
        steps = itertools.count()

        def fail(temporary: Path, target: Path, steps: Any = steps, last: int = last) -> None:
            if next(steps) == last:
                raise KeyboardInterrupt
            real(temporary, target)

        root = tmp_path / str(last)
        shutil.copytree(full, root)
        with monkeypatch.context() as patched:
            patched.setattr(disk, "move_into_place", fail)
            try:
                forget_in_archive(root, forgotten, apply=True)
                break
            except KeyboardInterrupt:
                pass
        contents(root)  # takes in what there is meanwhile
        forget_in_archive(root, forgotten, apply=True)
        assert not traces(root)
        assert contents(root) == wanted
        shutil.rmtree(root)
    assert last > 10


_FORGET = """
import sys; from pathlib import Path
from warehouse.archive.rewriting import forget_in_archive; from warehouse.archive.suppression import add
print("begins", flush=True)
forget_in_archive(Path(sys.argv[1]), add(Path(sys.argv[1]), ["ann.lee@example.com"], [("main", 7)]), apply=True)
"""


@pytest.mark.slow
def test_killed_at_any_moment_the_next_time_ends_the_same(
    full: Path, forgotten: Forgotten, tmp_path: Path
) -> None:
    shutil.copytree(full, tmp_path / "whole")
    forget_in_archive(tmp_path / "whole", forgotten, apply=True)
    wanted = contents(tmp_path / "whole")
    chance = random.Random(17)
    for number in range(30 if DEEP else 3):
        root = tmp_path / str(number)
        shutil.copytree(full, root)
        process = subprocess.Popen(
            [sys.executable, "-c", _FORGET, str(root)], cwd=PROJECT, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        with process.stdout:
            assert process.stdout.readline() == "begins\n"
        time.sleep(chance.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
        forget_in_archive(root, forgotten, apply=True)
        assert not traces(root)
        assert contents(root) == wanted


def test_nobody_is_forgotten_while_another_process_records(full: Path, forgotten: Forgotten) -> None:
    with Archive(full) as archive:
        archive.record(exchange(envelope({})))
        with pytest.raises(ArchiveError, match="is writing to"):
            forget_in_archive(full, forgotten, apply=True)


@pytest.mark.parametrize("which", [0, 1], ids=["rows", "a body"])
def test_a_file_that_cannot_be_read_is_counted_and_stays(
    full: Path, forgotten: Forgotten, which: int
) -> None:
    with Archive(full):
        pass
    broken = [*sorted((full / "requests").glob("*/*"))[-1:], *(full / "bodies").glob("*/*")][which]
    broken.write_bytes(broken.read_bytes()[:-40])
    assert forget_in_archive(full, forgotten, apply=True)["unreadable files"] == 1
    assert broken.exists()
    assert len(list((full / "bodies").glob("*/*"))) == 1
    assert not traces(full, left_out=broken)


def test_a_body_that_was_written_anew_goes_also_while_another_file_cannot_be_read(
    full: Path, forgotten: Forgotten, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted between writing the new one and removing the old one."""
    with Archive(full):
        pass
    broken = sorted((full / "requests").glob("*/*"))[-1]
    broken.write_bytes(broken.read_bytes()[:-40])

    def interrupt(_: Files, *names: str) -> None:
        if names:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Files, "delete", interrupt)
        with pytest.raises(KeyboardInterrupt):
            forget_in_archive(full, forgotten, apply=True)
    assert len(list((full / "bodies").glob("*/*"))) == 2
    assert forget_in_archive(full, forgotten, apply=True)["unreadable files"] == 1
    assert len(list((full / "bodies").glob("*/*"))) == 1
    assert not traces(full, left_out=broken)


def test_they_are_never_archived_again_by_whoever_has_it_open(root: Path, spool: Path) -> None:
    with Archive(root) as archive:
        one = exchange(timeline(7, ANN), contacts.TIMELINE.bind(id=7))
        assert archive.record(one) is one
        add(root, *PEOPLE)
        kept = archive.record(exchange(timeline(7, ANN), contacts.TIMELINE.bind(id=7)))
        assert kept.call.params == {"id": str(load(root).contact("main", 7))}
        spool.write_bytes(envelope({"contacts": {"count": 2, "items": [contact(7, ANN), contact(8, BOB)]}}))
        large = archive.record(exchange(spool, contacts.GETCONTACTS.bind(listid=3)))
        assert large.body == spool
        assert b"ann.lee" not in spool.read_bytes()
        (found,) = archive.responses([kept.request_id])
        assert found == Response(kept.request_id, "main", kept.call, NOON, kept.body)
    forget_in_archive(root, add(root, *PEOPLE), apply=True)
    assert not traces(root)


def test_the_list_grows_names_nobody_and_is_for_its_owner_alone(root: Path) -> None:
    assert not load(root)
    assert not Suppression(root).current()
    first, listed = add(root, *PEOPLE), Suppression(root)
    assert listed.current() == load(root)
    second = add(root, [BOB], [("main", 8)])
    assert second.key == first.key == load(root).key
    assert len(second.fingerprints) == 4
    assert listed.current().fingerprints == second.fingerprints
    assert add(root, *PEOPLE).fingerprints == second.fingerprints
    path = root / NAME
    assert path.stat().st_mode & 0o777 == 0o600
    assert not [word for word in ("ann", "bob", "example", "main") if word in path.read_text()]
    assert [each.name for each in root.iterdir()] == [NAME]


def test_nothing_is_archived_past_a_damaged_list(root: Path) -> None:
    add(root, *PEOPLE)
    (root / NAME).write_bytes((root / NAME).read_bytes()[:-9])
    with Archive(root) as archive, pytest.raises(ArchiveDamaged, match="from a backup"):
        archive.record(exchange(b"x"))
    with pytest.raises(ArchiveDamaged):
        add(root, [BOB], [])
