"""The rate limit: fixed one-second windows per key, reported on every answer."""

import json

from marketing_api.sandbox.responses import Request
from tests.dialects.app import AccountOptions
from tests.marketing_api.sandbox.asking import Asking, asking, content


def _at(ask: Asking, at: float, key: str = "sandbox-key") -> tuple[int, dict[str, str]]:
    reply = ask.app.respond(Request("GET", "/1/app/me", f"key={key}"), at)
    return reply.status, json.loads(content(reply))["rate-limit"]


def test_over_the_limit_everything_is_429_until_the_window_ends() -> None:
    ask = asking(rate_limit=15)
    statuses = [_at(ask, 100.0 + place * 0.05)[0] for place in range(19)]
    assert statuses == [200] * 15 + [429] * 4
    assert _at(ask, 100.999)[0] == 429
    assert _at(ask, 101.0)[0] == 200


def test_windows_are_fixed_seconds_not_sliding() -> None:
    ask = asking(rate_limit=15)
    late = [_at(ask, 100.9)[0] for _ in range(15)]
    early = [_at(ask, 101.1)[0] for _ in range(15)]
    assert late + early == [200] * 30


def test_report_counts_down_and_its_values_are_text() -> None:
    ask = asking(rate_limit=2)
    reports = [_at(ask, 200.5)[1] for _ in range(3)]
    assert [report["remaining"] for report in reports] == ["1", "0", "0"]
    assert [report["reached"] for report in reports] == ["0", "0", "1"]
    assert [report["after"] for report in reports] == ["0", "0", "1"]
    assert {report["reset"] for report in reports} == {"201"}
    assert {report["limit"] for report in reports} == {"2"}


def test_headers_say_the_same_as_the_object() -> None:
    ask = asking(rate_limit=1)
    for at in (300.0, 300.1):
        reply = ask.app.respond(Request("GET", "/1/app/me", "key=sandbox-key"), at)
        told = json.loads(content(reply))["rate-limit"]
        assert dict(reply.headers) == {f"x-rate-limit-{name}": value for name, value in told.items()}


def test_each_key_has_its_own_window() -> None:
    ask = asking(rate_limit=1, accounts=(AccountOptions("a", "key-a"), AccountOptions("b", "key-b", 2)))
    assert [_at(ask, 5.0, key)[0] for key in ("key-a", "key-b", "key-a")] == [200, 200, 429]


def test_no_limit_is_reported_as_a_large_number() -> None:
    ask = asking(rate_limit=0)
    reports = [_at(ask, 5.0) for _ in range(50)]
    assert {status for status, _ in reports} == {200}
    assert int(reports[-1][1]["limit"]) >= 100_000


def test_refused_key_counts_too() -> None:
    ask = asking(rate_limit=1)
    assert [_at(ask, 5.0, "wrong")[0] for _ in range(2)] == [200, 429]
