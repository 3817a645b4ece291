"""One question at a time: what is sent, retried, recorded and raised. Over real sockets."""

import dataclasses
import gzip
import json
import threading
import time
from pathlib import Path

import pytest

from marketing_api.client import Client, RequestBudget, Stopped
from marketing_api.errors import (
    AuthenticationFailed,
    BrokenResponse,
    BudgetSpent,
    InvalidCall,
    MarketingApiError,
    NotAvailable,
    RateLimited,
    Refused,
    TooLarge,
    Transient,
    Unreachable,
)
from marketing_api.exchange import Outcome
from marketing_api.operation import Call
from marketing_api.operations import account, contacts
from marketing_api.rate_limit import RateLimiter
from marketing_api.records.contacts import EDITCONTACT
from tests.marketing_api.conftest import KEY, MakeBench
from tests.marketing_api.scripted_server import Reply, ScriptedServer, ok, over_limit, refusal
from tests.waiting import HANGS_S

ME = account.ME.bind()
HTML = Reply(502, b"<html><body>Bad Gateway</body></html>", {"Content-Type": "text/html"})
#: A port on which nobody listens.
NOBODY = "http://127.0.0.1:9/1"


def impatient(call: Call, timeout: float = 0.15) -> Call:
    """The same question to an operation that is given up sooner."""
    return Call(dataclasses.replace(call.operation, timeout=timeout), call.params)


def test_an_answer_is_returned_and_recorded(bench: MakeBench) -> None:
    at = bench()
    response = at.client.fetch(ME)
    assert json.loads(bytes(response.body))["response"]["data"]["business"]["businessName"] == "Harbor"
    (exchange,) = at.recorded
    assert (exchange.outcome, exchange.http_status, exchange.error) == (Outcome.OK, 200, None)
    assert (exchange.request_id, exchange.body) == (response.request_id, response.body)
    assert exchange.account == response.account == "main"


def test_the_key_is_a_query_parameter_and_nowhere_else(bench: MakeBench) -> None:
    at = bench()
    at.client.fetch(ME)
    (asked,) = at.asked
    assert asked.query == {"key": KEY}
    assert asked.form == {}
    assert KEY not in str(asked.headers)


def test_parameters_travel_as_declared(bench: MakeBench) -> None:
    at = bench(ok({"contacts": {"count": 0, "items": []}}))
    at.client.fetch(contacts.GETCONTACTS.bind(listid=12, limit=5))
    (asked,) = at.asked
    assert (asked.method, asked.operation) == ("GET", "emailmarketing/getcontacts")
    assert asked.query == {"listid": "12", "limit": "5", "key": KEY}


def test_an_answer_over_the_limit_of_its_size_is_not_asked_for_again(bench: MakeBench) -> None:
    at = bench(Reply(200, gzip.compress(b" " * 40_000_000), {"Content-Encoding": "gzip"}))
    with pytest.raises(TooLarge, match="unpacks to more than 200 times its size"):
        at.client.fetch(ME)
    (exchange,) = at.recorded
    assert exchange.outcome is Outcome.BROKEN


def test_a_connection_is_used_again(bench: MakeBench) -> None:
    at = bench()
    for _ in range(5):
        at.client.fetch(ME)
    assert len({asked.port for asked in at.asked}) == 1


def test_an_account_without_a_key_sends_nothing(bench: MakeBench, tmp_path: Path) -> None:
    at, error = bench(), AuthenticationFailed("no key")
    connection = dataclasses.replace(at.client.connection, key_error=error)
    limiter = RateLimiter(tmp_path / "pace")
    with Client(connection, limiter, record=at.recorded.append, spool=tmp_path) as client:
        for send in (client.fetch, lambda call: next(client.fetch_many([call]))):
            with pytest.raises(AuthenticationFailed, match="no key"):
                send(ME)
    assert at.asked == at.recorded == []


