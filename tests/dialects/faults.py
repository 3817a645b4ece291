"""Faults of a hostile service beside those of the product, and how a broken response is sent."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping

import h11

from marketing_api.sandbox import faults, responses, server
from marketing_api.sandbox.faults import Fault
from marketing_api.sandbox.responses import ERRORS, Response
from marketing_api.sandbox.rules import Refusal
from marketing_api.sandbox.tenant import RateReport, Tenant

HOSTILE: Mapping[str, Fault] = {
    "502-html": Fault("HTTP 502 with an HTML page and no effect"),
    "html-200": Fault("HTTP 200 with an HTML page", True),
    "reset": Fault("the connection is reset before a response; no effect"),
    "cut-json": Fault("HTTP 200 with JSON that ends early, though the length is right", True),
    "cut-body": Fault("the connection closes in the middle of the response", True),
    "1000": Fault("the error of a wrong key, for an operation (observation 41)"),
    "1002": Fault("the error of an unavailable operation"),
}
FAULTS: Mapping[str, Fault] = {**faults.FAULTS, **HOSTILE}
_PAGE = (
    b"<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center>"
    b"</body></html>"
)


def break_response(tenant: Tenant, fault: str, rate: RateReport, response: Response) -> Response:
    """What arrives in place of the response; `mishap` is of `send_broken`."""
    headers = responses.rate_headers(rate)
    match fault:
        case "1000" | "1002":
            return responses.error(
                tenant, Refusal(*ERRORS["unknown-key" if fault == "1000" else "unknown"]), rate
            )
        case "502-html" | "html-200":
            return Response(502 if fault == "502-html" else 200, _PAGE, "text/html", headers)
        case "cut-json":
            response.body = response.body[: len(response.body) * 3 // 5]
        case _:
            response.mishap = {"cut-body": "cut"}.get(fault, fault)
    return response


_send = server._send


async def send_broken(
    connection: h11.Connection, writer: asyncio.StreamWriter, verb: str, response: Response
) -> None:
    """A reset in place of the response, or half of its body."""
    if response.mishap == "reset":
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()
    if response.mishap == "cut":
        headers = [("content-type", response.kind), ("content-length", str(len(response.body)))]
        head = h11.Response(status_code=response.status, headers=[*headers, *response.headers])
        half = h11.Data(data=response.body[: len(response.body) // 2])
        writer.write((connection.send(head) or b"") + (connection.send(half) or b""))
        await writer.drain()
    await _send(connection, writer, verb, response)


server._send = send_broken
