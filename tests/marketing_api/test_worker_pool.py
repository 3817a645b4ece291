"""Many questions at once: order, laziness, fairness, and how they end."""

import functools
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from marketing_api.client import Failure, RequestBudget, Stopped
from marketing_api.errors import AuthenticationFailed, BrokenResponse, BudgetSpent, NotAvailable, Refused
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import account, contacts, lists
from marketing_api.worker_pool import Lane, WorkerPool
from tests.marketing_api.conftest import MakeBench
from tests.marketing_api.scripted_server import Asked, Reply, ScriptedServer, ok, refusal
from tests.waiting import HANGS_S, wait_until

CONTACT = {"contact": {"id": "1", "email": "ann@example.com"}}
ME = {"business": {"businessName": "Harbor"}}


def contact(number: int) -> Call:
    return contacts.GETCONTACT.bind(id=number)


def numbers(results: list[Response | Failure]) -> list[int]:
    return sorted(int(result.call.params["id"]) for result in results)


def test_every_question_gets_its_answer(bench: MakeBench) -> None:
    at = bench(ok(CONTACT))
    results = list(at.client.fetch_many(map(contact, range(1, 101))))
    assert numbers(results) == list(range(1, 101))
    assert all(isinstance(result, Response) for result in results)
    assert len(at.asked) == len(at.recorded) == 100


def test_no_more_than_the_pool_asks_at_once(bench: MakeBench) -> None:
    now, most = [0], [0]
    lock, all_five = threading.Lock(), threading.Barrier(5)

    def response(asked: Asked) -> Reply:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        all_five.wait(HANGS_S)
        with lock:
            now[0] -= 1
        return ok(CONTACT)

    at = bench(ok(CONTACT), response, workers=5)
    at.client.fetch(contact(1))
    list(at.client.fetch_many(map(contact, range(1, 61))))
    assert most[0] == 5


def test_answers_come_as_they_arrive(bench: MakeBench) -> None:
    others_came = threading.Event()

    def response(asked: Asked) -> Reply:
        assert asked.query["id"] != "1" or others_came.wait(HANGS_S)
        return ok(CONTACT)

    results = []
    for result in bench(response).client.fetch_many(map(contact, range(1, 11))):
        results.append(result)
        if len(results) == 9:
            others_came.set()
    assert results[-1].call.params["id"] == "1"


def test_questions_are_pulled_as_needed(bench: MakeBench) -> None:
    pulled: list[int] = []

    def endless() -> Iterator[Call]:
        for number in itertools.count(1):
            pulled.append(number)
            yield contact(number)

    at = bench(ok(CONTACT), workers=4)
    responses = at.client.fetch_many(endless())
    for _ in range(20):
        next(responses)
    assert len(pulled) <= 20 + 2 * 4 + 1
    responses.close()  # type: ignore[attr-defined]


def test_who_leaves_early_has_nothing_more_asked(bench: MakeBench) -> None:
    may_answer, pulled = threading.Event(), list[int]()

    def response(asked: Asked) -> Reply:
        is_first = asked.query["id"] == "1"  # answered when there is work for all
        wait_until(lambda: len(pulled) > 4 if is_first else may_answer.is_set())
        return ok(CONTACT)

    at = bench(response, workers=4)
    responses = at.client.fetch_many(pulled.append(number) or contact(number) for number in range(1, 1000))
    next(responses)
    wait_until(lambda: len(at.asked) == 1 + 4)  # every worker has one under way, and more are queued
    responses.close()  # type: ignore[attr-defined]
    may_answer.set()
    assert len(list(at.client.fetch_many(map(contact, range(1001, 1011))))) == 10
    assert len(at.asked) == 1 + 4 + 10


def test_what_is_there_already_is_not_asked(bench: MakeBench) -> None:
    at = bench(ok(CONTACT))
    known = at.client.fetch(contact(3))
    results = list(
        at.client.fetch_many(
            map(contact, range(1, 6)), known=lambda call: known if call.params["id"] == "3" else None
        )
    )
    assert numbers(results) == [1, 2, 3, 4, 5]
    assert len(at.asked) == 5


def test_a_refused_question_fails_alone(bench: MakeBench) -> None:
    at = bench(lambda asked: refusal(1003) if asked.query["id"] == "3" else ok(CONTACT))
    results = list(at.client.fetch_many(map(contact, range(1, 31))))
    (failure,) = [result for result in results if isinstance(result, Failure)]
    assert failure.call.params["id"] == "3"
    assert isinstance(failure.error, Refused)
    assert len(at.asked) == 30


