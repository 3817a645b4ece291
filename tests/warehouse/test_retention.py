"""What is kept no longer goes, and nothing else: tables made from a checkpoint are those that were there."""

import contextlib
import datetime as dt
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from marketing_api.exchange import Exchange, Outcome, id_at
from marketing_api.operations import contacts
from tests.warehouse.answering import START, Home
from tests.warehouse.test_rebuild import fill
from tests.warehouse.timelines import event, load, timeline
from warehouse import tables
from warehouse.archive.archive import Archive
from warehouse.archive.ledger import Ledger
from warehouse.bookkeeping import load_requests
from warehouse.disk import measure_sizes
from warehouse.errors import ArchiveDamaged
from warehouse.policies import Kept
from warehouse.rebuild import rebuild_warehouse
from warehouse.retention import UNCHANGED_DAYS, compact_archive, let_go
from warehouse.sql import fetch_rows

KEPT = Kept(bodies=30, requests=None)
MONTH = 31 * 24 * 60
_IDS = "select request_id from sync.requests"


def later(days: int) -> dt.datetime:
    return START + dt.timedelta(days=days)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nights of everything in March, a checkpoint of April 10, and one unchanged timeline in May."""
    home = Home(tmp_path_factory.mktemp("filled"))
    with home.kept_open():
        fill(home, 2)
    home.archive.seal_requests()
    compact_archive(home.path, KEPT, later(40))
    load(
        home,
        timeline(
            home, 1, event(1, "1"), event(2, "1"), event(3, "1"), event(4, "1"), total=9, minutes=2 * MONTH
        ),
    )
    page = home.answer(
        contacts.GETCONTACTS, {"contacts": {"items": [{"id": 9, "email": "c9@x.com"}]}}, 2 * MONTH, listid=2
    )
    home.load([page], tables.CONTACTS)
    home.close()
    return home.path


@pytest.fixture
def years(filled: Path, tmp_path: Path) -> Iterator[Home]:
    """A copy of it."""
    shutil.copytree(filled, tmp_path / "home")
    home = Home(tmp_path / "home")
    yield home
    home.close()


def find_readable(archive: Archive, request_ids: Sequence[int]) -> list[int]:
    found = []
    for request_id in request_ids:
        with contextlib.suppress(ArchiveDamaged):
            found += [response.request_id for response in archive.responses([request_id])]
    return found


def files(home: Path) -> list[str]:
    return sorted(
        path.relative_to(home / "archive").as_posix() for path in home.glob("archive/requests/*/*.parquet")
    )


def ids(home: Home) -> list[int]:
    with home.warehouse.open_for_writing() as connection:
        load_requests(connection, home.archive)
    return home.values("sync.requests", "request_id")


@pytest.mark.slow
def test_files_of_a_month_become_one_and_say_the_same(years: Home) -> None:
    before, asked = years.contents(), ids(years)
    bodies = [response.body for response in years.archive.responses(asked)]
    compact_archive(years.path, replace(KEPT, bodies=None), later(100))
    assert [name.rpartition("/")[0] for name in files(years.path)] == [
        "requests/date=2026-05-03",
        "requests/month=2026-03",
    ]
    with Archive(years.path / "archive") as archive:
        assert [response.body for response in archive.responses(asked)] == bodies
    assert ids(years) == asked, "requests of a merged file are not shown twice"
    rebuild_warehouse(years.path)
    assert years.contents() == before
    names = files(years.path)
    compact_archive(years.path, replace(KEPT, bodies=None), later(100))
    assert files(years.path) == names


@pytest.mark.slow
def test_bodies_from_before_the_last_checkpoint_go_and_a_rebuild_is_the_same(years: Home) -> None:
    before, asked = years.contents(), ids(years)
    compact_archive(years.path, KEPT, later(60))
    with Archive(years.path / "archive") as archive:
        assert find_readable(archive, asked) == asked, "the checkpoint is not old enough"
    compact_archive(years.path, KEPT, later(75))
    assert len(list(years.path.glob("archive/checkpoints/*"))) == 2
    with Archive(years.path / "archive") as archive:
        assert 0 < len(find_readable(archive, asked)) < len(asked) / 5
    report = rebuild_warehouse(years.path)
    assert report.since == (START + dt.timedelta(days=40)).date()
    assert (report.failed, report.loads) == (0, 2), "what came after the checkpoint is replayed, and no more"
    assert years.contents() == before
    assert ids(years) == asked
    compact_archive(years.path, KEPT, later(110))
    assert len(list(years.path.glob("archive/checkpoints/*"))) == 2
    assert (rebuild_warehouse(years.path).loads, years.contents()) == (0, before)


@pytest.mark.slow
def test_a_body_that_a_later_response_refers_to_is_kept(years: Home) -> None:
    newest = timeline(
        years, 1, event(1, "1"), event(2, "1"), event(3, "1"), event(4, "1"), total=9, minutes=3 * MONTH
    )
    years.archive.seal_requests()
    compact_archive(years.path, KEPT, later(100))
    with Archive(years.path / "archive") as archive:
        assert [response.body for response in archive.responses([newest.request_id])] == [newest.body]


@pytest.mark.slow
@pytest.mark.parametrize("is_ledger_lost", [False, True])
def test_what_is_said_again_after_its_body_went_is_kept_anew(years: Home, is_ledger_lost: bool) -> None:
    """Also by a ledger that was made anew: it must not lead to bodies that are gone."""
    compact_archive(years.path, KEPT, later(600))
    if is_ledger_lost:
        (years.path / "archive" / "ledger.sqlite").unlink()
    again = timeline(
        years, 1, event(1, "1"), event(2, "1"), event(3, "1"), event(4, "1"), total=9, minutes=601 * 24 * 60
    )
    years.archive.seal_requests()
    with Archive(years.path / "archive") as archive:
        assert [response.body for response in archive.responses([again.request_id])] == [again.body]


@pytest.mark.slow
def test_old_requests_go_from_table_and_archive(years: Home) -> None:
    asked = ids(years)
    kept = replace(KEPT, requests=40)
    compact_archive(years.path, kept, later(75))
    with years.warehouse.open_for_writing() as connection:
        let_go(connection, kept, later(75))
        load_requests(connection, years.archive)
    left = years.values("sync.requests", "request_id")
    assert 0 < len(left) < len(asked) / 5
    rebuild_warehouse(years.path)
    assert ids(years) == left


def test_requests_whose_response_did_not_change_go_first(years: Home) -> None:
    with years.warehouse.open_for_writing() as connection:
        load_requests(connection, years.archive)
        unchanged = {id_ for (id_,) in fetch_rows(connection, f"{_IDS} where body_ref >= 0")}
        others = {id_ for (id_,) in fetch_rows(connection, _IDS)} - unchanged
        let_go(connection, KEPT, later(UNCHANGED_DAYS + 200))
        assert {id_ for (id_,) in fetch_rows(connection, _IDS)} == others
    assert unchanged
    assert others


def test_entries_of_timelines_go(years: Home) -> None:
    with years.warehouse.open_for_writing() as connection:
        moments = [
            moment
            for (moment,) in fetch_rows(
                connection, "select occurred_at from source.timeline_events order by 1"
            )
        ]
        now = moments[2] + dt.timedelta(days=30)
        let_go(connection, replace(KEPT, timelines=30), now)
        assert [
            moment
            for (moment,) in fetch_rows(
                connection, "select occurred_at from source.timeline_events order by 1"
            )
        ] == [moment for moment in moments if moment >= now - dt.timedelta(days=30)]


def test_contacts_that_are_gone_at_the_service_go_with_all_that_is_known_of_them(years: Home) -> None:
    def people() -> dict[str, set[int]]:
        names = ("source.contacts", "source.timeline_events", "sync.contact_coverage", "history.contacts")
        return {name: set(years.values(name, "contact_id")) for name in names}

    for list_id in (1, 2):
        few = {"contacts": {"items": [{"id": 1, "email": "c1@x.com"}]}}
        years.load([years.answer(contacts.GETCONTACTS, few, 3 * MONTH, listid=list_id)], tables.CONTACTS)
    with years.warehouse.open_for_writing() as connection:
        fetch_rows(
            connection,
            "create table history.contacts as select account, contact_id, email from source.contacts",
        )
        gone = {
            id_
            for (id_,) in fetch_rows(
                connection, "select contact_id from source.contacts where _deleted_at is not null"
            )
        }
        gone -= {
            id_
            for (id_,) in fetch_rows(
                connection, "select contact_id from source.contacts where _deleted_at is null"
            )
        }
    before = people()
    assert gone
    assert all(gone & found for found in before.values())
    for days, left in ((400, before), (30, {name: found - gone for name, found in before.items()})):
        with years.warehouse.open_for_writing() as connection:
            let_go(connection, replace(KEPT, deleted=days), later(200))
        assert people() == left
    with years.warehouse.open_for_writing() as connection:
        let_go(connection, replace(KEPT, deleted=30), later(201))
    assert people() == left


@pytest.mark.parametrize(
    "moment", [0, 3, *(pytest.param(moment, marks=pytest.mark.attack) for moment in (1, 2, 4, 5, 6))]
)
@pytest.mark.slow
def test_a_pass_that_is_cut_short_is_done_by_the_next(
    years: Home, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Wherever it ends: whatever can be interrupted goes through these."""
    before, asked, steps = years.contents(), ids(years), iter(range(100))

    def cut(original):  # type: ignore[no-untyped-def]
        def step(*args, **kwargs):  # type: ignore[no-untyped-def]
            if next(steps) == moment:
                raise KeyboardInterrupt
            return original(*args, **kwargs)

        return step

    with monkeypatch.context() as patched:
        for owner, name in (
            ("warehouse.disk", "move_into_place"),
            ("warehouse.disk", "sync_disk"),
            ("warehouse.archive.compaction", "retire_files"),
        ):
            module = __import__(owner, fromlist=[name])
            patched.setattr(module, name, cut(getattr(module, name)))
        patched.setattr(Ledger, "replace_files", cut(Ledger.replace_files))
        with contextlib.suppress(KeyboardInterrupt):
            compact_archive(years.path, KEPT, later(75))
    compact_archive(years.path, KEPT, later(75))
    with Archive(years.path / "archive") as archive:
        assert len(find_readable(archive, asked)) < len(asked) / 5
    rebuild_warehouse(years.path)
    assert years.contents() == before
    assert ids(years) == asked


