"""Sockets: HTTP/1.1 on the loopback by h11, latency and jitter, and a sandbox in a thread of this process.

One event loop in one thread: a request costs one call of `App.respond`, nothing is locked, and a waiting response blocks nobody."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import http
import math
import random
import socket
import threading
import time
import traceback
import urllib.parse
from collections.abc import Callable, Iterator

import h11

from marketing_api.sandbox.app import App, build
from marketing_api.sandbox.control import respond_to_control
from marketing_api.sandbox.options import Options
from marketing_api.sandbox.responses import Request, Response

#: Nobody sends a larger body or longer head; more would be a mistake.
_LONGEST_BODY = 64 * 1024 * 1024
_LONGEST_HEAD = 1024 * 1024

Send = Callable[[Response], None]
#: What is done with a request: sooner or later `Send` is called with its response.
Receive = Callable[[Request, Send], None]


class Connection(asyncio.Protocol):
    """One client connection; requests are handled one after the other, as HTTP/1.1 wants."""

    def __init__(self, receive: Receive, others: set[Connection]) -> None:
        self._receive = receive
        self._others = others
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)
        self._head: h11.Request | None = None
        self._body = bytearray()
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
        self._http.receive_data(data)
        self._next()

    def _next(self) -> None:
        """Receive the next request, if it is whole and the one before has its response."""
        try:
            while (event := self._http.next_event()) not in (h11.NEED_DATA, h11.PAUSED) and not isinstance(event, h11.ConnectionClosed):
                self._take(event)
            if self._http.they_are_waiting_for_100_continue:
                self._write(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
        except h11.RemoteProtocolError:
            self._send(Response(400, b"Bad Request: the sandbox speaks HTTP/1.1 without TLS\n", "text/plain"))

    def _take(self, event: object) -> None:
        if isinstance(event, h11.Request):
            self._head = event
            self._body.clear()
        elif isinstance(event, h11.Data):
            self._body += event.data
            if len(self._body) > _LONGEST_BODY:
                raise h11.RemoteProtocolError("the body is too long", error_status_hint=413)
        elif isinstance(event, h11.EndOfMessage) and self._head is not None:
            self._receive(_request(self._head, bytes(self._body)), self._send)

    def _send(self, response: Response) -> None:
        if self._transport.is_closing():
            return
        if response.mishap in ("reset", "close"):
            self._drop(with_reset=response.mishap == "reset")
            return
        is_cut = response.mishap == "cut"
        headers = [("content-type", response.kind), *response.headers, ("connection", "close" if is_cut else "keep-alive")]
        if isinstance(response.body, bytes):
            headers.append(("content-length", str(len(response.body))))
        head = h11.Response(status_code=response.status, headers=headers, reason=http.HTTPStatus(response.status).phrase.encode())
        if self._head is not None and self._head.method == b"HEAD":
            self._write(head)
            self._done(is_cut=False)
        elif isinstance(response.body, bytes):
            self._write(head, h11.Data(data=response.body[: len(response.body) // 2] if is_cut else response.body))
            self._done(is_cut=is_cut)
        else:
            self._write(head)
            self._streaming = asyncio.ensure_future(self._stream(response.body, is_cut=is_cut))

    async def _stream(self, pieces: Iterator[bytes], *, is_cut: bool) -> None:
        """Piece by piece, as fast as the client reads, and letting other requests in between."""
        for number, piece in enumerate(pieces):
            if is_cut and number == 2:
                break
            self._write(h11.Data(data=piece))
            await asyncio.sleep(0)
            await self._may_write.wait()
            if self._transport.is_closing():
                return
        self._done(is_cut=is_cut)

    def _write(self, *events: h11.InformationalResponse | h11.Response | h11.Data | h11.EndOfMessage) -> None:
        """At once: what is written in parts may arrive in parts."""
        self._transport.write(b"".join(self._http.send(event) or b"" for event in events))

    def _drop(self, *, with_reset: bool) -> None:
        if with_reset:
            linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._transport.abort()
        else:
            self._transport.close()

    def _done(self, *, is_cut: bool) -> None:
        if not is_cut:
            self._write(h11.EndOfMessage())
        if is_cut or self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self._transport.close()
        else:
            self._http.start_next_cycle()
            self._next()

    def close(self) -> None:
        self._transport.abort()


def _request(head: h11.Request, body: bytes) -> Request:
    target = head.target.decode("latin-1")
    if "://" in target.partition("?")[0]:  # the whole address stands there when a client thinks that this is its proxy
        target = "/" + target.split("://", 1)[1].partition("/")[2]
    path, _, query = target.partition("?")
    kind = next((value.decode("latin-1") for name, value in head.headers if name == b"content-type"), "")
    return Request(head.method.decode("ascii").upper(), urllib.parse.unquote(path), query, kind, body)


def drawn_delay(median_and_p99: tuple[float, float], chance: random.Random) -> float:
    """Seconds, log-normal, from the median and the 99th percentile in milliseconds."""
    median, p99 = median_and_p99
    if not median:
        return 0.0
    return median * math.exp(math.log(max(p99, median) / median) / 2.326 * chance.gauss(0, 1)) / 1000


class Server:
    """The listening socket and the loop's side of every request."""

    def __init__(self, app: App, options: Options) -> None:
        self.app = app
        self._options = options
        self._connections: set[Connection] = set()
        self._chance = random.Random(options.seed)

    async def run_until(self, stop: asyncio.Event, started: Callable[[str], None]) -> None:
        """Serve until `stop` is set; `started` is given the base address that clients are configured with."""
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._receive, self._connections), "127.0.0.1", self._options.port, backlog=512
        )
        try:
            started(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/1")
            await stop.wait()
        finally:
            server.close()
            for connection in list(self._connections):
                connection.close()
            if self.app.journal is not None:
                self.app.journal.close()

    def _receive(self, request: Request, send: Send) -> None:
        """Count a request and respond, after the jitter of its arrival and with the latency of its response."""
        if request.path.startswith("/sandbox"):
            send(respond_to_control(self.app, request, time.time()))
        elif jitter := drawn_delay(self._options.jitter_ms, self._chance):
            asyncio.get_running_loop().call_later(jitter, self._respond, request, send)
        else:
            self._respond(request, send)

    def _respond(self, request: Request, send: Send) -> None:
        try:
            response = self.app.respond(request, time.time())
        except Exception:  # a mistake in a rule costs this response, not the server
            traceback.print_exc()
            response = Response(500, b"the sandbox failed, see its standard error", "text/plain")
        wait = response.wait + drawn_delay(self._options.latency_ms, self._chance)
        if wait:
            asyncio.get_running_loop().call_later(wait, send, response)
        else:
            send(response)


@contextlib.contextmanager
def serve(options: Options | None = None) -> Iterator[str]:
    """A sandbox in a thread of this process for the length of a `with`; yields its base address (`http://127.0.0.1:PORT/1`)."""
    options = options or Options()
    server = Server(build(options), options)
    started: concurrent.futures.Future[tuple[str, Callable[[], object]]] = concurrent.futures.Future()

    async def work() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        await server.run_until(stop, lambda url: started.set_result((url, lambda: loop.call_soon_threadsafe(stop.set))))

    def body() -> None:
        try:
            asyncio.run(work())
        except BaseException as problem:
            if started.done():
                raise
            started.set_exception(problem)  # whatever prevented the start is raised by `serve`

    thread = threading.Thread(target=body, name="sandbox", daemon=True)
    thread.start()
    url, end = started.result()
    try:
        yield url
    finally:
        end()
        thread.join()
