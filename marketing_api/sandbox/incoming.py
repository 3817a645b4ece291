"""HTTP/1.1 requests out of the bytes that a connection has received so far.

Not here: sockets and replies (`connection`), parameters (`intake`), what is answered (`app`).
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass

from marketing_api.sandbox.replies import Request

#: Nobody sends a larger request; more would be a mistake.
_LONGEST = 64 * 1024 * 1024


class Unreadable(Exception):
    """No request of HTTP/1.1, so that nobody can tell where the next one would begin."""


@dataclass(frozen=True, slots=True)
class _Head:
    verb: str
    target: str
    closes: bool
    kind: str
    length: int | None  # None: the body comes in chunks


class Incoming:
    """Bytes in, whole requests out. `go_on` is called when a client waits for leave to send its body (`Expect: 100-continue`)."""

    def __init__(self, go_on: Callable[[], None]) -> None:
        self._go_on = go_on
        self._received = bytearray()
        self._chunks = bytearray()
        self._head: _Head | None = None

    def feed(self, data: bytes) -> None:
        self._received += data
        if len(self._received) + len(self._chunks) > _LONGEST:
            raise Unreadable

    def take(self) -> tuple[Request, bool] | None:
        """(the next request, whether its connection ends with it); None until it is whole. Raises Unreadable."""
        if self._head is None:
            self._head = self._read_head()
        if self._head is None or (body := self._body(self._head.length)) is None:
            return None
        head, self._head = self._head, None
        path, _, query = head.target.partition("?")
        return Request(head.verb, urllib.parse.unquote(path), query, head.kind, body), head.closes

    def _read_head(self) -> _Head | None:
        while self._received.startswith((b"\r", b"\n")):  # a blank line before the request is allowed
            del self._received[:1]
        if self._received and not self._received[:1].isalpha():  # such as TLS: waiting for more would hang the client
            raise Unreadable
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return None
        lines = self._received[:end].decode("latin-1").split("\r\n")
        del self._received[: end + 4]
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        head = _head(lines[0].split(" "), headers)
        if headers.get("expect", "").lower() == "100-continue":
            self._go_on()
        return head

    def _body(self, length: int | None) -> bytes | None:
        if length is None:
            return self._chunked()
        if len(self._received) < length:
            return None
        body = bytes(self._received[:length])
        del self._received[:length]
        return body

    def _chunked(self) -> bytes | None:
        """The chunks that are there move over, until the last, empty one and its trailers have come."""
        while (line := self._received.find(b"\r\n")) >= 0:
            size = _size(self._received[:line])
            if not size:
                if (end := self._received.find(b"\r\n\r\n", line)) < 0:
                    return None
                body = bytes(self._chunks)
                del self._received[: end + 4], self._chunks[:]
                return body
            start, end = line + 2, line + 2 + size
            if len(self._received) < end + 2:
                return None
            self._chunks += self._received[start:end]
            del self._received[: end + 2]
        return None


def _head(words: list[str], headers: dict[str, str]) -> _Head:
    length = headers.get("content-length", "0")
    coding = headers.get("transfer-encoding", "").lower()
    if len(words) != 3 or not length.isdecimal() or int(length) > _LONGEST or coding not in ("", "chunked"):
        raise Unreadable
    target = words[1]
    if "://" in target.partition("?")[0]:  # the whole address stands there when a client thinks that this is its proxy
        target = "/" + target.split("://", 1)[1].partition("/")[2]
    closes = headers.get("connection", "").lower() == "close" or words[2] == "HTTP/1.0"
    return _Head(words[0].upper(), target, closes, headers.get("content-type", ""), None if coding else int(length))


def _size(line: bytearray) -> int:
    digits = bytes(line).partition(b";")[0].strip()
    if not re.fullmatch(rb"[0-9a-fA-F]{1,16}", digits):
        raise Unreadable
    return int(digits, 16)
