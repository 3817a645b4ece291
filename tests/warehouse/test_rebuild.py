"""The warehouse follows from log and archive: written anew it is the same."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from marketing_api.exchange import Response
from marketing_api.operations import campaigns, contacts, goals, lists, reputation, social
from tests.conftest import Once
from tests.warehouse.answering import Home
from tests.warehouse.timelines import event, load, timeline
from warehouse import tables
from warehouse.connection import open_database
from warehouse.errors import ArchiveError, WarehouseError
from warehouse.loads.load import Load
from warehouse.rebuild import rebuild_warehouse
from warehouse.sql import fetch_rows


def fill(home: Home, nights: int) -> None:
    """Nights of everything that loads in a way of its own; the second changes and deletes."""
    for night in range(nights):
        minutes = night * 24 * 60
        ids = range(night, 6 - night)
        items = [{"id": id_, "name": f"L{id_ * night}", "fields": {"1": "City"}, "odd": night} for id_ in ids]
        listing = home.answer(lists.GETLISTS, {"lists": {"items": items}}, minutes)
        home.load([listing], tables.LISTS, tables.LIST_FIELDS)
        people: list[Any] = [{"id": id_, "email": f"c{id_}@x.com", "status": str(night)} for id_ in ids]
        people.append({"id": "?", "n": night})
        for list_id in (1, 2):
            data = {"contacts": {"items": people}}
            page = home.answer(contacts.GETCONTACTS, data, minutes + 1, listid=list_id)
            home.load([page], tables.CONTACTS, shrink_limit=0.5)
        events = [event(number, str(night)) for number in ids]
        load(home, *(timeline(home, id_, *events, total=9, minutes=minutes + 2) for id_ in ids))
        coupon = home.answer(contacts.GETCOUPON, {"coupons": [{"id": night}]}, minutes + 3, email="c3@x.com")
        home.load([coupon], tables.COUPONS)
        reviews = [{"id": id_, "date": f"03/0{id_ + 1}/2026", "rating": str(night)} for id_ in ids]
        scope = {"from_on": "2026-03-02", "to_on": f"2026-03-0{6 - night}"}
        days = {"from_": "2026-03-02", "to": "2026-03-06"}
        data = {"reviews": {"items": reviews}}
        answer = home.answer(reputation.DIRECT, data, minutes + 4, filter="date", **days)
        home.load([answer], tables.DIRECT_REVIEWS, scope=scope)
        data = {"campaign": {"stats": {"open": f"{night} (1%)"}, "clicks": []}}
        stats = home.answer(campaigns.STATS, data, minutes, id=1, type="standard")
        home.load([stats], tables.CAMPAIGN_STATS, tables.CAMPAIGN_LINKS, tables.CAMPAIGN_CLICKERS)
        data = {"goals": {"items": [{"id": id_, "name": "G"} for id_ in ids]}}
        detail = home.answer(goals.SHOW, {"goal": {"id": 3, "type": str(night)}}, minutes, id=3)
        home.load([home.answer(goals.LISTS, data, minutes), detail], tables.GOALS, shrink_limit=0.5)
        channel = {"network": "Facebook", "type": "pages", "id": "1", "name": "P"}
        channel["date"] = "03/02/2026 10:00 AM"
        posts = {str(id_): {"id": id_, "message": f"m{night}", "channel": channel} for id_ in ids}
        data = {"calendar": {"items": {"2026-03-02": posts}}}
        home.load([home.answer(social.CALENDAR, data, minutes, **days)], tables.SOCIAL_POSTS, scope=scope)
        data = {"item": {"id": night, "title": "T"}}
        post = home.answer(social.GETPOST, data, minutes, id=night, channel="facebook")
        home.load([post], tables.SOCIAL_POST_DETAILS)
    home.warehouse.finish_assets([("main", "contacts")])


@pytest.fixture
def filled(once: Once) -> Callable[[int], Path]:
    """Call it with a number of nights: the folder of a home that is filled with them and closed."""

    def find_filled(nights: int) -> Path:
        def make(folder: Path) -> None:
            home = Home(folder)
            with home.kept_open():
                fill(home, nights)
            home.close()

        return once(f"filled-{nights}", make)

    return find_filled


@contextmanager
def copied(path: Path, copy: Path) -> Iterator[Home]:
    shutil.copytree(path, copy)
    home = Home(copy)
    yield home
    home.close()


@pytest.fixture
def full_home(filled: Callable[[int], Path], tmp_path: Path) -> Iterator[Home]:
    """A copy of two nights to work with."""
    with copied(filled(2), tmp_path / "home") as home:
        yield home


@pytest.fixture
def small_home(filled: Callable[[int], Path], tmp_path: Path) -> Iterator[Home]:
    """A copy of one, for many cases of what depends on no other."""
    with copied(filled(1), tmp_path / "home") as home:
        yield home


@pytest.mark.slow
def test_a_rebuilt_warehouse_equals_the_old_row_for_row(full_home: Home) -> None:
    """Also where the old one is lost."""
    before = full_home.contents()
    report = rebuild_warehouse(full_home.path, archive=full_home.archive)
    assert full_home.contents() == before
    assert (report.loads, report.failed) == (len(list(full_home.archive.ledger.list_loads())), 0)
    assert report.rows == sum(len(found) for name, found in before.items() if name.startswith("source."))
    filled = {name for name, found in before.items() if found}
    assert filled > {"source.contacts", "source.timeline_events", "sync.rejected_records"}
    full_home.warehouse.path.unlink()
    rebuild_warehouse(full_home.path, archive=full_home.archive)
    assert full_home.contents() == before


def test_what_does_not_follow_from_the_archive_is_taken_over(home: Home) -> None:
    listing = home.answer(lists.GETAUDIENCES, {"audiences": {"items": [{"id": 1, "name": "A"}]}})
    home.load([listing], tables.AUDIENCES)
    with home.warehouse.open_for_writing() as connection:
        fetch_rows(connection, "insert into sync.runs by name select 'r1' as run_id, 'nightly_sync' as job")
        more = "select *, now() as seen_at, {'a': 1} as more from source.audiences"
        fetch_rows(connection, f"create table history.audiences as {more}")
        fetch_rows(connection, "comment on table history.audiences is 'It''s history.'")
        fetch_rows(connection, "comment on column history.audiences.name is 'Name then.'")
        fetch_rows(connection, "create view marts.b as from source.audiences")
        fetch_rows(connection, "create view marts.a as from marts.b")
        history = fetch_rows(connection, "from history.audiences")
    rebuild_warehouse(home.path, archive=home.archive)
    with open_database(home.warehouse.path) as connection:
        assert fetch_rows(connection, "from history.audiences") == history
        assert fetch_rows(connection, "select run_id, job from sync.runs") == [("r1", "nightly_sync")]
        assert fetch_rows(connection, "select name from marts.a") == [("A",)]
        sql = "select comment from duckdb_{}() where schema_name = 'history'"
        assert fetch_rows(connection, sql.format("tables")) == [("It's history.",)]
        assert ("Name then.",) in fetch_rows(connection, sql.format("columns"))


@pytest.mark.slow
def test_the_old_warehouse_stays_when_a_rebuild_fails(
    small_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = small_home.contents()

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("warehouse.rebuild.load_requests", fail)
    with pytest.raises(OSError, match="no space"):
        rebuild_warehouse(small_home.path, archive=small_home.archive)
    monkeypatch.undo()
    assert small_home.contents() == before
    rebuild_warehouse(small_home.path, archive=small_home.archive)
    assert not list(Path(small_home.path).glob("*.rebuild*"))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """A bit of each of DuckDB's blocks, since any of them may be free."""
    content = bytearray(path.read_bytes())
    for place in range(100_000, len(content), 256 * 1024):
        content[place] ^= 4
    path.write_bytes(content)


