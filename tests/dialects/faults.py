"""Faults of a hostile service beside those of the product, and how a broken response is sent."""

import socket
import struct
from collections.abc import Mapping

from marketing_api.sandbox import faults, responses
from marketing_api.sandbox.faults import Fault
from marketing_api.sandbox.responses import ERRORS, RateReport, Response
from marketing_api.sandbox.rules import Refusal
from marketing_api.sandbox.server import Handler
from marketing_api.sandbox.world import World

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


def break_response(world: World, fault: str, rate: RateReport, response: Response) -> Response:
    """What arrives in place of the response; `mishap` is of `write_broken`."""
    headers = responses.rate_headers(rate)
    match fault:
        case "1000" | "1002":
            return responses.error(
                world, Refusal(*ERRORS["unknown-key" if fault == "1000" else "unknown"]), rate
            )
        case "502-html" | "html-200":
            return Response(502 if fault == "502-html" else 200, _PAGE, "text/html", headers)
        case "cut-json":
            response.body = response.body[: len(response.body) * 3 // 5]
        case _:
            response.mishap = {"cut-body": "cut"}.get(fault, fault)
    return response


_write = Handler.write_response


def write_broken(handler: Handler, response: Response) -> None:
    """A reset in place of the response, or half of its body."""
    if response.mishap == "reset":
        linger = struct.pack("ii", 1, 0)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        handler.connection.close()
    if response.mishap == "cut":
        head = f"HTTP/1.1 {response.status} OK\r\ncontent-type: {response.kind}\r\n"
        head += f"content-length: {len(response.body)}\r\n\r\n"
        handler.wfile.write(head.encode() + response.body[: len(response.body) // 2])
    _write(handler, response)


Handler.write_response = write_broken  # type: ignore[method-assign, assignment]
