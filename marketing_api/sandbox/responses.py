"""Requests and responses as values, the envelope of a response, and the limit that every response
reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.json import encode

from marketing_api.operation import Operation
from marketing_api.sandbox.rules import UNAVAILABLE, WRONG_KEY, Refusal
from marketing_api.sandbox.world import World

#: HTTP statuses of errors; all others come with 200.
_STATUSES = {WRONG_KEY: 401, 405: 405, 429: 429}
#: Code and message; `unknown` is for unknown operations, and for unknown keys by the specification
#: (observation 1).
ERRORS = {
    "rate-limited": (429, "Too Many Requests"),
    "unknown": (UNAVAILABLE, "The system cannot find the requested action"),
    "unknown-key": (WRONG_KEY, "Authentication failed: the key is missing or wrong"),
}
#: Reported when there is no limit.
_UNLIMITED = 1_000_000


@dataclass(frozen=True, slots=True)
class Request:
    verb: str
    path: str
    query: str = ""
    content_type: str = ""
    body: bytes = b""


@dataclass(slots=True)
class Response:
    """`mishap` tells the server to `close` the connection without a response; `wait` is in
    seconds."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: Sequence[tuple[str, str]] = ()
    mishap: str = ""
    wait: float = 0.0


#: The six values that every response reports; times are of the real clock.
RateReport = dict[str, int]


@dataclass(slots=True)
class Window:
    """The current second. Over the limit, everything is refused until the next second begins; an
    error says to wait `after_s` seconds."""

    limit: int
    after_s: int
    _second: int = 0
    _requests: int = 0

    def count(self, at: float) -> RateReport:
        """Count a request that arrived `at` (unix seconds)."""
        second = int(at)
        limit = self.limit or _UNLIMITED
        self._requests = self._requests + 1 if second == self._second else 1
        self._second = second
        is_over = self._requests > limit
        return {
            "limit": limit,
            "requests": self._requests,
            "remaining": max(0, limit - self._requests),
            "reached": int(is_over),
            "reset": second + 1,
            "after": self.after_s if is_over else 0,
        }


def success(world: World, operation: Operation, data: Any, rate: RateReport) -> Response:
    """`data` is what a rule returns."""
    if operation.is_read and operation.at:
        data = {operation.at: data}
    return _respond(world, rate, 200, "ok", data)


def error(world: World, refusal: Refusal, rate: RateReport) -> Response:
    data: dict[str, Any] = {"errorCode": refusal.code, "errorMessage": refusal.message}
    if refusal.fields and world.observes("validation-fields"):
        data["fields"] = refusal.fields
    return _respond(world, rate, _STATUSES.get(refusal.code, 200), "error", data)


def rate_headers(rate: RateReport) -> list[tuple[str, str]]:
    return [(f"x-rate-limit-{name}", str(value)) for name, value in rate.items()]


def _respond(world: World, rate: RateReport, status: int, verdict: str, data: Any) -> Response:
    has_extras = world.observes("header-extras")
    texts = {name: str(value) for name, value in rate.items()}
    header: dict[str, Any] = {"status": verdict, "dataType": "array"}
    if verdict == "ok":
        header["limit"] = (texts if has_extras else rate)["limit"]
    if has_extras:
        header["cached"] = False
    body = encode({"response": {"header": header, "data": data}, "rate-limit": texts})
    return Response(status, body, headers=rate_headers(rate))
