"""An HTTP server on the loopback that answers what a test tells it to, mishaps of the network included."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

#: Fast answers: nobody has to wait for slots.
UNLIMITED = {"limit": 1_000_000, "requests": 1, "remaining": 999_999, "reached": 0}


@dataclass(frozen=True)
class Asked:
    """A request as the server saw it."""

    method: str
    operation: str
    query: dict[str, str]
    form: dict[str, str]
    headers: dict[str, str]
    port: int  # of the client: one per connection


@dataclass(frozen=True)
class Reply:
    """`mishap`: reset (nothing comes), cut (half of the body comes), stall (nothing comes for a second)."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    mishap: str = ""


def ok(data: Any = None, **rate: Any) -> Reply:
    """A whole answer to `app/me` unless other data is given."""
    header = {"status": "ok", "dataType": "array"}
    data = {"business": {"businessName": "Harbor"}} if data is None else data
    return Reply(
        body=json.dumps(
            {"response": {"header": header, "data": data}, "rate-limit": UNLIMITED | rate}
        ).encode()
    )


def refusal(code: int, *, status: int = 200, text: str = "no", **rate: Any) -> Reply:
    header = {"status": "error", "dataType": "array"}
    data = {"errorCode": code, "errorMessage": text}
    return Reply(
        status,
        json.dumps({"response": {"header": header, "data": data}, "rate-limit": UNLIMITED | rate}).encode(),
    )


def over_limit(seconds: float = 0.1) -> Reply:
    """A 429 whose window resets so soon."""
    return refusal(429, status=429, remaining=0, reached=1, reset=time.time() + seconds, after=1)


class ScriptedServer:
    """`answer` is called for every request, in threads; what it raises becomes a 500."""

    def __init__(self, response: Callable[[Asked], Reply]) -> None:
        self.response = response
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.script = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/1"

    def __enter__(self) -> Self:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    script: ScriptedServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up in these tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def _serve(self) -> None:
        address = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        asked = Asked(
            self.command,
            address.path.removeprefix("/1/").removesuffix(".json"),
            dict(parse_qsl(address.query)),
            dict(parse_qsl(body)),
            dict(self.headers),
            self.client_address[1],
        )
        self.server.script.asked.append(asked)
        self._reply(self.server.script.response(asked))

    do_GET = do_POST = _serve  # noqa: N815 (the name that http.server looks for)

    def _reply(self, reply: Reply) -> None:
        if reply.mishap == "stall":
            self.server.script.closing.wait(1)
        if reply.mishap in ("reset", "stall"):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body[: len(reply.body) // 2] if reply.mishap == "cut" else reply.body)
        self.wfile.flush()
        self.close_connection = self.close_connection or reply.mishap == "cut"

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""
