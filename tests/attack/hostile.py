"""A service that stalls, trickles, floods, refuses for ever or asks to wait for ten years: each ends in time,
and says why.

Times of the client are divided by `FASTER` (1: as in life, which takes hours). Every behaviour is met by an
account that was answered before and by one that never was. Asserts: it ends within the time that is stated
for it; a line says what is waited for at least once a minute; every request is recorded; no error is of a
type that is not ours."""

import contextlib
import dataclasses
import itertools
import json
import logging
import random
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from marketing_api.client import Client, Connection, Secret
from marketing_api.errors import MarketingApiError
from marketing_api.exchange import Exchange
from marketing_api.operation import Operation
from marketing_api.operations import account, contacts
from marketing_api.rate_limit import RateLimiter
from marketing_api.worker_pool import Failure
from tests.marketing_api.raw_server import RawServer, http
from tests.marketing_api.scripted_server import UNLIMITED

FASTER = 100.0
#: Seconds, as in life, within which an account without any answer is through with all its questions:
#: `retry.SILENCE`, the last tries under way, and those of a listing in its long time-out. Of what is answered
#: now and then, the same.
BOUND = 900.0
#: Seconds without a line while nothing is answered.
SILENT = 60.0
QUESTIONS = 40
TEN_YEARS = 10 * 365 * 86_400

#: Module constants that are seconds, and one that is bytes a second.
_OF_RETRY = ("LONGEST_CALL_S", "FIRST_PAUSE", "LONGEST_PAUSE", "LONGEST_OUTAGE", "_PROBE_INTERVAL_S")
_OF_RETRY += ("SILENCE", "FIRST_LOG_S", "LOG_INTERVAL_S", "_IDLE_S")
_SECONDS = ("transport.CONNECT_SECONDS", "transport._LOOK_S", "pacing.LONGEST_HOLD")
_SECONDS += tuple(f"retry.{name}" for name in _OF_RETRY)


@contextlib.contextmanager
def faster(factor: float) -> Iterator[None]:
    """The client's patience divided by `factor`; windows of the limit stay a second."""
    with contextlib.ExitStack() as stack:
        for name in _SECONDS:
            module, _, constant = name.rpartition(".")
            loaded = __import__(f"marketing_api.{module}", fromlist=[constant])
            stack.enter_context(mock.patch.object(loaded, constant, getattr(loaded, constant) / factor))
        stack.enter_context(mock.patch("marketing_api.transport.SLOWEST", 10_000 * factor))
        yield


def sped(operation: Operation, factor: float) -> Operation:
    return dataclasses.replace(operation, timeout=operation.timeout / factor)


# --- what a service may do with one connection, or with one request ---


class Hostile(RawServer):
    """Answers the first `whole` requests; then `misbehave` gets the connection, unread if `is_mute`."""

    def __init__(
        self,
        misbehave: Callable[["Hostile", socket.socket, bytes], bool],
        whole: int,
        factor: float,
        *,
        is_mute: bool = False,
    ) -> None:
        super().__init__(self._answer)
        self.gap = 10 / factor  # seconds between two bytes of what trickles
        self.factor = factor
        self._misbehave, self._whole, self._is_mute = misbehave, whole, is_mute
        self._held: list[socket.socket] = []

    def _serve(self, connection: socket.socket) -> None:
        if not self._is_mute:
            super()._serve(connection)
            return
        with connection, contextlib.suppress(OSError):
            self._misbehave(self, connection, b"")

    def _answer(self, connection: socket.socket, before: int) -> bool:
        request = self.requests[-1]
        if before < self._whole:
            connection.sendall(http(whole_answer(request)))
            return True
        return self._misbehave(self, connection, request)

    def wait(self) -> bool:
        """Say nothing until the test is over."""
        self.closing.wait()
        return False


def whole_answer(request: bytes, **rate: object) -> bytes:
    """To `app/me` and to a timeline."""
    path, _, query = request.split(b" ")[1].partition(b"?")
    if path.endswith(b"app/me.json"):
        data: dict[str, object] = {"business": {"businessName": "Harbor", "id": "1"}}
    else:
        contact = dict(pair.split("=") for pair in query.decode().split("&")).get("id", "1")
        data = {"id": contact, "timeline": [], "count": 0, "total": 0}
    return json.dumps(
        {"response": {"header": {"status": "ok"}, "data": data}, "rate-limit": UNLIMITED | rate}
    ).encode()


def silence(server: Hostile, connection: socket.socket, request: bytes) -> bool:
    return server.wait()


def trickle(
    raw: Callable[[bytes], bytes], at_once: int = 0
) -> Callable[[Hostile, socket.socket, bytes], bool]:
    def send(server: Hostile, connection: socket.socket, request: bytes) -> bool:
        answer = raw(request)
        connection.sendall(answer[:at_once])
        for byte in itertools.chain(answer[at_once:], itertools.repeat(32)):
            connection.sendall(bytes([byte]))
            if server.closing.wait(server.gap):
                break
        return False

    return send


