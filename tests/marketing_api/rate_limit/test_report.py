import json
from typing import Any

import pytest

from marketing_api.envelope import read_envelope
from marketing_api.pacing import RateReport
from marketing_api.rate_limit import read_rate_report

STRINGS = {
    "limit": "15",
    "requests": "3",
    "remaining": "12",
    "reached": "0",
    "reset": "1383582780",
    "after": "0",
}
NUMBERS = {name: int(value) for name, value in STRINGS.items()}
EXPECTED = RateReport(limit=15, requests=3, remaining=12, reached=False, reset=1383582780.0, after=0.0)


def report_of(body: bytes | None, headers: dict[str, str] | None = None) -> RateReport:
    return read_rate_report(None if body is None else read_envelope(body), headers or {})


@pytest.mark.parametrize("values", [STRINGS, NUMBERS], ids=["strings", "numbers"])
@pytest.mark.parametrize("name", ["rate-limit", "Rate-Limit", "rate_limit", "rateLimit"])
@pytest.mark.parametrize("place", ["top", "response", "header", "data", "bare"])
def test_report_is_found_at_every_level(values: dict[str, Any], name: str, place: str) -> None:
    response: dict[str, Any] = {"header": {"status": "ok"}, "data": {"contacts": []}}
    body: dict[str, Any] = {"response": response}
    level = {
        "top": body,
        "response": response,
        "header": response["header"],
        "data": response["data"],
        "bare": {},
    }[place]
    level[name] = values
    assert report_of(json.dumps(level if place == "bare" else body).encode()) == EXPECTED


@pytest.mark.parametrize("body", [None, b"", b"<html>", b"[]", b'{"rate-limit": "soon"}'])
def test_headers_are_enough(body: bytes | None) -> None:
    headers = {f"X-Rate-Limit-{name.capitalize()}": value for name, value in STRINGS.items()}
    assert report_of(body, headers) == EXPECTED


def test_headers_complete_the_body() -> None:
    report = report_of(
        b'{"rate-limit": {"limit": 15, "after": null}}',
        {"x-rate-limit-limit": "10", "x-rate-limit-after": "2"},
    )
    assert report == RateReport(limit=15, after=2.0)


def test_nothing_said_is_no_report() -> None:
    assert report_of(b'{"response": {"data": {}}}', {"Content-Type": "application/json"}) == RateReport()


def test_unreadable_values_are_left_out() -> None:
    report = report_of(
        b'{"rate-limit": {"limit": "many", "remaining": 4, "reached": "perhaps", "reset": "-"}}', {}
    )
    assert report == RateReport(remaining=4)


@pytest.mark.parametrize("reached", ["1", 1, True, "true"])
def test_blocked_request_is_reported(reached: Any) -> None:
    report = report_of(json.dumps({"rate-limit": {"reached": reached}}).encode(), {})
    assert report.reached


@pytest.mark.parametrize(
    ("advice", "seconds"),
    [
        ("3", 3.0),
        ("3600", 3600.0),
        ("Sat, 21 Nov 2026 14:00:30 GMT", 30.0),  # by the service's own clock
        ("Sat, 21 Nov 2026 13:59:50 GMT", -10.0),
        ("soon", None),
    ],
)
def test_advice_to_come_again_is_seconds_or_a_moment(advice: str, seconds: float | None) -> None:
    report = read_rate_report(None, {"Retry-After": advice, "Date": "Sat, 21 Nov 2026 14:00:00 GMT"})
    assert report.after == seconds


def test_a_moment_without_a_clock_to_compare_says_nothing() -> None:
    assert read_rate_report(None, {"Retry-After": "Sat, 21 Nov 2026 14:00:30 GMT"}) == RateReport()