def by_operation(broken: Reply) -> Callable[[Asked], Reply]:
    """One operation is broken, the others answer."""
    responses = {"app/me": ok(), "emailmarketing/getcontact": broken}
    return lambda asked: responses.get(asked.operation, ok({"list": {"id": "1", "name": "News"}}))


def mixed(count: int) -> Iterator[Call]:
    for number in range(1, count + 1):
        yield contact(number)
        yield lists.GETLIST.bind(id=number)


@pytest.mark.parametrize("code", [1000, 1002])
def test_an_operation_that_is_not_available_is_not_asked_further(bench: MakeBench, code: int) -> None:
    at = bench(by_operation(refusal(code)), workers=4)
    at.client.fetch(account.ME.bind())
    results = list(at.client.fetch_many(mixed(200)))
    failures = [result for result in results if isinstance(result, Failure)]
    assert len(results) == 400
    assert len(failures) == 200
    assert all(isinstance(failure.error, NotAvailable) for failure in failures)
    assert sum(asked.operation.endswith("getcontact") for asked in at.asked) <= 8


def test_an_operation_that_keeps_failing_costs_that_operation_only(bench: MakeBench) -> None:
    at = bench(by_operation(Reply(500, b"")), workers=4)
    results = list(at.client.fetch_many(mixed(200)))
    failures = [result for result in results if isinstance(result, Failure)]
    assert len(failures) == 200
    assert all(isinstance(failure.error, BrokenResponse) for failure in failures)
    assert sum(asked.operation.endswith("getcontact") for asked in at.asked) < 80
    assert sum(isinstance(result, Response) for result in results) == 200


@pytest.mark.slow
def test_failures_here_and_there_give_up_nothing(bench: MakeBench) -> None:
    at = bench(
        lambda asked: Reply(500, b"") if int(asked.query.get("id", "1")) % 4 == 0 else ok(CONTACT | ME),
        workers=2,
    )
    results = list(at.client.fetch_many(map(contact, range(1, 61))))
    assert sum(isinstance(result, Failure) for result in results) == 15
    assert sum(isinstance(result, Response) for result in results) == 45


def test_a_refused_key_ends_everything(bench: MakeBench) -> None:
    at = bench(*[ok(CONTACT)] * 10, refusal(1000, status=401), workers=4)
    with pytest.raises(AuthenticationFailed):
        list(at.client.fetch_many(map(contact, range(1, 1000))))
    assert len(at.asked) < 30
    with pytest.raises(AuthenticationFailed):
        next(at.client.fetch_many([contact(1)]))


def test_the_budget_ends_the_questions_after_the_last_answer_that_was_paid_for(bench: MakeBench) -> None:
    budget = RequestBudget(25)
    at = bench(ok(CONTACT), workers=4, budget=budget)
    results: list[Response | Failure] = []
    with pytest.raises(BudgetSpent):
        results.extend(at.client.fetch_many(map(contact, range(1, 1000))))  # keeps what came before the error
    assert len(results) == len(at.asked) == 25


def test_a_budget_is_shared(bench: MakeBench) -> None:
    budget = RequestBudget(10)
    one, other = bench(ok(CONTACT), budget=budget), bench(ok(CONTACT), budget=budget)
    list(one.client.fetch_many(map(contact, range(1, 7))))
    with pytest.raises(BudgetSpent):
        list(other.client.fetch_many(map(contact, range(1, 7))))
    assert len(other.asked) == 4


def test_several_callers_share_the_pool(bench: MakeBench) -> None:
    at = bench(ok(CONTACT), workers=2)
    is_enough = threading.Event()
    endless = itertools.takewhile(lambda _: not is_enough.is_set(), map(contact, itertools.count(1)))
    responses = at.client.fetch_many(endless)
    next(responses)
    other = threading.Thread(target=list, args=(responses,))
    other.start()
    try:
        assert len(list(at.client.fetch_many(map(contact, range(1, 11))))) == 10
        assert other.is_alive()
    finally:
        is_enough.set()
        other.join(HANGS_S)


def test_a_mistake_in_a_worker_reaches_the_caller(bench: MakeBench) -> None:
    def full(exchange: object) -> None:
        raise OSError("no space left")

    at = bench(ok(CONTACT), record=full)
    with pytest.raises(OSError, match="no space left"):
        list(at.client.fetch_many(map(contact, range(1, 100))))