def flood(head: bytes, piece: bytes, every: float) -> Callable[[Hostile, socket.socket, bytes], bool]:
    """`piece` for ever, `every` so many seconds as in life."""

    def send(server: Hostile, connection: socket.socket, request: bytes) -> bool:
        connection.sendall(head)
        while not server.closing.wait(every / server.factor):
            connection.sendall(piece)
        return False

    return send


def half_closed(server: Hostile, connection: socket.socket, request: bytes) -> bool:
    connection.shutdown(socket.SHUT_WR)
    return server.wait()


def always(status: str, *lines: str, body: bytes = b"") -> Callable[[Hostile, socket.socket, bytes], bool]:
    def send(server: Hostile, connection: socket.socket, request: bytes) -> bool:
        connection.sendall(http(body, status, *lines))
        return True

    return send


def limited(**rate: object) -> bytes:
    """The body of a 429."""
    error = {"errorCode": 429, "errorMessage": "limit"}
    return json.dumps(
        {"response": {"header": {"status": "error"}, "data": error}, "rate-limit": {"limit": 15, **rate}}
    ).encode()


def another_subject(server: Hostile, connection: socket.socket, request: bytes) -> bool:
    connection.sendall(http(whole_answer(request.replace(b"id=", b"id=9%d" % len(server.requests)))))
    return True


def whole_with(**rate: object) -> Callable[[Hostile, socket.socket, bytes], bool]:
    def send(server: Hostile, connection: socket.socket, request: bytes) -> bool:
        connection.sendall(http(whole_answer(request, **rate)))
        return True

    return send


def now_and_then(
    bad: Callable[[Hostile, socket.socket, bytes], bool], every: int
) -> Callable[[Hostile, socket.socket, bytes], bool]:
    def send(server: Hostile, connection: socket.socket, request: bytes) -> bool:
        if len(server.requests) % every == 0:
            return bad(server, connection, request)
        connection.sendall(http(whole_answer(request)))
        return True

    return send


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
Misbehave = Callable[[Hostile, socket.socket, bytes], bool]

BEHAVIOURS: dict[str, Misbehave] = {
    "accepts and says nothing": silence,
    "half-closed": half_closed,
    "headers, a byte in 10 s": trickle(lambda request: http(whole_answer(request))),
    "a body, a byte in 10 s": trickle(lambda request: http(whole_answer(request), length=10**9), 90),
    "endless body, 20 kB a second": flood(_HEAD + b"Content-Length: 999999999999\r\n\r\n", b" " * 20_000, 1),
    "endless chunks, 20 kB a second": flood(_CHUNKED, b"4e20\r\n" + b" " * 20_000 + b"\r\n", 1),
    "endless chunks of gzip that hold nothing": flood(
        _HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\n\0\0\0\xff\xff\r\n", 1
    ),
    "endless trailers": flood(_CHUNKED + b"2\r\n{}\r\n0\r\n", b"X-More: y\r\n", 1),
    "100 Continue for ever": flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 1),
    "429 for ever": always("429 Too Many", body=limited(remaining=0, reached=1)),
    "429, Retry-After ten years": always(
        "429 Too Many", f"Retry-After: {TEN_YEARS}", body=limited(reached=1)
    ),
    "429, Retry-After a date in ten years": always(
        "429 Too Many", "Date: Sun, 22 Nov 2026 10:00:00 GMT", "Retry-After: Sat, 22 Nov 2036 10:00:00 GMT"
    ),
    "429, Retry-After in a year without end": always(
        "429 Too Many",
        "Date: Sun, 22 Nov 2026 10:00:00 GMT",
        f"Retry-After: Sat, 22 Nov {'9' * 30} 10:00:00 GMT",
    ),
    "429, Retry-After negative": always("429 Too Many", "Retry-After: -5", body=limited(reached=1, after=-5)),
    "429, Retry-After NaN": always(
        "429 Too Many", "Retry-After: NaN", body=limited(reached=1).replace(b'"limit": 15', b'"after": NaN')
    ),
    "429, Retry-After of 5,000 digits": always("429 Too Many", "Retry-After: " + "9" * 5000),
    "429, reset in the year 9999": always(
        "429 Too Many", body=limited(remaining=0, reached=1, reset=253402300799, after=253402300799)
    ),
    "503 with Retry-After for ever": always(
        "503 Unavailable", "Retry-After: 3600", body=b"<html>back soon</html>"
    ),
    "every answer is to another question": another_subject,
    "401 now and then": now_and_then(always("401 Unauthorized", body=b"<html>who are you</html>"), 7),
    "every third request stalls": now_and_then(silence, 3),
    "limit 0": whole_with(limit=0, remaining=0),
    "limit -1": whole_with(limit=-1, remaining=-1, requests=-7),
    "limit 1e9": whole_with(limit=1_000_000_000),
    "limit of 400 digits": whole_with(limit=int("9" * 400), requests=int("9" * 400)),
    "remaining stuck at 0, reset in the year 9999": whole_with(
        limit=1000, remaining=0, reset=253402300799, after=TEN_YEARS
    ),
}
#: What happens before a request can be sent: `connect`, `tls`, or a byte in 10 s of the agreement on TLS.
BEFORE = ("a connect that hangs", "TLS hangs", "TLS, a byte in 10 s")


