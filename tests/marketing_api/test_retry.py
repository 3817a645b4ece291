"""A service that is down for a while is waited for; one failing question, or one never there, is not."""

from types import SimpleNamespace

import pytest

from marketing_api import retry
from marketing_api.errors import BrokenResponse, GivenUp, RateLimited, Transient, Unreachable
from marketing_api.operations import account, lists
from tests.marketing_api.conftest import MakeBench
from tests.marketing_api.scripted_server import Asked, Reply, ok

DOWN = Reply(503, b"<html>back soon</html>")
LIST = lists.GETLIST.bind(id=1)


def test_a_service_that_is_down_is_waited_for(bench: MakeBench) -> None:
    down = retry.TRIES + 4  # more than the tries of a call
    at = bench(ok(), *[DOWN] * down, ok({"list": {"id": "1"}}), first_pause=0.002)
    at.client.fetch(account.ME.bind())
    assert at.client.fetch(LIST)
    assert len(at.asked) > down


def test_an_operation_that_is_broken_for_itself_is_not_waited_for(bench: MakeBench) -> None:
    at = bench(lambda asked: ok() if asked.operation == "app/me" else DOWN, first_pause=0.002)
    at.client.fetch(account.ME.bind())
    with pytest.raises(BrokenResponse):
        at.client.fetch(LIST)
    assert [asked.operation for asked in at.asked].count("app/me") == 2
    assert len(at.asked) == 8


def test_a_service_that_never_answered_is_not_waited_for(bench: MakeBench) -> None:
    at = bench(DOWN)
    with pytest.raises(Transient):
        at.client.fetch(account.ME.bind())
    assert len(at.asked) == 6


def test_nobody_waits_for_ever(bench: MakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    at = bench(ok(), DOWN, first_pause=0.002)
    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=lambda: 15.0 * len(at.asked)))
    at.client.fetch(account.ME.bind())
    with pytest.raises(BrokenResponse):
        at.client.fetch(LIST)
    before = len(at.asked)
    with pytest.raises(BrokenResponse):
        at.client.fetch(LIST)
    assert len(at.asked) == before + 1  # it has been waited for enough


def test_after_a_long_silence_nothing_more_is_sent(bench: MakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "SILENCE", -1.0)  # over with the first failure
    at = bench(DOWN, first_pause=0.002)
    for _ in range(2):
        with pytest.raises(GivenUp, match="no complete response for 10 minutes") as given_up:
            at.client.fetch(LIST)
        assert not given_up.value.was_sent
    assert len(at.asked) == 1


def test_time_without_requests_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=lambda: now))

    def is_over_after(*failures: float) -> bool:
        nonlocal now
        silence = retry.Silence("main")
        for failed_at in failures:
            now = failed_at
            silence.begin_request()
            silence.end_request(BrokenResponse("half"))
        return silence.is_over

    assert is_over_after(*range(0, 720, 60))
    assert not is_over_after(0, 720)


@pytest.mark.parametrize(
    ("problems", "limit"),
    [
        ([Unreachable("gone", was_sent=False)], f"after {retry.TRIES} tries"),
        ([None, BrokenResponse("half")], f"waited for {retry.LONGEST_OUTAGE / 60:g} minutes"),
        (
            [None, RateLimited("too fast", retry_after=1)],
            f"after {retry.REFUSALS} refusals or {retry.SILENCE / 60:g} minutes",
        ),
    ],
    ids=["never answered", "down", "refused"],
)
def test_the_limit_that_is_logged_is_the_one_that_is_met(
    problems: list[Exception | None],
    limit: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(retry, "FIRST_LOG_S", 0.0)
    silence = retry.Silence("main")
    for problem in problems:
        silence.begin_request()
        silence.end_request(problem)
    silence.log_when_due()
    assert limit in caplog.messages[-1]


def test_stopping_ends_the_waiting(bench: MakeBench) -> None:
    def response(asked: Asked) -> Reply:
        if len(at.asked) == 10:
            at.client.stop()
        return DOWN

    at = bench(ok(), response, first_pause=0.002)
    at.client.fetch(account.ME.bind())
    with pytest.raises(Exception, match="stopped"):
        at.client.fetch(LIST)
