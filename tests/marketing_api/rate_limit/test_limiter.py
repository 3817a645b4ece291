"""Waiting for slots: in order, together with other processes, and not for ever."""

import itertools
import json
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from marketing_api.errors import Stopped
from marketing_api.pacing import RateReport
from marketing_api.rate_limit import FileStore, RateLimiter, shared_path
from marketing_api.redaction import Secret
from tests.patterns import plainly
from tests.waiting import HANGS_S, wait_until

UNLIMITED = RateReport(limit=1_000_000, requests=1, remaining=999_999)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "slots"


@pytest.fixture
def limiter(path: Path) -> RateLimiter:
    return RateLimiter(path)


class SteppedStore(FileStore):
    """Its clock goes on by 20 ms with each look at it, however busy the machine is."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._looks = itertools.count(5_000)

    def now(self) -> float:
        return next(self._looks) / 50


@pytest.fixture
def stepped(path: Path) -> RateLimiter:
    return RateLimiter(SteppedStore(path))


def in_thread(what: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=what, daemon=True)
    thread.start()
    return thread


def test_slots_are_a_tenth_of_a_second_apart_until_the_limit_is_known(stepped: RateLimiter) -> None:
    slots = [stepped.wait_for_slot() for _ in range(5)]
    assert [slot.gap for slot in slots[1:]] == pytest.approx([0.1] * 4, abs=0.03)


def test_nobody_leaves_before_the_slot(limiter: RateLimiter) -> None:
    for _ in range(4):
        slot = limiter.wait_for_slot()
        assert time.monotonic() >= slot.at


def test_the_reported_limit_is_followed(limiter: RateLimiter) -> None:
    assert limiter.limit == 10
    limiter.learn(limiter.wait_for_slot(), RateReport(limit=15, requests=1, remaining=14), refused=False)
    assert limiter.limit == 15
    assert 10 < limiter.rate <= 15


def test_the_cap_holds_against_a_higher_limit(path: Path) -> None:
    limiter = RateLimiter(path, cap=4)
    limiter.learn(limiter.wait_for_slot(), UNLIMITED, refused=False)
    assert limiter.rate == 4


def test_a_thousand_slots_cost_about_a_search_through_half_a_megabyte(limiter: RateLimiter) -> None:
    """Fifteen hundred requests a second must be possible: 20 µs a slot on an idle machine."""
    limiter.learn(limiter.wait_for_slot(), UNLIMITED, refused=False)
    began = time.thread_time()
    for _ in range(2000):
        limiter.wait_for_slot()
    assert time.thread_time() - began < 10 * plainly()


@pytest.mark.slow
def test_a_refused_request_goes_before_all_that_wait(path: Path) -> None:
    limiter = RateLimiter(path)
    order: list[tuple[float, str]] = []
    slot = limiter.wait_for_slot()
    limiter.wait_for_slot()

    def wait(name: str, *, first: bool = False) -> Callable[[], None]:
        def body() -> None:
            order.append((limiter.wait_for_slot(first=first).at, name))

        return body

    threads = []
    limiter._cap = 0.001  # so slow that nobody leaves before the refusal is known
    bodies = [wait(f"waiting {number}") for number in range(3)]
    for number, body in enumerate([*bodies, wait("refused", first=True)]):
        threads.append(in_thread(body))
        # the next one comes after it, however the threads are scheduled
        wait_until(lambda number=number: len(limiter._queue) > number)
    limiter._cap = None
    limiter.learn(
        slot,
        RateReport(limit=10, requests=10, remaining=0, reached=True, reset=time.time() + 0.3),
        refused=True,
    )
    limiter.wake_waiting()
    for thread in threads:
        thread.join(HANGS_S)
    assert [name for _, name in sorted(order)] == ["refused", "waiting 0", "waiting 1", "waiting 2"]


def test_after_a_refusal_other_processes_wait_too(path: Path) -> None:
    one, other = RateLimiter(path), RateLimiter(path)
    slot = one.wait_for_slot()
    refused_at = time.monotonic()
    one.learn(
        slot,
        RateReport(limit=10, requests=10, remaining=0, reached=True, reset=time.time() + 0.4),
        refused=True,
    )
    other.wait_for_slot()
    assert time.monotonic() - refused_at > 0.35


def test_waiting_ends_when_it_is_given_up(limiter: RateLimiter) -> None:
    limiter.learn(limiter.wait_for_slot(), RateReport(limit=10, reached=True, after=30), refused=True)
    given_up = threading.Event()
    problems: list[Exception] = []

    def wait() -> None:
        try:
            limiter.wait_for_slot(is_cancelled=given_up.is_set)
        except Stopped as problem:
            problems.append(problem)

    threads = [in_thread(wait) for _ in range(3)]
    time.sleep(0.05)
    given_up.set()
    limiter.wake_waiting()
    for thread in threads:
        thread.join(HANGS_S)
    assert len(problems) == 3


def test_those_who_gave_up_leave_the_queue_to_others(stepped: RateLimiter) -> None:
    stepped.wait_for_slot()
    with pytest.raises(Stopped):
        stepped.wait_for_slot(is_cancelled=lambda: True)
    assert stepped.wait_for_slot().gap == pytest.approx(0.1, abs=0.03)


_ASKER = """
import json, sys, threading, time
from pathlib import Path
from marketing_api.rate_limit import RateLimiter
pace, end, times = RateLimiter(Path(sys.argv[1])), time.monotonic() + float(sys.argv[3]), []
def ask():
    while time.monotonic() < end:
        slot = pace.wait_for_slot()
        times.append(slot.at)
        time.sleep(0.05)
