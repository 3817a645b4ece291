"""Requests and responses as values; making responses: the envelope, and what faults do to it."""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from marketing_api.sandbox.faults import Fault
from marketing_api.sandbox.rules import UNAVAILABLE, WRONG_KEY, Payload, Refusal, Streamed
from marketing_api.sandbox.tenant import RateReport, Tenant

_JSON = "application/json"
_HTML = (
    b"<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad "
    b"Gateway</h1></center></body></html>"
)
#: Statuses of errors for which the switch `error-status` does not decide.
_STATUSES = {WRONG_KEY: 401, 405: 405, 429: 429}


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
    kind: str = _JSON
    headers: Sequence[tuple[str, str]] = ()
    mishap: str = ""
    wait: float = 0.0


def success(tenant: Tenant, data: Payload, rate: RateReport, *, is_bare: bool) -> Response:
    head, tail = ("", "") if is_bare else _envelope(tenant, rate, "ok")
    if isinstance(data, Streamed):
        return Response(200, _stream(head, data, tail), headers=rate.headers())
    return Response(200, head.encode() + msgspec.json.encode(data) + tail.encode(), headers=rate.headers())


def error(tenant: Tenant, refusal: Refusal, rate: RateReport) -> Response:
    data: dict[str, Any] = {"errorCode": refusal.code, "errorMessage": refusal.message}
    if refusal.fields and tenant.switches.is_on("validation-fields"):
        data["fields"] = list(refusal.fields)
    head, tail = _envelope(tenant, rate, "error")
    status = _STATUSES.get(refusal.code) or tenant.switches.number("error-status")
    return Response(status, (head + json.dumps(data) + tail).encode(), headers=rate.headers())


RATE_LIMITED = 429, "Too Many Requests"
#: For unknown operations, and for unknown keys by the specification (api-observed row 1).
UNKNOWN = UNAVAILABLE, "The system cannot find the requested action"
UNKNOWN_KEY = WRONG_KEY, "Authentication failed: the key is missing or wrong"
#: By position of the switch (api-observed rows 30 and 41).
OF_REPUTATION = {"gone": UNKNOWN, "refused": UNKNOWN_KEY}
_REFUSALS = {"429": RATE_LIMITED, "1000": UNKNOWN_KEY, "1002": UNKNOWN}


def _stream(head: str, data: Streamed, tail: str) -> Iterator[bytes]:
    yield (head + data.head).encode()
    done = 0
    for batch in data.batches:
        lead = "," if done else ""
        if data.numbered:
            batch = [f'"{place}":{item}' for place, item in enumerate(batch, done + 1)]
        done += len(batch)
        yield (lead + ",".join(batch)).encode()
    yield (data.tail + tail).encode()


def _envelope(tenant: Tenant, rate: RateReport, status: str) -> tuple[str, str]:
    switches, values, report = tenant.switches, rate._asdict(), ""
    if switches["rate-limit-values"] == "text":  # api-observed row 27
        values = {name: str(value) for name, value in values.items()}
    if switches["rate-limit-place"] == "top":
        report = f',"rate-limit":{msgspec.json.encode(values).decode()}'
    limit = f',"limit":{rate.limit}' if status == "ok" else ""
    if switches.is_on("header-extras"):
        limit = (limit.replace(":", ':"') + '"' if limit else "") + ',"cached":false'
    return (
        f'{{"response":{{"header":{{"status":"{status}","dataType":"array"{limit}}},"data":',
        f"}}{report}}}",
    )


def broken(tenant: Tenant, fault: Fault, rate: RateReport, response: Response) -> Response:
    """The response as it arrives; what it was to be matters only where the fault has an effect."""
    match fault.name:
        case "429" | "1000" | "1002":
            return error(tenant, Refusal(*_REFUSALS[fault.name]), rate)
        case "reset" | "lost-answer":
            return Response(200, b"", mishap="reset" if fault.name == "reset" else "close")
        case "502-html" | "html-200":
            return Response(502 if fault.name == "502-html" else 200, _HTML, "text/html", rate.headers())
        case "500-before" | "500-after":
            return Response(500, b"Internal Server Error", "text/plain", rate.headers())
        case "stall":
            response.wait = tenant.faults.stall_seconds
        case "cut-json":
            body = response.body
            if isinstance(body, bytes):
                response.body = body[: len(body) * 3 // 5]
            else:
                response.body = (piece[: len(piece) // 2 + 1] for piece in itertools.islice(body, 2))
        case "cut-body":
            response.mishap = "cut"
    return response