@pytest.mark.parametrize(
    ("reply", "outcome", "status"),
    [
        pytest.param(Reply(500, b"oops"), Outcome.BROKEN, 500, id="500"),
        pytest.param(HTML, Outcome.BROKEN, 502, id="502 with HTML"),
        pytest.param(dataclasses.replace(HTML, status=200), Outcome.BROKEN, 200, id="200 with HTML"),
        pytest.param(Reply(200, ok().body[:-20]), Outcome.BROKEN, 200, id="cut JSON"),
        pytest.param(dataclasses.replace(ok(), mishap="cut"), Outcome.BROKEN, 200, id="cut body"),
        pytest.param(Reply(200, b""), Outcome.BROKEN, 200, id="no body"),
        pytest.param(ok({}), Outcome.BROKEN, 200, id="no payload"),
        pytest.param(
            dataclasses.replace(ok(), headers={"Content-Encoding": "gzip"}), Outcome.BROKEN, 200, id="no gzip"
        ),
        pytest.param(Reply(mishap="reset"), Outcome.UNREACHABLE, None, id="reset"),
        pytest.param(Reply(mishap="stall"), Outcome.UNREACHABLE, None, id="stall"),
        pytest.param(over_limit(), Outcome.RATE_LIMITED, 429, id="429"),
    ],
)
@pytest.mark.slow
def test_a_read_is_tried_again_after(
    bench: MakeBench, reply: Reply, outcome: Outcome, status: int | None
) -> None:
    at = bench(reply, reply, ok())
    at.client.fetch(impatient(ME) if reply.mishap == "stall" else ME)
    first, second, *more = [exchange.outcome for exchange in at.recorded]  # a busy server may stall, too
    assert (first, second, {*more[:-1]} - {outcome}, more[-1]) == (outcome, outcome, set(), Outcome.OK)
    assert at.recorded[0].http_status == status
    assert at.recorded[0].error


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        pytest.param(refusal(1003), Refused, id="refused"),
        pytest.param(refusal(1003, status=400), Refused, id="refused with 400"),
        pytest.param(refusal(1002), NotAvailable, id="not available"),
        pytest.param(refusal(1000, status=401), AuthenticationFailed, id="bad key"),
        pytest.param(Reply(401, b"who are you"), AuthenticationFailed, id="401"),
    ],
)
def test_a_refusal_is_not_tried_again(bench: MakeBench, reply: Reply, error: type[MarketingApiError]) -> None:
    at = bench(reply)
    with pytest.raises(error):
        at.client.fetch(contacts.GETCONTACT.bind(id=7))
    assert len(at.asked) == 1
    assert at.recorded[0].outcome is Outcome.REFUSED


def test_what_never_heals_is_given_up_after_six_tries(bench: MakeBench) -> None:
    at = bench(Reply(500, b""))
    with pytest.raises(BrokenResponse):
        at.client.fetch(ME)
    assert len(at.asked) == len(at.recorded) == 6


def test_nobody_listening_is_said_so(bench: MakeBench) -> None:
    at = bench(url=NOBODY)
    with pytest.raises(Unreachable, match="refused") as caught:
        at.client.fetch(ME)
    assert not caught.value.was_sent
    assert len(at.recorded) == 6


def test_a_refused_key_stops_every_later_question_unasked(bench: MakeBench) -> None:
    at = bench(refusal(1002))
    for _ in range(3):
        with pytest.raises(AuthenticationFailed):
            at.client.fetch(ME)
    assert len(at.asked) == 1


SUSPICIOUS = pytest.mark.parametrize(
    "reply",
    [
        refusal(1000, status=401, text="Authentication failed"),
        refusal(1000),
        Reply(401, b"who are you"),
        refusal(1002),
    ],
    ids=["401 and 1000", "1000", "401", "1002"],
)


@SUSPICIOUS
def test_what_one_operation_refuses_stops_no_other_while_the_key_is_accepted(
    bench: MakeBench, reply: Reply
) -> None:
    """observation 41. Whether it is, is asked once an operation."""
    at = bench(lambda asked: ok() if asked.operation == "app/me" else reply)
    at.client.fetch(ME)
    for _ in range(3):
        with pytest.raises(NotAvailable, match="not available to this account") as caught:
            at.client.fetch(contacts.GETCONTACT.bind(id=7))
        assert "key is missing" not in str(caught.value)
        assert "Authentication" not in str(caught.value)
    with pytest.raises(NotAvailable):
        at.client.write(EDITCONTACT.bind(id=7))
    assert at.client.fetch(ME)
    assert [asked.operation for asked in at.asked].count("app/me") == 1 + 2 + 1


@SUSPICIOUS
def test_a_key_that_is_revoked_in_the_middle_stops_everything(bench: MakeBench, reply: Reply) -> None:
    at = bench(ok(), reply)
    at.client.fetch(ME)
    for _ in range(3):
        with pytest.raises(AuthenticationFailed, match="key"):
            at.client.write(EDITCONTACT.bind(id=7))
    assert [asked.operation for asked in at.asked] == ["app/me", "emailmarketing/editcontact", "app/me"]


def test_redirects_are_not_followed(bench: MakeBench) -> None:
    with ScriptedServer(lambda asked: ok()) as elsewhere:
        at = bench(Reply(302, b"", {"Location": f"{elsewhere.url}/app/me.json"}))
        with pytest.raises(MarketingApiError):
            at.client.fetch(ME)
        assert not elsewhere.asked


