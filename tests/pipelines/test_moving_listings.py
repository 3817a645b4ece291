"""Listings that change between pages, over HTTP: who is there stays, who is gone goes, and the cost."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest
import requests

from assets.sources import SOURCE_ASSETS
from home.folder import prepare_home
from home.settings import Settings
from marketing_api.client import Connection, Secret
from marketing_api.sandbox.app import Rule
from marketing_api.sandbox.rules import NOT_VALID, CheckedCall, Refusal
from marketing_api.sandbox.subscribers import Contact
from marketing_api.sandbox.world import World
from pipelines.reading import ReadOptions, open_reader
from tests.dialects.server import serve
from tests.fixtures import STANDING
from tests.pipelines.sandboxes import KEY, Sandbox, move_account, put_in
from tests.pipelines.tables import query
from tests.waiting import HANGS_S
from warehouse.rebuild import rebuild_warehouse
from warehouse.warehouse import Warehouse

CAP = 5
TABLES = ("source.contacts", "sync.coverage", "sync.readings", "sync.rejected_records")


@dataclass
class Moving:
    """A sandbox whose list changes just before its pages: `changes` by (reading, page)."""

    sandbox: Sandbox
    list_id: int
    changes: dict[tuple[int, int], Callable[["Moving", CheckedCall], object]] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)  # pages, in order
    world: World | None = None

    def respond(self, call: CheckedCall, rule: Rule) -> Any:
        self.world = call.world
        if call.operation.name == "emailmarketing/getcontacts" and call.id("listid") == self.list_id:
            page = int(call["page"])
            self.asked.append(page)
            if (change := self.changes.get((self.asked.count(1), page))) is not None:
                change(self, call)
        return rule(call)

    def members(self) -> list[Contact]:
        assert self.world is not None
        return self.world.subscribers.on_list(self.list_id, self.world.now())

    def exchange(self, call: CheckedCall) -> None:
        """The first contact goes and another comes: all others move up by one, and the count stays."""
        call.world.subscribers.delete(self.members()[0], call.now)
        email = f"new{len(self.asked)}@example.com"
        call.world.subscribers.add(Contact(next(call.world.ids), self.list_id, email, call.now, {}))

    def take(self, place: int) -> Callable[["Moving", CheckedCall], object]:
        """The contact in that place goes."""
        return lambda moving, call: call.world.subscribers.delete(moving.members()[place], call.now)


@pytest.fixture
def moving(home: Path, known_account: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Moving]:
    shutil.copytree(known_account, home)
    ((list_id, count),) = query(
        home, "select list_id, count(*) from source.contacts group by all order by 2 desc limit 1"
    )
    assert count > 4 * CAP
    monkeypatch.setattr(Warehouse, "list_ids", lambda *_: [list_id])
    with serve(STANDING) as url:
        move_account(home, url)
        moved = Moving(Sandbox(url), list_id)
        put_in(monkeypatch, moved.respond)
        requests.get(f"{url}/app/me.json", {"key": KEY}, timeout=HANGS_S)
        moved.sandbox.control("switches", **{"contact-paging": "honoured", "page-cap": CAP})
        yield moved


def read(home: Path, moving: Moving, **options: Any) -> list[str]:
    """The list once more; returns the problems."""
    moving.asked.clear()
    with open_reader(
        Settings(home, (Connection("main", moving.sandbox.url, Secret(KEY)),)),
        [SOURCE_ASSETS["contacts"]],
        ReadOptions(**options),
    ) as reader:
        reader.begin_reading()
        reader.finish_reading()
        reader.note_run("again", "nightly_sync")
        return [line for lines in reader.list_missing_reasons().values() for line in lines]


def live(home: Path, moving: Moving) -> set[int]:
    sql = f"select contact_id from source.contacts where list_id = {moving.list_id} and _deleted_at is null"
    return {contact_id for (contact_id,) in query(home, sql)}


def there(moving: Moving) -> set[int]:
    """Everybody on the list as the server has it now."""
    return {one.contact_id for one in moving.members()}


def pages(count: int) -> int:
    """Requests of one reading: the last page is shorter, or one more is empty."""
    return count // CAP + 1


@pytest.mark.attack
@pytest.mark.parametrize(
    "readings",
    [
        pytest.param((1,), marks=pytest.mark.attack),
        pytest.param((1, 2), marks=pytest.mark.attack),
        (1, "and one is gone"),
    ],
)
def test_between_any_two_pages_nobody_who_is_there_is_marked_as_deleted_and_who_is_gone_is(
    home: Path, moving: Moving, readings: tuple[Any, ...]
) -> None:
    for page in range(2, pages(len(live(home, moving))) + 1):
        before, gone = live(home, moving), set[int]()
        moving.changes = {
            (reading, page): Moving.exchange for reading in readings if isinstance(reading, int)
        }
        if len(moving.changes) < len(readings):
            gone = {moving.members()[-1].contact_id}
            moving.changes[1, 1] = moving.take(-1)
        assert read(home, moving) == []
        assert len(moving.asked) <= 2 * pages(len(before))
        assert there(moving) & before <= live(home, moving), (
            f"page {page}: somebody who is there was marked as deleted"
        )
        assert not gone & live(home, moving), f"page {page}: somebody who was gone before is still there"

        moving.changes = {}
        assert read(home, moving) == []
        assert live(home, moving) == there(moving)
    was = {table: query(home, f"from {table} order by all") for table in TABLES}
    rebuild_warehouse(home)
    assert {table: query(home, f"from {table} order by all") for table in TABLES} == was


def test_a_second_reading_is_made_only_of_a_list_of_several_pages_of_which_something_is_gone(
    home: Path, moving: Moving
) -> None:
    size = len(live(home, moving))
    assert read(home, moving) == []
    assert len(moving.asked) == pages(size)

    moving.changes = {(1, 1): moving.take(3)}
    assert read(home, moving) == []
    assert len(moving.asked) == 2 * pages(size - 1)
    assert len(live(home, moving)) == size - 1

    moving.sandbox.control("switches", **{"page-cap": 0})
    moving.changes = {(1, 1): moving.take(3)}
    assert read(home, moving) == []
    assert len(live(home, moving)) == size - 2
    assert moving.asked in ([1], [1, 2])


def refuse(moving: Moving, call: CheckedCall) -> None:
    raise Refusal(NOT_VALID, "not now")


@pytest.mark.parametrize("is_refused", [True, False])
def test_without_a_second_reading_nothing_is_marked_as_deleted_and_it_is_said(
    home: Path, moving: Moving, is_refused: bool
) -> None:
    size = len(live(home, moving))
    moving.changes = {(1, 1): moving.take(3)} | ({(2, 2): refuse} if is_refused else {})
    problems = read(home, moving) if is_refused else read(home, moving, max_requests=1 + pages(size - 1) + 2)
    assert any(
        "which would confirm it, was incomplete: nothing was marked as deleted" in line for line in problems
    )
    assert len(live(home, moving)) == size
    coverage = (
        "select is_complete, reason from sync.coverage where table_name = 'contacts' and scope = "
        f"'list_id={moving.list_id}'"
    )
    ((is_complete, reason),) = query(home, coverage)
    assert not is_complete
    assert "nothing was marked as deleted" in reason

    moving.changes = {}
    assert read(home, moving) == []
    assert len(live(home, moving)) == size - 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asset", "operation", "table"),
    [
        ("lists", "emailmarketing/getlists", "lists"),
        ("campaigns", "emailmarketing/campaigns", "campaigns"),
        ("social_posts", "socialmedia/calendar", "social_posts"),
    ],
)
def test_every_listing_of_several_pages_is_read_twice_only_when_something_is_gone_from_it(
    tmp_path: Path, asset: str, operation: str, table: str
) -> None:
    with serve(STANDING) as url:
        service, home = Sandbox(url), prepare_home(tmp_path / "home")
        service.control("switches", **{"contact-paging": "honoured", "page-cap": 2})
        settings = Settings(home, (Connection("main", url, Secret(KEY)),))

        def pages() -> list[str]:
            since = service.count
            with open_reader(settings, [SOURCE_ASSETS[asset]]) as reader:
                reader.begin_reading()
                reader.finish_reading()
                assert not reader.list_missing_reasons()
                reader.note_run("again", "nightly_sync")
            return [str(entry["params"]) for entry in service.asked(since) if entry["operation"] == operation]

        def there() -> int:
            return int(query(home, f"select count(*) from source.{table} where _deleted_at is null")[0][0])

        first, size = pages(), there()
        assert len(first) > 2
        once = pages()
        assert sorted(once) == sorted(set(once))
        with duckdb.connect(
            str(home / "warehouse.duckdb")
        ) as connection:  # one that the service has no longer
            key = SOURCE_ASSETS[asset].tables[0].key[0]
            row = (
                f"select * replace (-1 as {key}) from source.{table} where _deleted_at is null "
                "order by all "
                "desc limit 1"
            )
            connection.execute(f"insert into source.{table} by name {row}")
        assert there() == size + 1
        assert sorted(pages()) == sorted(once * 2)
        assert there() == size