threads = [threading.Thread(target=ask) for _ in range(int(sys.argv[2]))]
print("ready", flush=True); sys.stdin.readline()
end = time.monotonic() + float(sys.argv[3])
[thread.start() for thread in threads]; [thread.join() for thread in threads]
print(json.dumps(times))
"""


@pytest.mark.slow
def test_two_processes_keep_one_limit_and_share_it_whatever_their_threads(
    limiter: RateLimiter, path: Path
) -> None:
    limiter.learn(limiter.wait_for_slot(), RateReport(limit=80), refused=False)
    command, seconds = [sys.executable, "-c", _ASKER, str(path)], 2.5
    askers = [
        subprocess.Popen(
            [*command, threads, str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for threads in ("8", "24")
    ]
    for asker in askers:
        assert asker.stdout is not None
        assert asker.stdout.readline() == "ready\n"
    for asker in askers:
        assert asker.stdin is not None
        asker.stdin.write("\n")
        asker.stdin.flush()
    times = [json.loads(asker.communicate(timeout=HANGS_S)[0]) for asker in askers]
    together = sorted(times[0] + times[1])
    rate = len(together) / (together[-1] - together[0])
    assert 10 < rate <= 80 * 1.02, "more than the limit that is assumed before one is known"
    assert all(len(each) >= len(together) / 3 for each in times)
    assert max(sum(start <= each < start + 1 for each in together) for start in together) <= 84


def test_the_file_lies_in_a_folder_of_its_owner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = shared_path("https://host.example/1", Secret("the-key"))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "the-key" not in str(path)


def test_an_account_has_one_file_and_another_account_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = shared_path("https://host.example/1", Secret("the-key"))
    assert path == shared_path("https://host.example/1", "the-key")
    assert path != shared_path("https://host.example/1", Secret("another"))
    assert path != shared_path("https://other.example/1", Secret("the-key"))


def test_a_folder_open_to_others_is_closed_to_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = shared_path("https://host.example/1", "key").parent
    folder.chmod(0o777)
    shared_path("https://host.example/1", "key")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_link_in_the_folders_place_is_not_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = shared_path("https://host.example/1", "key").parent
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError):
        shared_path("https://host.example/1", "key")
