"""Sockets: HTTP/1.1 on the loopback, latency and jitter, and the ways to start and stop a sandbox.

One event loop in one thread: a request costs one call of `App.answer`, nothing is locked, and a waiting answer blocks nobody.
Not here: what is answered (`app`), command-line options (`cli`).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import math
import random
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from marketing_api.sandbox.app import App
from marketing_api.sandbox.connection import Connection, Send
from marketing_api.sandbox.control import answer_control
from marketing_api.sandbox.options import Options, build
from marketing_api.sandbox.replies import Reply, Request


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


Started = Callable[[str], None]


class Server:
    """The listening socket and the loop's side of every request."""

    def __init__(self, app: App, options: Options) -> None:
        self.app = app
        self.connections: set[Connection] = set()
        self._latency = Delay(*options.latency_ms)
        self._jitter = Delay(*options.jitter_ms)
        self._chance = random.Random(options.seed)
        self._port = options.port
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Listen, and return the base address that clients are configured with."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self.receive, self.connections), "127.0.0.1", self._port, backlog=512
        )
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


class _Thread:
    """A server with its loop in a thread of its own."""

    def __init__(self, options: Options) -> None:
        self._server = Server(build(options), options)
        self._started: concurrent.futures.Future[str] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._body, name="sandbox", daemon=True)

    def start(self) -> str:
        """The base address; whatever prevented the start is raised here."""
        self._thread.start()
        return self._started.result()

    def _body(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as problem:
            if self._started.done():
                raise
            self._started.set_exception(problem)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await run_until(self._server, self._stop, self._started.set_result)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


@contextlib.contextmanager
def serve(options: Options | None = None) -> Iterator[str]:
    """A sandbox in a thread of this process for the length of a `with`; yields its base address (`http://127.0.0.1:PORT/1`)."""
    thread = _Thread(options or Options())
    url = thread.start()
    try:
        yield url
    finally:
        thread.stop()
