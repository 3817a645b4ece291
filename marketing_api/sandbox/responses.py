"""Requests and responses as values, and the envelope of a response."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.json import encode

from marketing_api.operation import Operation
from marketing_api.sandbox.rules import UNAVAILABLE, WRONG_KEY, Refusal
from marketing_api.sandbox.tenant import RateReport, Tenant

#: HTTP statuses of errors; all others come with 200.
_STATUSES = {WRONG_KEY: 401, 405: 405, 429: 429}
#: Code and message; `unknown` is for unknown operations, and for unknown keys by the specification
#: (observation 1).
ERRORS = {
    "rate-limited": (429, "Too Many Requests"),
    "unknown": (UNAVAILABLE, "The system cannot find the requested action"),
    "unknown-key": (WRONG_KEY, "Authentication failed: the key is missing or wrong"),
}


@dataclass(frozen=True, slots=True)
class Request:
    verb: str
    path: str
    query: str = ""
    content_type: str = ""
    body: bytes = b""


@dataclass(slots=True)
class Response:
    """`mishap` tells the server to `close` the connection without a response; `wait` is in seconds."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: Sequence[tuple[str, str]] = ()
    mishap: str = ""
    wait: float = 0.0


def success(tenant: Tenant, operation: Operation, data: Any, rate: RateReport) -> Response:
    """`data` is what a rule returns."""
    if operation.is_read and operation.at:
        data = {operation.at: data}
    return Response(200, _envelope(tenant, rate, "ok", data), headers=rate_headers(rate))


def error(tenant: Tenant, refusal: Refusal, rate: RateReport) -> Response:
    data: dict[str, Any] = {"errorCode": refusal.code, "errorMessage": refusal.message}
    if refusal.fields and tenant.observes("validation-fields"):
        data["fields"] = refusal.fields
    body = _envelope(tenant, rate, "error", data)
    return Response(_STATUSES.get(refusal.code, 200), body, headers=rate_headers(rate))


def rate_headers(rate: RateReport) -> list[tuple[str, str]]:
    return [(f"x-rate-limit-{name}", str(value)) for name, value in rate.items()]


def _envelope(tenant: Tenant, rate: RateReport, status: str, data: Any) -> bytes:
    has_extras, texts = tenant.observes("header-extras"), {name: str(value) for name, value in rate.items()}
    header: dict[str, Any] = {"status": status, "dataType": "array"}
    if status == "ok":
        header["limit"] = (texts if has_extras else rate)["limit"]
    if has_extras:
        header["cached"] = False
    return encode({"response": {"header": header, "data": data}, "rate-limit": texts})