def replace_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.slow
def test_a_damaged_warehouse_is_left_alone_and_made_anew_once_it_is_moved_away(small_home: Home) -> None:
    before, path = small_home.contents(), small_home.path / "warehouse.duckdb"
    with small_home.warehouse.open_for_writing() as connection:
        fetch_rows(connection, "checkpoint")
    whole = path.read_bytes()
    for harm in (truncate, flip, lambda path: path.write_bytes(b"xyz\n" * 99), replace_by_a_folder):
        path.write_bytes(whole)
        harm(path)
        with pytest.raises(WarehouseError):
            rebuild_warehouse(small_home.path, archive=small_home.archive)
    path.rename(path.with_name("damaged"))
    rebuild_warehouse(small_home.path, archive=small_home.archive)
    assert small_home.contents() == before


def lose_a_file(home: Home) -> None:
    sorted((home.path / "archive" / "requests").glob("*/*.parquet"))[0].unlink()


def damage_a_file(home: Home) -> None:
    path = sorted((home.path / "archive" / "requests").glob("*/*.parquet"))[0]
    path.write_bytes(path.read_bytes()[:-200])


@pytest.mark.slow
@pytest.mark.parametrize("harm", [lose_a_file, damage_a_file])
def test_a_rebuild_that_would_lose_what_the_warehouse_has_leaves_it_alone(
    small_home: Home, harm: Callable[[Home], None]
) -> None:
    small_home.archive.seal_requests()
    before = small_home.contents()
    harm(small_home)
    with pytest.raises(ArchiveError, match="Nothing was changed"):
        rebuild_warehouse(small_home.path, archive=small_home.archive)
    assert small_home.contents() == before
    assert not list(small_home.path.glob("*.rebuild*"))
    rebuild_warehouse(small_home.path, archive=small_home.archive, accept_loss=True)
    assert small_home.contents() != before


