"""Who holds a lock takes only those below it: the table of docs/durability.md is the order in which a night, a
push, a backup and a rebuild take them, whatever their threads."""

import fcntl
import re
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.fixtures import Command
from tests.pipelines.sandboxes import Sandbox
from warehouse.archive.ledger import Ledger
from warehouse.connection import _Mode, _Place

PAGE = Path(__file__).parents[2] / "docs" / "durability.md"
#: Files that stand for the first column's words.
NAMES = {"ACCOUNT": "*", "the home's folder": "home", "the state of the rate limit": "*marketing*"}


def order() -> list[str]:
    """The patterns of the page's table of locks, from the outermost lock on."""
    table = PAGE.read_text().split("## Locks")[1].split("## Files of a home")[0]
    rows = re.findall(r"^\| (?:`([^`]+)`|(the [^,|]+))", table, re.M)
    names = [quoted or NAMES[plain.strip()] for quoted, plain in rows]
    return list(dict.fromkeys(name.replace("ACCOUNT", "*") for name in names))


class Noted:
    """Which lock was taken by a thread that held which. Locks of the main thread are held for all: it works
    for as long as the others do."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._flocks: dict[int, tuple[str, int]] = {}  # descriptor → file, thread
        self._others: list[tuple[str, int]] = []  # of DuckDB and SQLite
        self._lock = threading.RLock()
        self.pairs: set[tuple[str, str]] = set()

    def name_of(self, path: str) -> str:
        return Path(path).relative_to(self._home.parent).as_posix().removeprefix("home/")

    def taken(self, path: str) -> None:
        with self._lock, suppress(ValueError):  # of a file outside the home
            name, me = self.name_of(path), threading.get_ident()
            for descriptor, (held, _) in list(self._flocks.items()):
                if _file(descriptor) != held:
                    del self._flocks[descriptor]  # it was closed
            held_by = [(self.name_of(held), thread) for held, thread in self._flocks.values()] + self._others
            main = threading.main_thread().ident
            self.pairs |= {(held, name) for held, thread in held_by if thread in (me, main) and held != name}

    def flock(self, real: Callable[[int, int], None]) -> Callable[[int, int], None]:
        def noted(descriptor: int, operation: int) -> None:
            if operation & fcntl.LOCK_UN:
                self._flocks.pop(descriptor, None)
            real(descriptor, operation)
            path = _file(descriptor)
            if not operation & fcntl.LOCK_UN and "/tmp/" not in path.removeprefix(
                str(self._home)
            ):  # folders that a process claims are its own
                self.taken(path)
                self._flocks[descriptor] = (path, threading.get_ident())

        return noted

    def enter(self, path: Path) -> None:
        self.taken(str(path))
        self._others.append((self.name_of(str(path)), threading.get_ident()))

    def leave(self, path: Path) -> None:
        self._others.remove((self.name_of(str(path)), threading.get_ident()))


def _file(descriptor: int) -> str:
    try:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
    except OSError:
        return ""


@pytest.fixture
def noted(home: Path, monkeypatch: pytest.MonkeyPatch) -> Noted:
    notes = Noted(home)
    monkeypatch.setattr(fcntl, "flock", notes.flock(fcntl.flock))
    enter, leave, transaction = _Place.enter_place, _Place.leave_place, Ledger._run_once

    def entered(place: _Place, mode: _Mode) -> duckdb.DuckDBPyConnection:
        connection = enter(place, mode)
        if place.path.parent == home:
            notes.enter(place.path)
        return connection

    def left(place: _Place, connection: duckdb.DuckDBPyConnection) -> None:
        if place.path.parent == home:
            notes.leave(place.path)
        leave(place, connection)

    def transacted(ledger: Ledger, work: Callable[[sqlite3.Connection], Any], begin: str) -> Any:
        notes.enter(ledger._path)
        try:
            return transaction(ledger, work, begin)
        finally:
            notes.leave(ledger._path)

    monkeypatch.setattr(_Place, "enter_place", entered)
    monkeypatch.setattr(_Place, "leave_place", left)
    monkeypatch.setattr(Ledger, "_run_once", transacted)
    return notes


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="which file a descriptor has is not told here")
def test_locks_are_taken_in_the_order_of_the_page(
    command: Command, service: Sandbox, noted: Noted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARKETING_BACKUP_DIR", str(tmp_path / "backup"))
    people = "select email from source.contacts where status = 'active' order by email limit 2"
    for words in (
        ("sync", "--only", "business", "lists", "contacts"),
        ("push", "tags", "--sql", f"select email, 'vip' as tag from ({people})", "--apply"),
        ("backup",),
        ("rebuild",),
    ):
        ran = command(*words, sandbox=service)
        assert ran.code == 0, ran.text
    patterns = order()
    rank = {
        name: next((at for at, pattern in enumerate(patterns) if fnmatch(name, pattern)), None)
        for pair in noted.pairs
        for name in pair
    }
    assert len(rank) >= 6, rank
    assert [name for name, at in rank.items() if at is None] == [], "locks that the page does not name"
    assert {pair for pair in noted.pairs if rank[pair[0]] > rank[pair[1]]} == set()  # type: ignore[operator]
