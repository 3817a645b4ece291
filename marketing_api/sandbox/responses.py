"""Requests and responses as values; making responses: the envelope (JSON or XML), and what faults do to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import msgspec

from marketing_api.sandbox.faults import Fault
from marketing_api.sandbox.rules import UNAVAILABLE, WRONG_KEY, Payload, Refusal, Streamed
from marketing_api.sandbox.tenant import RateReport, Tenant

_JSON = "application/json"
_HTML = b"<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>"


@dataclass(frozen=True, slots=True)
class Request:
    """Header names are lower-case."""

    verb: str
    path: str
    query: str = ""
    content_type: str = ""
    body: bytes = b""


@dataclass(slots=True)
class Response:
    """`mishap` tells the server to misbehave: reset, close (without a response), or cut (in the middle of the body)."""

    status: int
    body: bytes | Iterator[bytes]
    kind: str = _JSON
    headers: Sequence[tuple[str, str]] = ()
    mishap: str = ""
    wait: float = 0.0


def success(tenant: Tenant, data: Payload, rate: RateReport, *, is_bare: bool) -> Response:
    """A payload in its envelope, or without one as in some samples."""
    head, tail = ("", "") if is_bare else _envelope(tenant, rate, "ok")
    if isinstance(data, Streamed):
        return Response(200, _stream(_joined(head, data.head, ""), data, tail), headers=rate.headers())
    return Response(200, _joined(head, msgspec.json.encode(data).decode(), tail).encode(), headers=rate.headers())


def error(tenant: Tenant, refusal: Refusal, rate: RateReport) -> Response:
    """An error in its envelope."""
    data: dict[str, Any] = {"errorCode": refusal.code, "errorMessage": refusal.message}
    if refusal.fields and tenant.switches.is_on("validation-fields"):
        data["fields"] = list(refusal.fields)
    head, tail = _envelope(tenant, rate, "error")
    status = refusal.code if refusal.code in (405, 429) else int(tenant.switches["error-status"])
    return Response(status, _joined(head, json.dumps(data), tail).encode(), headers=rate.headers())


def rate_limited(tenant: Tenant, rate: RateReport) -> Response:
    return error(tenant, Refusal(429, "Too Many Requests"), rate)


def unavailable(tenant: Tenant, rate: RateReport) -> Response:
    """For unknown operations, and for unknown keys by the specification."""
    return error(tenant, Refusal(UNAVAILABLE, "The system cannot find the requested action"), rate)


def unknown_key(tenant: Tenant, rate: RateReport) -> Response:
    """api-observed row 1."""
    if tenant.switches["bad-key"] == "1002":
        return unavailable(tenant, rate)
    response = error(tenant, Refusal(WRONG_KEY, "Authentication failed: the key is missing or wrong"), rate)
    response.status = 401
    return response


def failure(tenant: Tenant, fault: Fault, rate: RateReport) -> Response:
    """The response to a request that took no effect because of a fault."""
    match fault.name:
        case "429":
            return rate_limited(tenant, rate)
        case "1002":
            return unavailable(tenant, rate)
        case "reset":
            return Response(200, b"", mishap="reset")
        case "502-html":
            return Response(502, _HTML, "text/html", rate.headers())
    return Response(500, b"Internal Server Error", "text/plain", rate.headers())


#: What may be the name of an XML element; ids, dates and the like become `<entry key="…">`.
_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_xml(response: Response) -> Response:
    """A JSON response as XML. The specification offers XML and shows none, so this is the plain mapping of the same envelope (assumed).

    The root is `response`; what stands beside it in JSON follows its children. Entries of a list are `<item>`. Held in memory as a whole.
    """
    if response.kind != _JSON or response.mishap:
        return response
    whole = json.loads(response.body if isinstance(response.body, bytes) else b"".join(response.body))
    root = whole.pop("response", {}) | whole
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{_element("response", root)}\n'
    return replace(response, body=text.encode(), kind="application/xml; charset=utf-8")


def _element(name: str, value: Any) -> str:
    tag, key = (name, "") if _NAME.fullmatch(name) else ("entry", f" key={quoteattr(_allowed(name))}")
    if isinstance(value, dict):
        inner = "".join(_element(*member) for member in value.items())
    elif isinstance(value, list):
        inner = "".join(_element("item", entry) for entry in value)
    else:
        text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
        inner = escape(_allowed(text))
    return f"<{tag}{key}>{inner}</{tag}>" if inner else f"<{tag}{key}/>"


def _allowed(text: str) -> str:
    """XML has no form for most control characters."""
    return _NOT_XML.sub("\ufffd", text)


def _joined(head: str, data: str, tail: str) -> str:
    """A head that ends inside `data` (rate-limit object placed there) takes the place of the payload's opening brace."""
    return head + (data[1:] if head.endswith(",") else data) + tail


def _stream(head: str, data: Streamed, tail: str) -> Iterator[bytes]:
    yield head.encode()
    done = 0
    for batch in data.batches:
        lead = "," if done else ""
        if data.numbered:
            batch = [f'"{place}":{item}' for place, item in enumerate(batch, done + 1)]
        done += len(batch)
        yield (lead + ",".join(batch)).encode()
    yield (data.tail + tail).encode()


def _envelope(tenant: Tenant, rate: RateReport, status: str) -> tuple[str, str]:
    """What stands before and after the payload."""
    switches = tenant.switches
    member = f',"rate-limit":{rate.members(as_text=switches["rate-limit-values"] == "text")}'
    at = {switches["rate-limit-place"]: member}.get
    limit = f',"limit":{rate.limit}' if status == "ok" else ""
    if switches.is_on("header-extras"):
        limit = (limit.replace(":", ':"') + '"' if limit else "") + ',"cached":false'
    head = f'{{"response":{{"header":{{"status":"{status}","dataType":"array"{limit}{at("header", "")}}},"data":'
    return (f"{head}{{{member[1:]}," if at("data") else head), f"{at('response', '')}}}{at('top', '')}}}"


def broken(tenant: Tenant, fault: Fault, response: Response) -> Response:
    """The response to a request that took effect, as it arrives."""
    match fault.name:
        case "500-after":
            return Response(500, b"Internal Server Error", "text/plain", response.headers)
        case "html-200":
            return Response(200, _HTML, "text/html", response.headers)
        case "lost-answer":
            return Response(200, b"", mishap="close")
        case "stall":
            response.wait = tenant.faults.stall_seconds
        case "cut-json":
            body = response.body
            response.body = body[: len(body) * 3 // 5] if isinstance(body, bytes) else _ending_early(body)
        case "cut-body":
            response.mishap = "cut"
    return response


def _ending_early(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for number, piece in enumerate(pieces):
        yield piece[: len(piece) // 2 + 1]
        if number:
            break