@contextlib.contextmanager
def served(name: str, whole: int, factor: float) -> Iterator[tuple[str, list[bytes]]]:
    """The address of a service of this behaviour, and its list of requests."""
    if name == "a connect that hangs":
        with full_backlog() as url:
            yield url, []
        return
    misbehave = BEHAVIOURS.get(name, silence)
    if name == "TLS, a byte in 10 s":
        misbehave = trickle(lambda request: b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc" + bytes(16_000), 1)
    with Hostile(misbehave, whole, factor, is_mute=name in BEFORE) as server:
        yield (server.url.replace("http:", "https:") if name in BEFORE else server.url), server.requests


@contextlib.contextmanager
def full_backlog() -> Iterator[str]:
    """A port whose queue of connections is full: the next one gets no answer at all."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        time.sleep(0.05)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/1"


# --- what the client makes of it ---


@dataclass
class Met:
    """`seconds`, and `longest`, the longest time without a line until the end, as without `factor`."""

    name: str
    was_answered: bool
    seconds: float
    longest: float
    answered: int
    recorded: int
    reasons: list[str]
    lines: list[str] = field(default_factory=list)

    @property
    def row(self) -> str:
        said = self.lines[-1].partition(": ")[2] if self.lines else "–"
        ended = self.reasons[-1] if self.reasons else "all answered"
        before = "answered before" if self.was_answered else "never answered"
        return f"| {self.name}, {before} | {self.seconds:,.0f} s | {self.longest:,.0f} s | {said} | {ended} |"


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.at: list[float] = []
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.at.append(time.monotonic())
        self.lines.append(record.getMessage())


@contextlib.contextmanager
def listening() -> Iterator[_Lines]:
    lines, log = _Lines(), logging.getLogger("marketing_api.retry")
    log.addHandler(lines)
    try:
        yield lines
    finally:
        log.removeHandler(lines)


def meet(name: str, *, was_answered: bool, factor: float, folder: Path) -> Met:
    """Ask `app/me` and forty timelines of such a service."""
    recorded: list[Exchange] = []
    reasons: list[str] = []
    answered_at: list[float] = []
    with faster(factor), listening() as lines, served(name, int(was_answered), factor) as (url, _):
        connection = Connection("main", url, Secret("k3y"))
        began = time.monotonic()
        limiter = RateLimiter(folder / f"pace-{time.monotonic_ns()}")
        with Client(
            connection, limiter, record=recorded.append, spool=folder, first_pause=0.5 / factor
        ) as client:
            try:
                client.fetch(sped(account.ME, factor).bind())
                operation = sped(contacts.TIMELINE, factor)
                for result in client.fetch_many(
                    [operation.bind(id=number) for number in range(1, QUESTIONS + 1)]
                ):
                    answered_at.append(time.monotonic())
                    if isinstance(result, Failure):
                        reasons.append(str(result.error))
            except MarketingApiError as problem:
                reasons.append(str(problem))
            ended = time.monotonic()
    moments = [began, *sorted([*lines.at, *answered_at]), ended]
    longest = max(later - earlier for earlier, later in itertools.pairwise(moments))
    answered = sum(exchange.outcome.value == "ok" for exchange in recorded)
    times = (factor * (ended - began), factor * longest)
    return Met(name, was_answered, *times, answered, len(recorded), reasons, lines.lines)


def judge(met: Met, slack: float) -> None:
    """`slack`: seconds as in life that a busy machine, and windows of a second, add."""
    assert met.seconds <= BOUND + slack, f"{met.name}: lasted {met.seconds:.0f} s"
    assert met.longest <= SILENT + slack, f"{met.name}: {met.longest:.0f} s without a line ({met.lines})"
    if "limit" in met.name.split(",")[0].split() or "remaining" in met.name:
        assert not met.reasons, met


def cases() -> list[tuple[str, bool]]:
    found = [(name, was_answered) for name in BEHAVIOURS for was_answered in (True, False)]
    return [*found, *((name, False) for name in BEFORE)]


def run(chosen: Sequence[tuple[str, bool]], factor: float, slack: float) -> list[Met]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, was_answered in chosen:
            met = meet(name, was_answered=was_answered, factor=factor, folder=Path(folder))
            judge(met, slack)
            found.append(met)
    return found


def attack(minutes: float, seed: int, only: str = "") -> str:
    """Behaviours whose name contains `only`, again and again in an order of the seed, each at least once."""
    every = [case for case in cases() if only in case[0]]
    end, order, found = time.monotonic() + 60 * minutes, random.Random(seed), list[Met]()
    while not found or time.monotonic() < end:
        found += run(order.sample(every, len(every)), FASTER, slack=1.5 * FASTER)
    worst = {(met.name, met.was_answered): met for met in sorted(found, key=lambda met: met.seconds)}
    head = "| behaviour | ends after | longest silence | last line | how it ends |\n|---|---:|---:|---|---|\n"
    return head + "\n".join(worst[case].row for case in every)
