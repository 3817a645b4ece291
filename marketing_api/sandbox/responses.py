"""Requests and responses as values; making responses: the envelope, and what faults do to it."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.json import encode

from marketing_api.operation import Operation
from marketing_api.sandbox.faults import Fault
from marketing_api.sandbox.rules import UNAVAILABLE, WRONG_KEY, Refusal, Streamed
from marketing_api.sandbox.tenant import RateReport, Tenant

#: Statuses of errors for which the switch `error-status` does not decide.
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
    """`mishap` tells the server to misbehave: reset, close (without a response), or cut (in the middle of the
    body)."""

    status: int
    body: bytes | Iterator[bytes]
    kind: str = "application/json"
    headers: Sequence[tuple[str, str]] = ()
    mishap: str = ""
    wait: float = 0.0


def success(tenant: Tenant, operation: Operation, data: Any, rate: RateReport) -> Response:
    """`data` is what a rule returns."""
    is_bare = operation.is_read and tenant.switches["envelope"] == "writes"
    head, tail = (b"", b"") if is_bare else _envelope(tenant, rate, "ok")
    if operation.is_read and operation.at:
        head, tail = head + b'{"%s":' % operation.at.encode(), b"}" + tail
    body = _stream(head, data, tail) if isinstance(data, Streamed) else head + encode(data) + tail
    return Response(200, body, headers=_headers(rate))


def _headers(rate: RateReport) -> list[tuple[str, str]]:
    return [(f"x-rate-limit-{name}", str(value)) for name, value in rate.items()]


def error(tenant: Tenant, refusal: Refusal, rate: RateReport) -> Response:
    data: dict[str, Any] = {"errorCode": refusal.code, "errorMessage": refusal.message}
    if refusal.fields and tenant.switches.is_on("validation-fields"):
        data["fields"] = refusal.fields
    head, tail = _envelope(tenant, rate, "error")
    status = _STATUSES.get(refusal.code) or tenant.switches.number("error-status")
    return Response(status, head + encode(data) + tail, headers=_headers(rate))


def _stream(head: bytes, data: Streamed, tail: bytes) -> Iterator[bytes]:
    opening, closing = (b"{", b"}") if data.is_numbered else (b"[", b"]")
    yield b'%s{"count":%d,"items":%s' % (head, data.count, opening)
    done = 0
    for batch in data.batches:
        items = [encode(one) for one in batch]
        if data.is_numbered:
            items = [b'"%d":%s' % (place, item) for place, item in enumerate(items, done + 1)]
        yield b"," * (done > 0) + b",".join(items)
        done += len(batch)
    yield closing + b"}" + tail


def _envelope(tenant: Tenant, rate: RateReport, status: str) -> tuple[bytes, bytes]:
    """What stands before and behind `data`."""
    switches = tenant.switches
    has_extras, is_text = switches.is_on("header-extras"), switches["rate-limit-values"] == "text"
    texts = {name: str(value) for name, value in rate.items()}
    header: dict[str, Any] = {"status": status, "dataType": "array"}
    if status == "ok":
        header["limit"] = (texts if has_extras else rate)["limit"]
    if has_extras:
        header["cached"] = False
    whole: dict[str, Any] = {"response": {"header": header, "data": None}}
    if switches["rate-limit-place"] == "top":  # observation 27
        whole["rate-limit"] = texts if is_text else rate
    head, _, tail = encode(whole).partition(b"null")
    return head, tail


def broken(tenant: Tenant, fault: Fault, rate: RateReport, response: Response) -> Response:
    """The response as it arrives; what it was to be matters only where the fault has an effect."""
    if fault.error:
        return error(tenant, Refusal(*ERRORS[fault.error]), rate)
    if fault.status:
        return Response(fault.status, fault.body.encode(), fault.kind, _headers(rate))
    response.mishap = fault.mishap
    if fault.ends_early:
        response.body = _ended(response.body)
    response.wait = tenant.faults.stall_seconds if fault.stalls else 0.0
    return response


def _ended(body: bytes | Iterator[bytes]) -> bytes | Iterator[bytes]:
    """Only the beginning of it."""
    if isinstance(body, bytes):
        return body[: len(body) * 3 // 5]
    return (piece[: len(piece) // 2 + 1] for piece in itertools.islice(body, 2))
