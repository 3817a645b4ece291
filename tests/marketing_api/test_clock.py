"""A machine's clock that is wrong or jumps: what was first stays first, and dates are the service's."""

import datetime as dt
import re
import time
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api import clock
from marketing_api.clock import TOLERANCE, ServiceClock, SteadyClock
from marketing_api.exchange import _RequestIds, id_at

ROOT = Path(__file__).parents[2]
NOON = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)


class Times:
    """The module `time` with a clock that tests move, and one that only goes forward."""

    CLOCK_BOOTTIME = 7

    def __init__(self) -> None:
        self.now, self.passed = NOON.timestamp(), 1000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.passed

    def clock_gettime(self, which: int) -> float:
        assert which == self.CLOCK_BOOTTIME
        return self.passed

    def move(self, ahead: float, seconds: float = 0.0) -> None:
        self.now += ahead + seconds
        self.passed += seconds


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    moved = Times()
    monkeypatch.setattr(clock, "time", moved)
    return moved


def test_nobody_else_reads_the_machines_clock() -> None:
    """Or it could not be told from the others, and not be moved by a test."""
    reads = re.compile(
        r"datetime\.now\(|\.utcnow\(|date\.today\(|\btime\.time(_ns)?\b|\.localtime\(|\.gmtime\("
    )
    packages = ("marketing_api", "warehouse", "assets", "home", "write_back", "upkeep", "pipelines")
    files = [
        path for package in packages for path in (ROOT / package).rglob("*.py") if "sandbox" not in path.parts
    ]
    assert len(files) > 150
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in files
        for line in path.read_text().splitlines()
        if reads.search(line)
    ]
    assert found == ["marketing_api/clock.py: return time.time()"]


# -- request ids


Move = tuple[float, float, bool]


@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(0, 1e5), st.booleans()), max_size=20),
    st.integers(0, 1 << 62),
)
def test_a_later_request_has_a_larger_id_whatever_becomes_of_the_clock(
    moves: list[Move], largest: int
) -> None:
    """Within a process, and after another that opens the same archive."""
    with pytest.MonkeyPatch.context() as patch:
        times = Times()
        patch.setattr(clock, "time", times)
        made = [largest]
        for ahead, seconds, is_new_process in [(0.0, 0.0, True), *moves]:
            times.move(ahead, seconds)
            if is_new_process:
                ids = _RequestIds()
                ids.exceed(made[-1])
            made += [ids.next_id(), ids.next_id()]
        assert made == sorted(set(made))
        assert made[-1] < 1 << 63


def test_an_id_tells_about_when_it_was_made_while_the_clock_is_right(times: Times) -> None:
    ids = _RequestIds()
    times.move(0, 3600)
    assert id_at(NOON + HOUR) <= ids.next_id() < id_at(NOON + HOUR + dt.timedelta(milliseconds=1))


@pytest.mark.parametrize("now", [0.0, 9e9, 2.5e11])
def test_ids_fit_into_63_bits_by_any_clock(times: Times, now: float) -> None:
    times.now = now
    assert 0 < _RequestIds().next_id() < 1 << 63


def test_processes_that_ask_in_the_same_microsecond_hardly_ever_make_the_same_id(times: Times) -> None:
    assert len({_RequestIds().next_id() for _ in range(100)}) > 80


# -- the time of day


def test_a_clock_that_jumps_during_a_run_does_not_move_the_runs(times: Times) -> None:
    now = SteadyClock()
    times.move(DAY.total_seconds(), 60)
    assert now() == NOON + dt.timedelta(minutes=1)
    assert now.jump == DAY


def test_the_time_that_a_machine_slept_is_no_jump(times: Times) -> None:
    now = SteadyClock()
    times.move(0, 8 * 3600)
    assert (now(), now.jump) == (NOON + 8 * HOUR, dt.timedelta())


@pytest.mark.parametrize(
    ("headers", "skew"),
    [
        pytest.param({}, 0 * DAY, id="no date"),
        pytest.param({"Date": format_datetime(NOON)}, 0 * DAY, id="equal"),
        pytest.param({"date": format_datetime(NOON + TOLERANCE)}, 0 * DAY, id="within what is tolerated"),
        pytest.param({"DATE": format_datetime(NOON - DAY)}, -DAY, id="the machine is a day ahead"),
        pytest.param({"Date": format_datetime(NOON + 10 * DAY)}, 10 * DAY, id="the machine is behind"),
        pytest.param(
            {"Date": format_datetime(NOON - HOUR), "Age": "3600"}, 0 * DAY, id="an old answer of a cache"
        ),
        pytest.param({"Date": "Fri, 31 Dec 9999 23:59:59 GMT"}, 0 * DAY, id="no earnest date"),
        pytest.param({"Date": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0 * DAY, id="a clock that was never set"),
        pytest.param({"Date": "yesterday"}, 0 * DAY, id="no date at all"),
        pytest.param({"Date": "Sun, 22 Nov 2026 12:00:00"}, 0 * DAY, id="without a zone"),
        pytest.param({"Date": format_datetime(NOON), "Age": "9" * 30}, 0 * DAY, id="an absurd age"),
    ],
)
def test_dates_are_the_services_where_the_clocks_differ(
    times: Times, headers: dict[str, str], skew: dt.timedelta
) -> None:
    now = ServiceClock()
    now.learn(headers, NOON)
    assert now.skew == skew


def test_the_time_that_an_answer_took_is_no_difference(times: Times) -> None:
    now = ServiceClock()
    times.move(0, 3600)
    now.learn({"Date": format_datetime(NOON + HOUR / 2)}, NOON)
    assert now.skew == dt.timedelta()


def test_the_first_date_counts(times: Times) -> None:
    """A service cannot send a run back and forth in time."""
    now: Any = ServiceClock()
    now.learn({"Date": format_datetime(NOON - DAY)}, NOON)
    now.learn({"Date": format_datetime(NOON + DAY)}, NOON)
    assert now.skew == -DAY
    assert time.time() != times.now
