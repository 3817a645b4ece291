"""The rate limit that several machines share in Redis: the same rules as in a file, and a Redis that fails.
What is used of the limit is simulated in `test_redis_state`."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import redis

from marketing_api.errors import LimitNotShared
from marketing_api.pacing import RateReport, Schedule
from marketing_api.rate_limit import ALONE, HOLD, FileStore, RateLimiter, RedisStore
from marketing_api.sandbox.server import spawn
from tests.pipelines.sandboxes import Sandbox
from tests.services.conftest import Redis
from tests.waiting import HANGS_S, wait_until

#: Opens the state of one account anew, as another process does.
Opening = Callable[[], FileStore | RedisStore]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture(params=["file", "redis"])
def opening(request: pytest.FixtureRequest, path: Path) -> Opening:
    if request.param == "file":
        return lambda: FileStore(path)
    url = request.getfixturevalue("redis_server").url
    return lambda: RedisStore(url, path)


@pytest.fixture
def service() -> Iterator[str]:
    with spawn("--contacts", "10", "--rate-limit", "15") as url:
        yield url


def one_more(schedule: Schedule) -> float:
    schedule.limit += 1
    return schedule.limit


def limit_of(state: FileStore | RedisStore) -> float:
    return state.apply(lambda schedule: schedule.limit)


# ---- both stores


def test_another_opening_sees_a_change(opening: Opening) -> None:
    first, second = opening(), opening()
    assert (first.apply(one_more), second.apply(one_more), first.apply(one_more)) == (1, 2, 3)
    assert limit_of(opening()) == 3


def test_changes_of_several_threads_exclude_each_other(opening: Opening) -> None:
    def count() -> None:
        state = opening()
        for _ in range(100):
            state.apply(one_more)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert limit_of(opening()) == 400


def test_a_change_that_fails_changes_nothing(opening: Opening) -> None:
    state = opening()
    state.apply(one_more)

    def fail(schedule: Schedule) -> None:
        schedule.limit = 99.0
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        state.apply(fail)
    assert limit_of(state) == limit_of(opening()) == 1


def test_all_openings_have_one_clock(opening: Opening) -> None:
    first, second = opening(), opening()
    assert first.now() <= second.now() <= first.now()


def test_slots_of_two_limiters_are_those_of_one_limit(opening: Opening) -> None:
    one, other = RateLimiter(opening()), RateLimiter(opening())
    slots = sorted(limiter.wait_for_slot().at for _ in range(5) for limiter in (one, other))
    gaps = [after - before for before, after in pairwise(slots)]
    assert min(gaps) > 0.07
    one.learn(one.wait_for_slot(), RateReport(limit=40, requests=1, remaining=39), refused=False)
    assert other.limit == 40


# ---- what is stored in Redis


def test_what_is_stored_names_neither_key_nor_address_and_expires(redis_server: Redis, path: Path) -> None:
    RedisStore(redis_server.url, path).apply(one_more)
    client = redis.Redis.from_url(redis_server.url)
    (key,) = client.keys()
    assert key == f"marketing-sync:rate-limit:{path.name}".encode()
    assert 3600 < client.ttl(key) <= 4 * 3600


@pytest.mark.parametrize("foreign", [b"", b"garbage", b"\xff\x00" * 512, b" " * 5000, b'{"limit":7}'])
def test_a_foreign_value_counts_as_empty(redis_server: Redis, path: Path, foreign: bytes) -> None:
    state = RedisStore(redis_server.url, path)
    redis.Redis.from_url(redis_server.url).set(f"marketing-sync:rate-limit:{path.name}", foreign)
    assert (state.apply(one_more), RedisStore(redis_server.url, path).apply(one_more)) == (1, 2)


def test_a_key_of_another_kind_counts_as_empty(redis_server: Redis, path: Path) -> None:
    redis.Redis.from_url(redis_server.url).rpush(f"marketing-sync:rate-limit:{path.name}", "a", "b")
    state = RedisStore(redis_server.url, path)
    assert (state.apply(one_more), state.apply(one_more)) == (1, 2)


def test_a_value_that_is_lost_is_begun_anew_with_what_is_learnt_and_a_hold(
    redis_server: Redis, path: Path
) -> None:
    state = RedisStore(redis_server.url, path)
    limiter = RateLimiter(state)
    limiter.learn(limiter.wait_for_slot(), RateReport(limit=40, requests=1, remaining=39), refused=False)
    redis.Redis.from_url(redis_server.url).flushall()
    earliest = state.now() + HOLD - 0.5
    slot = state.apply(lambda schedule: schedule.reserve_slot(state.now()))
    assert earliest < slot.at <= state.now() + HOLD
    assert limiter.limit == 40


_FORKING = """
import os, sys
from pathlib import Path
from marketing_api.rate_limit import RedisStore
state = RedisStore(sys.argv[1], Path(sys.argv[2]))
def one_more(schedule):
    schedule.limit += 1
