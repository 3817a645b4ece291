"""Writes are sent once, and the error says whether they can have taken effect."""

from __future__ import annotations

import dataclasses

import pytest

from marketing_api.errors import OutcomeUnknown, RateLimited, Refused, Unreachable
from marketing_api.exchange import Outcome
from marketing_api.operation import Question
from marketing_api.operations import contacts
from tests.marketing_api.conftest import KEY, MakeBench
from tests.marketing_api.scripted_server import Reply, ok, over_limit, refusal

TAG = contacts.ADDTAG.bind(email="ann@example.com", tagname="blue")
IMPATIENT = Question(dataclasses.replace(TAG.operation, timeout=0.15), TAG.params)
NOBODY = "http://127.0.0.1:9/1"


def test_a_write_is_posted_as_a_form_with_the_key_in_the_query(bench: MakeBench) -> None:
    at = bench(ok({"item": "done"}))
    at.client.write(TAG)
    (asked,) = at.asked
    assert asked.method == "POST"
    assert asked.query == {"key": KEY}
    assert asked.form == TAG.params
    assert at.recorded[0].outcome is Outcome.OK


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(500, b"oops"), id="500"),
        pytest.param(Reply(502, b"<html>"), id="HTML"),
        pytest.param(Reply(200, ok({"item": "done"}).body[:-9]), id="cut JSON"),
        pytest.param(Reply(mishap="reset"), id="reset"),
        pytest.param(Reply(mishap="stall"), id="stall"),
    ],
)
def test_a_write_without_a_whole_answer_is_never_sent_again(bench: MakeBench, reply: Reply) -> None:
    at = bench(reply)
    with pytest.raises(OutcomeUnknown, match="may have taken effect"):
        at.client.write(IMPATIENT)
    assert len(at.asked) == len(at.recorded) == 1


@pytest.mark.parametrize(("reply", "error"), [(over_limit(), RateLimited), (refusal(1003), Refused)])
def test_a_refused_write_is_not_sent_again_either(bench: MakeBench, reply: Reply, error: type[Exception]) -> None:
    at = bench(reply)
    with pytest.raises(error):
        at.client.write(TAG)
    assert len(at.asked) == 1


def test_a_write_that_was_not_sent_says_so(bench: MakeBench) -> None:
    at = bench(url=NOBODY)
    with pytest.raises(Unreachable) as caught:
        at.client.write(TAG)
    assert not caught.value.was_sent
    assert len(at.recorded) == 1


def test_a_write_does_not_rely_on_a_connection_that_the_service_may_be_closing(bench: MakeBench) -> None:
    at = bench(ok({"item": "done"}))
    for _ in range(3):
        at.client.write(TAG)
    assert len({asked.port for asked in at.asked}) == 3