def test_a_proxy_is_used_as_the_environment_says_but_not_for_this_machine(
    bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer(lambda asked: ok()) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/1"))
        near = bench()
        near.client.fetch(ME)
        assert (len(near.asked), len(proxy.asked)) == (1, 0)
        bench(url="http://service.example/1").client.fetch(ME)
        assert proxy.asked[0].query == {"key": KEY}


def test_compressed_answers_are_understood(bench: MakeBench) -> None:
    whole = ok()
    at = bench(Reply(200, gzip.compress(whole.body), {"Content-Encoding": "gzip"}))
    assert at.client.fetch(ME).body == whole.body
    assert at.asked[0].headers["Accept-Encoding"] == "gzip, deflate"


def test_a_large_body_goes_to_a_file_of_its_owner_without_the_key(bench: MakeBench, tmp_path: Path) -> None:
    notes = [
        {"id": str(number), "note": "x" * 900, "link": f"https://host/?key={KEY}"} for number in range(6000)
    ]
    at = bench(ok({"contacts": {"count": 6000, "items": notes}}))
    response = at.client.fetch(contacts.GETCONTACTS.bind(listid=12))
    assert isinstance(response.body, Path)
    assert response.body.parent == tmp_path / "spool"
    assert response.body.stat().st_mode & 0o077 == 0
    items = json.loads(response.body.read_bytes())["response"]["data"]["contacts"]["items"]
    assert [each["link"] for each in items] == ["https://host/?key=***"] * 6000
    assert at.recorded[0].body == response.body


def test_the_budget_is_spent_before_anything_is_sent(bench: MakeBench) -> None:
    budget = RequestBudget(2)
    at = bench(Reply(500, b""), budget=budget)
    with pytest.raises(BudgetSpent):
        at.client.fetch(ME)
    assert len(at.asked) == 2
    assert budget.left == 0


def test_a_write_cannot_be_asked(bench: MakeBench) -> None:
    at = bench()
    with pytest.raises(InvalidCall, match="write"):
        at.client.fetch(contacts.DELETECONTACT.bind(listid=1, id=7))
    assert not at.asked


def test_a_refused_request_is_sent_again_after_the_reset(bench: MakeBench) -> None:
    at = bench(lambda asked: over_limit(0.3), ok())
    began = time.monotonic()
    at.client.fetch(ME)
    assert time.monotonic() - began > 0.25


def test_whims_of_the_limit_do_not_use_up_tries(bench: MakeBench) -> None:
    whim = refusal(429, status=429, reached=1, after=0.01)
    at = bench(*[whim] * 8, ok())
    at.client.fetch(ME)
    assert len(at.asked) == 9


def test_a_limit_that_never_ends_is_given_up(bench: MakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marketing_api.retry.REFUSALS", 4)
    at = bench(refusal(429, status=429, reached=1, after=0.01))
    with pytest.raises(RateLimited):
        at.client.fetch(ME)
    assert len(at.asked) == 4


def test_stop_wakes_those_who_wait(bench: MakeBench) -> None:
    at = bench(refusal(429, status=429, reached=1, after=30))
    problems: list[Exception] = []

    def fetch() -> None:
        try:
            at.client.fetch(ME)
        except Stopped as problem:
            problems.append(problem)

    threads = [threading.Thread(target=fetch, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    while not at.recorded:
        time.sleep(0.01)
    at.client.stop()
    for thread in threads:
        thread.join(HANGS_S)
    assert len(problems) == 4


def test_a_record_that_cannot_be_kept_is_no_answer(bench: MakeBench) -> None:
    def full(exchange: object) -> None:
        raise OSError("no space left")

    at = bench(record=full)
    with pytest.raises(OSError, match="no space left"):
        at.client.fetch(ME)


def test_statistics_tell_what_was_sent(bench: MakeBench) -> None:
    at = bench(Reply(500, b""), ok())
    at.client.fetch(ME)
    assert at.client.statistics.requests == 2
    assert at.client.statistics.outcomes == {Outcome.BROKEN: 1, Outcome.OK: 1}


def test_times_are_recorded(bench: MakeBench) -> None:
    def slow(asked: object) -> Reply:
        time.sleep(0.1)
        return ok(limit=5)

    at = bench(slow)
    at.client.fetch(ME)
    at.client.fetch(ME)
    assert 100 <= at.recorded[0].took_ms < 60_000
    assert at.recorded[1].requested_at > at.recorded[0].requested_at
    assert at.recorded[1].waited_ms < 60_000


def test_transient_errors_are_one_family() -> None:
    assert all(issubclass(error, Transient) for error in (RateLimited, Unreachable, BrokenResponse))