child = os.fork()
for _ in range(300):
    state.apply(one_more)
if child:
    sys.exit(os.waitpid(child, 0)[1])
"""


def test_a_forked_child_has_a_connection_of_its_own(redis_server: Redis, path: Path) -> None:
    subprocess.run([sys.executable, "-c", _FORKING, redis_server.url, str(path)], check=True, timeout=HANGS_S)
    assert limit_of(RedisStore(redis_server.url, path)) == 600


def test_states_of_all_accounts_share_one_connection(redis_server: Redis, tmp_path: Path) -> None:
    states = [RedisStore(redis_server.url, tmp_path / str(number)) for number in range(20)]
    threads = [threading.Thread(target=state.apply, args=(one_more,)) for state in states]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(redis.Redis.from_url(redis_server.url).client_list()) == 2  # the other one is this test's


# ---- a Redis that goes, and comes back


def test_without_redis_the_processes_of_a_machine_share_a_quarter(
    redis_server: Redis, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limiters = [RateLimiter(RedisStore(redis_server.url, path)) for _ in range(2)]
    for limiter in limiters:
        limiter.learn(limiter.wait_for_slot(), RateReport(limit=40, requests=1, remaining=39), refused=False)
    redis_server.kill()
    assert sum(limiter.rate for limiter in limiters) / 2 == pytest.approx(40 * ALONE, rel=0.07)
    slots = sorted(limiter.wait_for_slot().at for _ in range(5) for limiter in limiters)[2:]  # each held one
    assert 7 / (slots[-1] - slots[0]) <= 40 * ALONE * 1.1
    redis_server.start()
    wait_until(lambda: limiters[0].rate > 30)
    where = f"Redis at 127.0.0.1:{redis_server.port}"
    said = [record.message.partition(",")[0].partition(" is back")[0] for record in caplog.records]
    assert said == [where, where]


def test_a_redis_that_does_not_respond_costs_one_time_out(redis_server: Redis, path: Path) -> None:
    state = RedisStore(redis_server.url, path)
    state.apply(one_more)
    redis_server.stop()
    began = time.monotonic()
    for _ in range(100):
        state.apply(lambda schedule: schedule.reported)
    assert 0.4 < time.monotonic() - began < 20, "one time-out for each would take 50 s"
    redis_server.go_on()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("maxmemory", "1", id="out of memory"),
        pytest.param("min-replicas-to-write", "1", id="takes no writes"),
    ],
)
def test_a_redis_that_takes_no_writes_counts_as_gone(
    redis_server: Redis, path: Path, caplog: pytest.LogCaptureFixture, name: str, value: str
) -> None:
    client = redis.Redis.from_url(redis_server.url)
    limiter = RateLimiter(RedisStore(redis_server.url, path))
    limiter.learn(limiter.wait_for_slot(), RateReport(limit=40, requests=1, remaining=39), refused=False)
    client.config_set(name, value)
    for _ in range(3):
        limiter.wait_for_slot()
    assert limiter.rate <= 40 * ALONE
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_after_its_clock_was_set_nobody_waits_for_the_old_time(redis_server: Redis, path: Path) -> None:
    state = RedisStore(redis_server.url, path)
    limiter = RateLimiter(state)
    limiter.learn(limiter.wait_for_slot(), RateReport(limit=40, requests=1, remaining=39), refused=False)
    clock = state._server.clock
    clock._least, clock._most = clock._least + 3600, clock._most + 3600  # so the next reply is of an hour ago
    state.apply(lambda schedule: setattr(schedule, "last_at", schedule.last_at + 3600))
    began = time.monotonic()
    limiter.wait_for_slot()
    limiter.wait_for_slot()
    assert time.monotonic() - began < 1800
    assert clock.times_set == 1


# ---- a Redis that cannot be used from the start


def run(words: list[str], service: str, url: str, folder: Path, python_path: str = "") -> tuple[int, str]:
    """Exit code, and what was printed."""
    settings = {
        "MARKETING_SANDBOX_URL": service,
        "MARKETING_BUDGET_URL": url,
        "MARKETING_HOME": str(folder / "home"),
    }
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MARKETING_")
    } | settings
    environment["PYTHONPATH"] = os.pathsep.join([python_path, str(Path(__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, "-m", "marketing_sync", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def missing_package(tmp_path: Path) -> str:
    folder = tmp_path / "without"
    folder.mkdir()
    (folder / "redis.py").write_text("raise ModuleNotFoundError(\"No module named 'redis'\", name='redis')")
    return str(folder)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        pytest.param(
            "http://:s3cret@host:1",
            "the address of a Redis server is needed, like redis://HOST:6379/0",
            id="no address",
        ),
        pytest.param("redis://:s3cret/x@host:s3cret", "not an address like redis://", id="not to be read"),
        pytest.param(
            "redis://127.0.0.1:1?s3cret=1",
            "the Redis at 127.0.0.1:1 cannot be used",
            id="an option that there is not",
        ),
        pytest.param(
            "redis://:s3cret@127.0.0.1:1/0",
            "the Redis at 127.0.0.1:1 cannot be used (Error 111",
            id="refused",
        ),
    ],
)
def test_a_wrong_address_is_a_sentence_before_any_request(
    service: str, tmp_path: Path, url: str, sentence: str
) -> None:
    code, text = run(["call", "app/me"], service, url, tmp_path)
    print(text)
    assert (code, text.count("\n")) == (2, 1)
    assert "MARKETING_BUDGET_URL" in text
    assert sentence in text
    assert "s3cret" not in text or "?s3cret" in url  # the name of an option is none
    assert Sandbox(service).count == 0


def test_a_redis_that_does_not_respond_is_a_sentence_after_the_time_out(
    redis_server: Redis, service: str, tmp_path: Path
) -> None:
    redis_server.stop()
    code, text = run(["call", "app/me"], service, redis_server.url, tmp_path)
    redis_server.go_on()
    print(text)
    assert (code, text.count("\n")) == (2, 1)
    assert f"the Redis at 127.0.0.1:{redis_server.port} cannot be used (Timeout reading from" in text
    assert Sandbox(service).count == 0


def test_a_server_that_is_no_redis_is_a_sentence(service: str, tmp_path: Path) -> None:
    code, text = run(
        ["call", "app/me"], service, service.removesuffix("1").replace("http", "redis"), tmp_path
    )
    print(text)
    assert (code, text.count("\n")) == (2, 1)


@pytest.mark.parametrize("words", [["sync", "--only", "lists"], ["sync", "--dry-run"], ["call", "app/me"]])
def test_a_wrong_password_ends_every_command_before_any_request(
    redis_server: Redis, service: str, tmp_path: Path, words: list[str]
) -> None:
    redis.Redis.from_url(redis_server.url).config_set("requirepass", "right")
    if words == ["sync", "--dry-run"]:
        assert (
            run(
                ["sync", "--only", "lists", "--quiet"],
                service,
                f"redis://:right@127.0.0.1:{redis_server.port}/0",
                tmp_path,
            )[0]
            == 0
        )
    before = Sandbox(service).count
    code, text = run(words, service, f"redis://:s3cret@127.0.0.1:{redis_server.port}/0", tmp_path)
    print(text)
    assert code == 2
    assert f"MARKETING_BUDGET_URL: the Redis at 127.0.0.1:{redis_server.port} cannot be used" in text
    assert "s3cret" not in text
    assert "Traceback" not in text
    assert Sandbox(service).count == before


def test_a_push_ends_before_any_request(redis_server: Redis, service: str, tmp_path: Path) -> None:
    assert (
        run(
            ["sync", "--only", "business", "lists", "contacts", "--quiet"],
            service,
            redis_server.url,
            tmp_path,
        )[0]
        == 0
    )
    before = Sandbox(service).count
    (tmp_path / "rows.csv").write_text("email,list_id\nann@example.com,1801\n")
    words = ["push", "contacts", "--from", "rows.csv", "--apply"]
    code, text = run(words, service, "redis://:s3cret@127.0.0.1:1/0", tmp_path)
    print(text)
    assert code == 2
    assert "MARKETING_BUDGET_URL: the Redis at 127.0.0.1:1 cannot be used" in text
    assert Sandbox(service).count == before


def test_a_missing_package_is_named(service: str, tmp_path: Path, missing_package: str) -> None:
    code, text = run(["call", "app/me"], service, "redis://127.0.0.1:6379/0", tmp_path, missing_package)
    print(text)
    assert (code, text) == (
        2,
        "marketing-sync: error: MARKETING_BUDGET_URL needs a package: pip install 'marketing-sync[redis]'\n",
    )


def test_a_redis_that_is_gone_ends_what_begins_then(redis_server: Redis, path: Path) -> None:
    RedisStore(redis_server.url, path)
    redis_server.kill()
    with pytest.raises(LimitNotShared, match=f"127.0.0.1:{redis_server.port} cannot be used"):
        RedisStore(redis_server.url, path)
