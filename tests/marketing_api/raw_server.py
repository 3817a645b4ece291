"""A server on the loopback that sends bytes which no HTTP library would send."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Any, Self

from tests.marketing_api.scripted_server import UNLIMITED

#: Sends what it likes for one request; False closes the connection.
Send = Callable[[socket.socket, int], bool]


def body_of(data: Any = None) -> bytes:
    """A whole answer to `app/me` unless other data is given."""
    data = {"business": {"businessName": "Harbor"}} if data is None else data
    header = {"status": "ok", "dataType": "array"}
    return json.dumps({"response": {"header": header, "data": data}, "rate-limit": UNLIMITED}).encode()


def http(body: bytes, status: str = "200 OK", *lines: str, length: int | None = -1) -> bytes:
    """`length`: what Content-Length says, None for none; without it the truth."""
    head = [f"HTTP/1.1 {status}", "Content-Type: application/json", *lines]
    if length is not None:
        head.append(f"Content-Length: {len(body) if length == -1 else length}")
    return "\r\n".join([*head, "", ""]).encode() + body


class RawServer:
    """`send` gets the connection and how many requests came before."""

    def __init__(self, send: Send) -> None:
        self.requests: list[bytes] = []
        self.closing = threading.Event()
        self._send = send
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            came = b""
            while not self.closing.is_set():
                while b"\r\n\r\n" not in came:
                    if not (more := connection.recv(65536)):
                        return
                    came += more
                request, _, came = came.partition(b"\r\n\r\n")
                self.requests.append(request)
                if not self._send(connection, len(self.requests) - 1):
                    return
