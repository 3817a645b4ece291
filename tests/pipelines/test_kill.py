"""A run killed at any moment loses nothing and asks little again; the archive alone is enough."""

import random
import signal
import time
from collections.abc import Iterator
from itertools import takewhile

import pytest

from home import exits
from tests.depth import DEEP
from tests.fixtures import NOW, Night
from tests.pipelines.running import Ran, finish, start
from tests.pipelines.sandboxes import Sandbox, spawned
from tests.pipelines.tables import differing, rows, source
from tests.waiting import wait_until
from tests.warm import Command
from warehouse.publish import published_path

pytestmark = [pytest.mark.deep, pytest.mark.slow]
KILLS = 6 if DEEP else 3
IN_FLIGHT = 32  # the client's workers
RATE = 100  # so that a run takes long enough to be killed in the middle


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, calm_night: Night) -> Iterator[tuple[Night, Sandbox]]:
    """A night of the same account, killed every few dozen requests after it resumed."""
    home = tmp_path_factory.mktemp("kill") / "home"
    moments = random.Random(20261121)
    with spawned("--contacts", "100", "--now", NOW, "--rate-limit", str(RATE)) as url:
        service = Sandbox(url)
        for _ in range(KILLS):
            process = start(home, service, "sync", "--reads-only")
            count = service.count + moments.randrange(1, 2 * len(calm_night.asked) // KILLS)
            _wait(service, count, process)
            time.sleep(moments.uniform(0, 0.5))
            process.kill()
            process.communicate()
        ended = finish(start(home, service, "sync", "--reads-only"))
        yield Night(home, ended, service.asked()), service


@pytest.fixture(scope="module")
def killed_night(killed: tuple[Night, Sandbox]) -> Night:
    return killed[0]


def _wait(service: Sandbox, count: int, process: Command) -> None:
    """Until so many requests have come, or no more will."""
    wait_until(lambda: service.count >= count or process.poll() is not None)


def test_the_last_run_ends_well(killed_night: Night) -> None:
    assert isinstance(killed_night.ran, Ran)
    assert killed_night.ran.code == 0, killed_night.ran.text[-1500:]


def test_nothing_is_lost(calm_night: Night, killed_night: Night) -> None:
    calm, killed = source(calm_night.home), source(killed_night.home)
    for night in (calm, killed):
        del night["sentiment_totals"]  # keyed by the days asked for, which may differ
    assert sum(map(len, calm.values())) > 5000
    assert differing(calm, killed) == set()


def test_little_is_asked_again(calm_night: Night, killed_night: Night) -> None:
    """What was under way, and what came in the last second before each kill."""
    assert len(killed_night.asked) <= len(calm_night.asked) * 1.05 + KILLS * (IN_FLIGHT + RATE)


def test_the_archive_alone_makes_the_warehouse_anew(killed_night: Night) -> None:
    schemas = {"source": (), "sync": ("applied_at",)}
    before = {schema: rows(killed_night.home, schema, *left_out) for schema, left_out in schemas.items()}
    assert finish(start(killed_night.home, None, "rebuild")).code == 0
    for schema, left_out in schemas.items():
        after = rows(killed_night.home, schema, *left_out)
        differences = {
            table: set(map(str, before[schema][table])) ^ set(map(str, after[table]))
            for table in before[schema]
        }
        assert {table: some for table, some in differences.items() if some} == {}
        assert differing(before[schema], after) == set()


@pytest.mark.slow
def test_an_interrupt_while_models_are_built_publishes_nothing(killed: tuple[Night, Sandbox]) -> None:
    """What a building that was ended half-way leaves: `tests/warehouse/test_models.py`."""
    home = killed[0].home
    (home / "models").mkdir(exist_ok=True)
    endless = "select count(*) as n from range(100000000) a, range(100000000) b where a.range <> b.range * 2"
    (home / "models" / "endless.sql").write_text(endless)
    process = start(home, killed[1], "sync")
    assert process.stderr
    said = list(takewhile(lambda line: "loading" not in line, process.stderr))
    process.send_signal(signal.SIGINT)
    ran = finish(process)
    assert (ran.code, ran.out) == (exits.INTERRUPTED, ""), ran.text
    assert "Traceback" not in "".join(said) + ran.err
    assert "stopped; everything received so far is kept" in ran.err
    assert not published_path(home).exists()