@pytest.mark.slow
def test_a_response_without_its_body_says_so(years: Home) -> None:
    asked = ids(years)
    compact_archive(years.path, KEPT, later(600))
    with Archive(years.path / "archive") as archive, pytest.raises(ArchiveDamaged, match="kept no longer"):
        list(archive.responses(asked[:1]))


def test_sizes_are_those_of_the_parts(tmp_path: Path) -> None:
    for name in (
        "archive/requests/a.parquet",
        "archive/b",
        "warehouse.duckdb",
        "warehouse.duckdb.wal",
        ".in-use",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"12345")
    assert measure_sizes(tmp_path) == {"archive": 10, "warehouse": 10, "other": 5}


def test_another_process_that_reads_finds_what_was_merged_meanwhile(years: Home) -> None:
    asked = ids(years)
    with Archive(years.path / "archive") as reading:
        some = list(reading.responses(asked[:3]))
        compact_archive(years.path, replace(KEPT, bodies=None), later(100))
        assert [one.request_id for one in reading.responses(asked)] == asked
        assert [one.body for one in reading.responses(asked[:3])] == [one.body for one in some]


def test_large_bodies_go_with_their_files(tmp_path: Path) -> None:
    home, spool = Home(tmp_path / "home"), tmp_path / "spool.json"
    large = []
    for month in (0, 1, 2):
        spool.write_text(json.dumps({"response": {"data": {"month": month // 2}}}))
        at = START + dt.timedelta(days=31 * month)
        request_id = id_at(at)
        home.archive.record_exchange(
            Exchange(request_id, "main", contacts.TIMELINE.bind(id=1), at, 0, 1, 200, Outcome.OK, None, spool)
        )
        large.append(request_id)
    home.archive.seal_requests()
    assert len(list(home.path.rglob("*.zst"))) == 2, "the second is that of the first"
    home.close()
    for days, left in ((45, large), (90, large[2:])):
        compact_archive(home.path, KEPT, later(days))
        with Archive(home.path / "archive") as archive:
            assert find_readable(archive, large) == left
    assert [path.name.split(".")[0] for path in home.path.rglob("*.zst")] == [str(large[2])]
