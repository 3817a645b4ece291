"""One client connection: requests in and replies out, mishaps included.

Not here: making out requests in what was received (`incoming`), what is answered and when (`server`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator

from marketing_api.sandbox.incoming import Incoming, Unreadable
from marketing_api.sandbox.replies import Reply, Request

_PHRASES = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed", 429: "Too Many Requests"}
_PHRASES |= {500: "Internal Server Error", 502: "Bad Gateway"}

Send = Callable[[Reply], None]
#: What is done with a request: sooner or later `Send` is called with its reply.
Receive = Callable[[Request, Send], None]


class Connection(asyncio.Protocol):
    """One client connection; requests are answered one after the other, as HTTP/1.1 wants."""

    def __init__(self, receive: Receive, others: set[Connection]) -> None:
        self._receive = receive
        self._others = others
        self._incoming = Incoming(lambda: self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n"))
        self._is_busy = False
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._streaming: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._others.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.discard(self)
        self._may_write.set()
        if self._streaming is not None:
            self._streaming.cancel()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        try:
            self._incoming.feed(data)
        except Unreadable:
            self._refuse()
            return
        if not self._is_busy:
            self._next()

    def _next(self) -> None:
        try:
            taken = self._incoming.take()
        except Unreadable:
            self._refuse()
            return
        if taken is None:
            return
        request, closes = taken
        self._is_busy = True
        self._receive(request, lambda reply: self._send(reply, closes=closes, has_body=request.verb != "HEAD"))

    def _refuse(self) -> None:
        self._send(Reply(400, b"Bad Request: the sandbox speaks HTTP/1.1 without TLS\n", "text/plain"), closes=True)

    def _send(self, reply: Reply, *, closes: bool, has_body: bool = True) -> None:
        if self._transport.is_closing():
            return
        if reply.mishap in ("reset", "close"):
            self._drop(with_reset=reply.mishap == "reset")
            return
        closes = closes or reply.mishap == "cut"
        head = f"HTTP/1.1 {reply.status} {_PHRASES.get(reply.status, 'Status')}\r\ncontent-type: {reply.kind}\r\n".encode()
        head += reply.headers + (b"connection: close\r\n" if closes else b"connection: keep-alive\r\n")
        if isinstance(reply.body, bytes):
            body = reply.body[: len(reply.body) // 2] if reply.mishap == "cut" else reply.body
            self._transport.write(head + b"content-length: %d\r\n\r\n" % len(reply.body) + (body if has_body else b""))
            self._done(closes)
        elif not has_body:
            self._transport.write(head + b"\r\n")
            self._done(closes)
        else:
            self._transport.write(head + b"transfer-encoding: chunked\r\n\r\n")
            self._streaming = asyncio.ensure_future(self._stream(reply.body, closes, is_cut=reply.mishap == "cut"))

    async def _stream(self, pieces: Iterator[bytes], closes: bool, *, is_cut: bool) -> None:
        """Piece by piece, as fast as the client reads, and letting other requests in between."""
        for number, piece in enumerate(pieces):
            if is_cut and number == 2:
                break
            self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await asyncio.sleep(0)
            await self._may_write.wait()
            if self._transport.is_closing():
                return
        if not is_cut:
            self._transport.write(b"0\r\n\r\n")
        self._done(closes)

    def _drop(self, *, with_reset: bool) -> None:
        if with_reset:
            linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._transport.abort()
        else:
            self._transport.close()

    def _done(self, closes: bool) -> None:
        self._is_busy = False
        if closes:
            self._transport.close()
        else:
            self._next()

    def close(self) -> None:
        self._transport.abort()