def test_stop_ends_the_questions(bench: MakeBench) -> None:
    at = bench(ok(CONTACT, limit=20))
    responses = at.client.fetch_many(map(contact, itertools.count(1)))
    next(responses)
    threading.Timer(0.1, at.client.stop).start()
    with pytest.raises(Stopped):
        list(responses)


def test_closing_waits_for_what_is_under_way(bench: MakeBench) -> None:
    pulled = list[int]()
    at = bench(lambda asked: wait_until(lambda: at.client.is_stopped) or ok(CONTACT), workers=3)
    under_way = functools.partial(wait_until, lambda: len(at.asked) == 3 and len(pulled) > 4)  # more queued
    closing = threading.Thread(target=lambda: under_way() or at.client.close(HANGS_S))
    closing.start()
    with pytest.raises(Stopped):
        list(at.client.fetch_many(pulled.append(number) or contact(number) for number in range(1, 100)))
    closing.join()
    assert len(at.recorded) == len(at.asked)
    with pytest.raises(Stopped):
        next(at.client.fetch_many([contact(1)]))


_INTERRUPTED = """
import itertools, sys, tempfile
from pathlib import Path
from marketing_api.client import Client, Connection, Secret
from marketing_api.operations import account
from marketing_api.rate_limit import RateLimiter
folder = Path(tempfile.mkdtemp(dir=sys.argv[2]))
recorded = []
try:
    connection, limiter = Connection("main", sys.argv[1], Secret("key")), RateLimiter(folder / "pace")
    with Client(connection, limiter, record=recorded.append, spool=folder) as client:
        for answer in client.fetch_many(account.ME.bind() for _ in itertools.count()):
            print("answer", flush=True)
except KeyboardInterrupt:
    print("recorded", len(recorded), flush=True)
"""


def test_an_interrupt_ends_promptly_and_loses_nothing(tmp_path: object) -> None:
    with ScriptedServer(lambda asked: ok(limit=30)) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", _INTERRUPTED, server.url, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "answer\n"
        os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=HANGS_S)
        assert process.returncode == 0
        assert output.splitlines()[-1] == f"recorded {len(server.asked)}"


def test_many_of_no_questions_is_nothing(bench: MakeBench) -> None:
    at = bench(ok(CONTACT))
    assert list(at.client.fetch_many([])) == []


def test_account_questions_may_be_mixed_in(bench: MakeBench) -> None:
    at = bench()
    assert len(list(at.client.fetch_many([account.ME.bind()]))) == 1


@pytest.mark.slow
def test_there_are_no_more_threads_than_requests_under_way_and_one_that_waits() -> None:
    """Of 32. A busy machine has more under way at times: the best of some attempts tells."""
    assert 1 <= min(started_for_fifty() for _ in range(5)) <= 20


def started_for_fifty() -> int:
    """How many threads a pool starts for fifty jobs that wait for their turns."""
    pool, done = WorkerPool(32), threading.Semaphore(0)

    def job(leave: Callable[[], None]) -> None:
        time.sleep(0.02)  # for its turn
        leave()
        done.release()  # the response came at once

    lane, before = Lane(), set(threading.enumerate())
    for _ in range(50):
        pool.put_job(lane, job)
    for _ in range(50):
        assert done.acquire(timeout=HANGS_S)
    started = set(threading.enumerate()) - before
    pool.close(1)
    return len(started)


def served(pool: WorkerPool, lanes: dict[str, Lane], count: int) -> list[str]:
    """The names of the lanes in the order in which their jobs began, all having been put before the first."""
    begun, is_blocked, may_begin, done = [], threading.Event(), threading.Event(), threading.Semaphore(0)

    def block(leave: Callable[[], None]) -> None:
        is_blocked.set()
        may_begin.wait()

    def job(name: str, leave: Callable[[], None]) -> None:
        begun.append(name)
        leave()
        done.release()

    pool.put_job(Lane(9), block)
    assert is_blocked.wait(HANGS_S)
    for _ in range(count):
        for name, lane in lanes.items():
            pool.put_job(lane, functools.partial(job, name))
    may_begin.set()
    for _ in range(count * len(lanes)):
        assert done.acquire(timeout=HANGS_S)
    pool.close(1)
    return begun


def test_the_most_urgent_lane_goes_first_and_equal_ones_in_turn() -> None:
    lanes = {"low": Lane(), "high": Lane(2), "other": Lane(2)}
    assert served(WorkerPool(1), lanes, 3) == ["high", "other"] * 3 + ["low"] * 3
