"""Sockets: HTTP/1.1 on the loopback, latency and jitter, and the ways to start and stop a sandbox.

One event loop in one thread: a request costs one call of `App.answer`, nothing is locked, and a waiting answer blocks nobody.
Not here: what is answered (`app`), command-line options (`cli`).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import socket
import threading
import time
import traceback
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from marketing_api.sandbox.app import App, Reply, Request
from marketing_api.sandbox.control import answer_control
from marketing_api.sandbox.options import Options, build

_PHRASES = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed", 429: "Too Many Requests"}
_PHRASES |= {500: "Internal Server Error", 502: "Bad Gateway"}
Send = Callable[[Reply], None]
Started = Callable[[str], None]
#: Nobody sends a larger request; more would be a mistake.
_LONGEST_REQUEST = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Delay:
    """A log-normal delay in milliseconds, given by its median and 99th percentile."""

    median: float = 0.0
    p99: float = 0.0

    def draw(self, chance: random.Random) -> float:
        """Seconds."""
        if not self.median:
            return 0.0
        spread = math.log(max(self.p99, self.median) / self.median) / 2.326
        return self.median * math.exp(spread * chance.gauss(0, 1)) / 1000


class _Connection(asyncio.Protocol):
    """One client connection; requests are answered one after the other, as HTTP/1.1 wants."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._received = bytearray()
        self._is_busy = False
        self._is_closing = False
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._streaming: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self._may_write.set()
        if self._streaming is not None:
            self._streaming.cancel()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._is_busy:
            self._next()

    def _next(self) -> None:
        head_end = self._received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        lines = self._received[:head_end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        words = lines[0].split(" ")
        length = headers.get("content-length", "0")
        if len(words) != 3 or not length.isdecimal() or int(length) > _LONGEST_REQUEST or "transfer-encoding" in headers:
            self._send(Reply(400, b"Bad Request", "text/plain"), closes=True)
            return
        if headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        end = head_end + 4 + int(length)
        if len(self._received) < end:
            return
        body = bytes(self._received[head_end + 4 : end])
        del self._received[:end]
        self._is_busy = True
        path, _, query = words[1].partition("?")
        closes = headers.get("connection", "").lower() == "close" or words[2] == "HTTP/1.0"
        request = Request(words[0].upper(), urllib.parse.unquote(path), query, headers.get("content-type", ""), body)
        self._server.receive(request, lambda reply: self._send(reply, closes=closes))

    def _send(self, reply: Reply, *, closes: bool = False) -> None:
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
            self._transport.write(head + b"content-length: %d\r\n\r\n" % len(reply.body) + body)
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
        elif self._received:
            self._next()

    def close(self) -> None:
        self._transport.abort()


class Server:
    """The listening socket and the loop's side of every request."""

    def __init__(self, app: App, options: Options) -> None:
        self.app = app
        self.connections: set[_Connection] = set()
        self._latency = Delay(*options.latency_ms)
        self._jitter = Delay(*options.jitter_ms)
        self._chance = random.Random(options.seed)
        self._port = options.port
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Listen, and return the base address that clients are configured with."""
        self._server = await asyncio.get_running_loop().create_server(lambda: _Connection(self), "127.0.0.1", self._port, backlog=512)
        self._port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{self._port}/1"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.close()
        if self.app.journal is not None:
            self.app.journal.close()

    def receive(self, request: Request, send: Send) -> None:
        """Count and answer a request, after the jitter of its arrival and with the latency of its answer."""
        if request.path.startswith("/sandbox"):
            send(answer_control(self.app, request, time.time()))
        elif jitter := self._jitter.draw(self._chance):
            asyncio.get_running_loop().call_later(jitter, self._answer, request, send)
        else:
            self._answer(request, send)

    def _answer(self, request: Request, send: Send) -> None:
        try:
            reply = self.app.answer(request, time.time())
        except Exception:  # a mistake in a rule costs this answer, not the server
            traceback.print_exc()
            reply = Reply(500, b"the sandbox failed, see its standard error", "text/plain")
        wait = reply.wait + self._latency.draw(self._chance)
        if wait:
            asyncio.get_running_loop().call_later(wait, send, reply)
        else:
            send(reply)


async def run_until(server: Server, stop: asyncio.Event, started: Started) -> None:
    """Serve until `stop` is set; `started` is given the base address."""
    started(await server.start())
    try:
        await stop.wait()
    finally:
        await server.stop()


@contextlib.contextmanager
def serve(options: Options | None = None) -> Iterator[str]:
    """A sandbox in a thread of this process for the length of a `with`; yields its base address (`http://127.0.0.1:PORT/1`)."""
    chosen = options or Options()
    server = Server(build(chosen), chosen)
    ready = threading.Event()
    box: dict[str, object] = {}

    async def main() -> None:
        stop = asyncio.Event()
        box["loop"], box["stop"] = asyncio.get_running_loop(), stop

        def started(url: str) -> None:
            box["url"] = url
            ready.set()

        await run_until(server, stop, started)

    def body() -> None:
        try:
            asyncio.run(main())
        except BaseException as problem:  # told to whoever waits for the start
            box["problem"] = problem
            ready.set()

    thread = threading.Thread(target=body, name="sandbox", daemon=True)
    thread.start()
    ready.wait()
    if isinstance(problem := box.get("problem"), BaseException):
        raise problem
    try:
        yield str(box["url"])
    finally:
        loop, stop = box["loop"], box["stop"]
        assert isinstance(loop, asyncio.AbstractEventLoop)
        assert isinstance(stop, asyncio.Event)
        loop.call_soon_threadsafe(stop.set)
        thread.join()
