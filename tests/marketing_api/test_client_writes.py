"""Writes are sent once, and the error says whether they can have taken effect."""

import dataclasses

import pytest

from marketing_api.errors import OutcomeUnknown, Refused, Stopped, Unreachable
from marketing_api.exchange import Outcome
from marketing_api.operation import Call
from marketing_api.operations import contacts
from marketing_api.retry import TRIES
from tests.marketing_api.conftest import KEY, MakeBench
from tests.marketing_api.scripted_server import Reply, ok, over_limit, refusal

TAG = contacts.ADDTAG.bind(email="ann@example.com", tagname="blue")
IMPATIENT = Call(dataclasses.replace(TAG.operation, timeout=0.15), TAG.params)
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
        at.client.write(IMPATIENT if reply.mishap == "stall" else TAG)
    assert len(at.recorded) == 1
    assert len(at.asked) <= 1, "a busy server may not have read it yet"


def test_a_refused_write_is_not_sent_again(bench: MakeBench) -> None:
    at = bench(refusal(1003))
    with pytest.raises(Refused):
        at.client.write(TAG)
    assert len(at.asked) == 1


def test_a_write_over_the_limit_is_sent_again_first_of_all(bench: MakeBench) -> None:
    at = bench(over_limit(), over_limit(), ok({"item": "done"}))
    at.client.write(TAG)
    assert [exchange.outcome for exchange in at.recorded] == [
        Outcome.RATE_LIMITED,
        Outcome.RATE_LIMITED,
        Outcome.OK,
    ]


def test_a_write_that_could_never_be_sent_says_so_after_a_bounded_number_of_tries(bench: MakeBench) -> None:
    at = bench(url=NOBODY, first_pause=0.001)
    with pytest.raises(Unreachable) as caught:
        at.client.write(TAG)
    assert not caught.value.was_sent
    assert len(at.recorded) == TRIES


def test_what_is_to_be_noted_before_a_write_leaves_is_noted_once_and_before(bench: MakeBench) -> None:
    seen: list[int] = []
    at = bench(over_limit(), ok({"item": "done"}))
    at.client.write(TAG, before=lambda: seen.append(len(at.asked)))
    assert seen == [0]
    assert len(at.asked) == 2


def test_a_write_whose_note_fails_is_not_sent(bench: MakeBench) -> None:
    at = bench(ok({"item": "done"}))

    def fail() -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        at.client.write(TAG, before=fail)
    assert not at.asked
    assert not at.recorded


def test_a_stopped_client_neither_notes_nor_sends(bench: MakeBench) -> None:
    at = bench(ok({"item": "done"}))
    at.client.stop()
    with pytest.raises(Stopped):
        at.client.write(TAG, before=lambda: pytest.fail("noted"))
    assert not at.asked


def test_an_ok_answer_whose_words_say_no_is_a_refusal(bench: MakeBench) -> None:
    at = bench(ok({"item": "The contact doesn't exist"}))
    with pytest.raises(Refused, match="doesn't exist"):
        at.client.write(TAG)
    assert at.recorded[0].outcome is Outcome.REFUSED


def test_a_write_does_not_rely_on_a_connection_that_the_service_may_be_closing(bench: MakeBench) -> None:
    at = bench(ok({"item": "done"}))
    for _ in range(3):
        at.client.write(TAG)
    assert len({asked.port for asked in at.asked}) == 3
