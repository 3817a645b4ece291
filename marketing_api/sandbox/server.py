"""Sockets: HTTP/1.1 on the loopback by h11, latency and jitter; a sandbox in a thread of this process
(`serve`), in a child process (`spawn`), and as a program (`main`).

One event loop in one thread: a request costs one call of `App.respond`, nothing is locked, and a waiting
response blocks nobody."""

import asyncio
import contextlib
import http
import math
import os
import random
import signal
import subprocess
import sys
import time
import traceback
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

import click
import h11

from marketing_api.sandbox.app import App
from marketing_api.sandbox.control import respond_to_control
from marketing_api.sandbox.options import Options, command
from marketing_api.sandbox.responses import Request, Response

#: Bytes; nobody sends a longer head or a larger body.
_LONGEST_HEAD, _LARGEST_BODY = 1024 * 1024, 64 * 1024 * 1024
_PIECE = 64 * 1024

#: What is done with a request; it may take its time.
Respond = Callable[[Request], Awaitable[Response]]


async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, respond: Respond) -> None:
    """One client connection; requests are handled one after the other, as HTTP/1.1 wants."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)
    try:
        while (request := await _receive(connection, reader, writer)) is not None:
            await _send(connection, writer, request.verb, await respond(request))
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                break
            connection.start_next_cycle()
    except h11.RemoteProtocolError:
        refusal = Response(400, b"Bad Request: the sandbox speaks HTTP/1.1 without TLS\n", "text/plain")
        with contextlib.suppress(ConnectionError):
            await _send(connection, writer, "", refusal)
    except ConnectionError:
        pass
    finally:
        writer.close()


async def _receive(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Request | None:
    head, body = None, bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                leave = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
                writer.write(_bytes(connection, leave))
            connection.receive_data(await reader.read(_PIECE))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > _LARGEST_BODY:
                raise h11.RemoteProtocolError("the body is too large")
        elif head is not None and isinstance(event, h11.EndOfMessage):
            return _request(head, bytes(body))
        else:
            return None


async def _send(
    connection: h11.Connection, writer: asyncio.StreamWriter, verb: str, response: Response
) -> None:
    """In one piece: what is written in parts may arrive in parts."""
    if response.mishap or writer.is_closing():
        raise ConnectionAbortedError
    body, reason = response.body, http.HTTPStatus(response.status).phrase.encode()
    headers = [("content-type", response.kind), *response.headers, ("content-length", str(len(body)))]
    written = _bytes(connection, h11.Response(status_code=response.status, headers=headers, reason=reason))
    if verb != "HEAD":
        written += _bytes(connection, h11.Data(data=body))
    writer.write(written + _bytes(connection, h11.EndOfMessage()))
    await writer.drain()


def _bytes(connection: h11.Connection, event: h11.Event) -> bytes:
    return connection.send(event) or b""


def _request(head: h11.Request, body: bytes) -> Request:
    target = head.target.decode("latin-1")
    # The whole address stands there when a client thinks that this is its proxy.
    if "://" in target.partition("?")[0]:
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


@contextlib.asynccontextmanager
async def listening(app: App, options: Options) -> AsyncIterator[str]:
    """Serve for the length of a `with`; yields the base address that clients are configured with.

    Conversations that are under way end with the loop.
    """
    chance = random.Random(options.seed)

    async def respond(request: Request) -> Response:
        """Count a request and respond, after the jitter of its arrival and with the latency of its
        response."""
        if request.path.startswith("/sandbox"):
            return respond_to_control(app, request, time.time())
        if jitter := drawn_delay(options.jitter_ms, chance):
            await asyncio.sleep(jitter)
        try:
            response = app.respond(request, time.time())
        except Exception:  # a mistake in a rule costs this response, not the server
            traceback.print_exc()
            response = Response(500, b"the sandbox failed, see its standard error", "text/plain")
        if wait := response.wait + drawn_delay(options.latency_ms, chance):
            await asyncio.sleep(wait)
        return response

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):  # the loop ends; asyncio would print a traceback
            await converse(reader, writer, respond)

    server = await asyncio.start_server(connected, "127.0.0.1", options.port, backlog=512)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/1"
    finally:
        server.close()
        if app.journal is not None:
            app.journal.close()


@contextlib.contextmanager
def serve(options: Options | None = None, make: Callable[[Options], App] = App) -> Iterator[str]:
    """A sandbox in a thread of this process for the length of a `with`; yields its base address
    (`http://127.0.0.1:PORT/1`)."""
    from anyio.from_thread import start_blocking_portal  # takes 0.1 s, and a server of its own does without

    options = options or Options()
    server = listening(make(options), options)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(server) as url:
        yield url


def run(options: Options, parent: int | None = None, make: Callable[[Options], App] = App) -> int:
    """Serve until Ctrl-C, a termination, or the end of the parent; returns the exit code."""
    app = make(options)

    async def serve() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        if parent:  # Ctrl-C reaches parent and child: the parent may still need responses
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        else:
            loop.add_signal_handler(signal.SIGINT, stop.set)
        async with listening(app, options) as url:
            print(f"sandbox listens at {url}", flush=True)
            print(f"  key {options.key}, {options.contacts} contacts, seed {options.seed}", flush=True)
            while not stop.is_set() and parent in (None, os.getppid()):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), 0.5)

    try:
        asyncio.run(serve())
    except OSError as problem:
        why = os.strerror(problem.errno or 0)
        refusal = f"port {options.port} of this machine cannot be had ({why}); --port takes another"
        print(refusal, file=sys.stderr)
        return 2
    return 0


@contextlib.contextmanager
def spawn(*arguments: str) -> Iterator[str]:
    """A sandbox in a child process for the length of a `with`; yields its base address. The child dies with
    this process."""
    words = [sys.executable, "-m", "marketing_api.sandbox", "--parent", str(os.getpid()), *arguments]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own module
    assert child.stdout is not None
    try:
        line = child.stdout.readline()
        if not line:
            raise RuntimeError(f"the sandbox did not start (exit code {child.wait()})")
        yield line.split()[-1]
    finally:
        child.terminate()
        child.wait()
        child.stdout.close()


def main(argv: Sequence[str] | None = None, epilog: str = "") -> int:
    """Run the command line, whose help ends with the epilog; returns the exit code, 2 for wrong usage."""
    try:
        return int(command(run, epilog).main(argv, "marketing-sync sandbox", standalone_mode=False) or 0)
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