@pytest.mark.slow
def test_a_load_with_a_damaged_answer_is_missing_whole_and_nothing_counts_as_gone(
    home: Home,
) -> None:
    items = [{"id": number, "name": "A"} for number in (1, 2)]
    home.load([home.answer(lists.GETAUDIENCES, {"audiences": {"items": items}})], tables.AUDIENCES)
    home.archive.seal_requests()

    def page(number: int, email: str, minutes: float = 0) -> Response:
        data = {"contacts": {"items": [{"id": number, "email": email}]}}
        return home.answer(contacts.GETCONTACTS, data, minutes, listid=1)

    answers = [page(number, "a@x.com") for number in (3, 4)]
    home.load(answers[:1], tables.CONTACTS)
    home.archive.seal_requests()
    home.load([*answers, page(5, "b@x.com", 9)], tables.CONTACTS)
    home.archive.seal_requests()
    files = (home.path / "archive" / "requests").glob("*/*.parquet")
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(b"garbage")
    home.close()
    again = Home(home.path)
    report = rebuild_warehouse(home.path, archive=again.archive, accept_loss=True)
    assert (report.loads, report.failed) == (2, 1)
    assert again.values(tables.AUDIENCES, "audience_id") == [1, 2]
    assert again.values(tables.CONTACTS, "contact_id", "_deleted_at is null") == [3]
    (error,) = again.values("sync.loads", "error", "outcome = 'failed'")
    assert error.startswith("ArchiveDamaged: ")
    again.close()


def test_a_load_that_never_could_be_applied_keeps_no_rebuild_from_the_rest(small_home: Home) -> None:
    small_home.archive.ledger.log_loads(Load("main", "test", ("contacts",), (999,), "UTC").to_event())
    assert rebuild_warehouse(small_home.path, archive=small_home.archive).failed == 1


def test_a_rebuild_takes_in_loads_that_were_never_applied(home: Home) -> None:
    answer = home.answer(lists.GETAUDIENCES, {"audiences": {"items": [{"id": 1, "name": "A"}]}})
    home.archive.ledger.log_loads(home.event([answer], tables.AUDIENCES).to_event())
    report = rebuild_warehouse(home.path, archive=home.archive)
    assert (report.loads, report.rows) == (1, 1)


def test_a_rebuild_brings_back_what_a_half_answer_took(home: Home) -> None:
    items = [{"id": number, "date": "03/02/2026"} for number in range(20)]
    scope = {"from_on": "2026-03-01", "to_on": "2026-03-31"}
    for minutes, some in enumerate((items, None, items[:12])):
        answer = home.answer(reputation.DIRECT, {"reviews": {"count": 20, "items": some}}, minutes)
        home.load([answer], tables.DIRECT_REVIEWS, scope=scope)
    with home.warehouse.open_for_writing() as connection:  # what the version before made of it
        fetch_rows(connection, "delete from source.direct_reviews where review_id > 4")
    rebuild_warehouse(home.path, archive=home.archive)
    assert home.values(tables.DIRECT_REVIEWS, "review_id", "_deleted_at is null") == list(range(20))
