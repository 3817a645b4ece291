"""Faults come as often as asked, at the same requests for the same seed, with the declared effect."""

import json

import pytest

from marketing_api.sandbox.faults import Faults
from tests.dialects.faults import FAULTS
from tests.marketing_api.sandbox.asking import Asking, Refused, asking, content

NAMES = list(FAULTS)


def _outcomes(ask: Asking, times: int = 400) -> list[str]:
    first = len(ask.app.log)
    for place in range(times):
        ask.reply("emailmarketing/getcontacttimeline", id=310_000 + 8 * (place % 80))
    return [one.outcome for one in list(ask.app.log)[first:]]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "lost-answer"])
def test_fault_comes_about_as_often_as_asked(name: str) -> None:
    outcomes = _outcomes(asking(contacts=100, faults={name: "0.1"}, stall_seconds=0))
    assert 20 < outcomes.count(name) < 64


def test_faults_share_the_requests_between_them() -> None:
    outcomes = _outcomes(asking(contacts=100, faults={"500-before": "0.2", "reset": "0.2"}), 600)
    assert 80 < outcomes.count("500-before") < 165
    assert 80 < outcomes.count("reset") < 165


def test_same_seed_hits_the_same_requests_in_any_order() -> None:
    questions = [("a", str(number)) for number in range(300)]

    def hit(seed: int, order: list[tuple[str, str]]) -> set[tuple[str, str]]:
        faults = Faults(seed, {})
        faults.set("500-before", "0.1")
        return {question for question in order if faults.draw(*question, is_write=False)}

    assert hit(1, questions) == hit(1, questions[::-1])
    assert hit(1, questions) != hit(2, questions)
    assert hit(1, questions)


def test_repeated_question_draws_anew() -> None:
    ask = asking(contacts=100, faults={"500-before": "0.5"})
    statuses = [ask.reply("app/me").status for _ in range(40)]
    assert {200, 500} == set(statuses)


def test_fault_may_be_limited_to_operations() -> None:
    ask = asking(contacts=100, faults={"500-before": "1@goal/lists,webhook/lists"})
    assert [ask.reply(name).status for name in ("goal/lists", "webhook/lists", "app/me")] == [500, 500, 200]


@pytest.mark.parametrize(("name", "status"), [("1000", 401), ("1002", 200)])
def test_operation_may_be_gone_for_good(name: str, status: int) -> None:
    ask = asking(contacts=100, faults={name: "1@goal/lists"})
    for _ in range(3):
        with pytest.raises(Refused) as refused:
            ask.data("goal/lists")
        assert (str(refused.value.code), refused.value.status) == (name, status)


@pytest.mark.parametrize("name", NAMES)
def test_write_takes_effect_exactly_when_the_fault_says_so(name: str) -> None:
    ask = asking(contacts=100, faults={name: "1"}, stall_seconds=0.5)
    reply = ask.reply("emailmarketing/addcontact", email="new@example.com", listid=1801, status="Active")
    ask.control("faults", off=1)
    assert any(one["email"] == "new@example.com" for one in ask.contacts(1801)) is FAULTS[name].has_effect
    expected = {"reset": "reset", "lost-answer": "close", "cut-body": "cut"}
    assert reply.mishap == expected.get(name, "")
    assert reply.wait == (0.5 if name == "stall" else 0)


def test_html_and_cut_answers_are_not_json() -> None:
    for name, status in (("502-html", 502), ("html-200", 200), ("cut-json", 200)):
        reply = asking(contacts=100, faults={name: "1"}).reply("emailmarketing/getcontacts", listid=1801)
        assert reply.status == status
        with pytest.raises(json.JSONDecodeError):
            json.loads(content(reply))


def test_lost_answers_hit_writes_only() -> None:
    ask = asking(contacts=100, faults={"lost-answer": "1"})
    assert ask.reply("app/me").mishap == ""
    assert ask.reply("goal/delete", id=301).mishap == "close"


def test_key_is_revoked_after_so_many_requests() -> None:
    ask = asking(contacts=100, revoke_after=3)
    for _ in range(3):
        assert ask.data("app/me")
    with pytest.raises(Refused) as refused:
        ask.data("app/me")
    assert refused.value.code == 1002


def test_spurious_429_looks_like_a_real_one() -> None:
    reply = asking(contacts=100, faults={"429": "1"}).reply("app/me")
    assert reply.status == 429
    assert json.loads(content(reply))["rate-limit"]


@pytest.mark.parametrize(("name", "chance"), [("fire", "0.1"), ("reset", "2"), ("reset", "often")])
def test_senseless_faults_are_refused(name: str, chance: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        asking(faults={name: chance})
