"""Whose load is next, and what becomes of the others when one fails."""

import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.waiting import HANGS_S, wait_until
from warehouse.loads.queue import LoadQueue


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warehouse.loads.queue.KEEP_S", HANGS_S)


class File:
    """Counts openings; `opened` may be made to fail."""

    def __init__(self) -> None:
        self.openings = 0
        self.is_open = False
        self.problem: Exception | None = None

    @contextmanager
    def opened(self) -> Iterator[int]:
        if self.problem:
            raise self.problem
        assert not self.is_open
        self.openings += 1
        self.is_open = True
        try:
            yield self.openings
        finally:
            self.is_open = False


class Crowd:
    """Threads that come while the first has the file, so that all of them wait."""

    def __init__(self, file: File) -> None:
        self.queue = LoadQueue(file.opened)
        self.order: list[str] = []
        self._may_end = threading.Event()
        self._pool = ThreadPoolExecutor(10)
        self._first = self._pool.submit(self.queue.run_in_turn, lambda _: self._may_end.wait(HANGS_S))
        wait_until(lambda: file.is_open or file.problem is not None)

    def comes(self, name: str, problem: Exception | None = None) -> Future[int]:
        """Somebody more waits; the number of the opening is the result."""

        def work(opening: int) -> int:
            self.order.append(name)
            if problem:
                raise problem
            return opening

        expected = len(self.queue._waiting) + 1
        future = self._pool.submit(self.queue.run_in_turn, work)
        wait_until(lambda: len(self.queue._waiting) == expected)
        return future

    def go(self) -> None:
        """The first one ends."""
        self._may_end.set()
        self._pool.shutdown()


def test_who_came_first_goes_first_and_the_file_is_opened_once() -> None:
    file = File()
    crowd = Crowd(file)
    results = [crowd.comes(name) for name in "abcde"]
    crowd.go()
    assert crowd.order == list("abcde")
    assert [result.result() for result in results] == [1] * 5
    assert not file.is_open


def test_one_that_fails_costs_the_others_nothing_but_a_new_opening() -> None:
    file = File()
    crowd = Crowd(file)
    before = crowd.comes("before")
    bad = crowd.comes("bad", problem=ValueError("broken"))
    behind = crowd.comes("behind")
    crowd.go()
    assert (before.result(), behind.result()) == (1, 2)
    with pytest.raises(ValueError, match="broken"):
        bad.result()


def test_when_the_file_cannot_be_opened_all_who_wait_are_told_and_the_next_one_tries_again() -> None:
    file = File()
    crowd = Crowd(file)
    waiting = [crowd.comes("bad", problem=ValueError("broken")), crowd.comes("a"), crowd.comes("b")]
    file.problem = OSError("held by another")
    crowd.go()
    assert [type(one.exception()) for one in waiting] == [ValueError, OSError, OSError]
    file.problem = None
    assert crowd.queue.run_in_turn(lambda opening: opening) == 2


def test_the_file_is_left_to_other_processes_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warehouse.loads.queue.KEEP_S", 0.0)
    monkeypatch.setattr("warehouse.loads.queue.REST_S", 0.0)
    file = File()
    crowd = Crowd(file)
    results = [crowd.comes(name) for name in "ab"]
    crowd.go()
    assert [result.result() for result in results] == [2, 3]


def test_the_result_is_there_when_the_file_is_closed() -> None:
    file = File()
    queue = LoadQueue(file.opened)
    for number in range(1, 20):
        assert queue.run_in_turn(lambda opening: opening) == number
        assert not file.is_open


def test_what_the_work_was_done_with_is_let_go_before_the_result_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process may end then, and DuckDB aborts one whose thread is letting go of a connection."""
    monkeypatch.setattr("warehouse.loads.queue.KEEP_S", 0.0)  # so that the thread rests before it ends

    class Session:
        pass

    sessions: list[weakref.ref[Session]] = []

    @contextmanager
    def opened() -> Iterator[Session]:
        session = Session()
        sessions.append(weakref.ref(session))
        yield session

    LoadQueue(opened).run_in_turn(lambda session: None)
    assert sessions[0]() is None


def test_who_waits_is_served_though_the_thread_that_serves_cannot_be_started_or_dies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = LoadQueue(File().opened)
    # it ends without a word, and leaves the queue as served
    monkeypatch.setattr(queue, "_serve_waiting", lambda: None)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.run_in_turn, lambda opening: opening)
        time.sleep(0.2)
        assert not waiting.done()
        monkeypatch.undo()
        assert waiting.result(timeout=HANGS_S) == 1
    queue._server.join()
    with monkeypatch.context() as patch:
        patch.setattr("threading.Thread.start", _refuse)
        with pytest.raises(RuntimeError, match="no more threads"):
            queue.run_in_turn(lambda opening: opening)
    assert queue.run_in_turn(lambda opening: opening) > 1


def _refuse(_: threading.Thread) -> None:
    raise RuntimeError("no more threads")
