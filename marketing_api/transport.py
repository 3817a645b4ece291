"""HTTP: sends one request and receives its response. Only this module and `urllib3_internals` use
`requests`.

Redirects are not followed (they could carry the key to another host), netrc is not read, cookies
are not kept. A request that lasts too long is ended: with only a time-out between two bytes, a
response of one byte per second would never end. Not here: what a response means (`validation`,
`parsing`), whether to try again (`retry`), when to send (`rate_limit`)."""

import contextlib
import io
import ipaddress
import os
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import requests
import urllib3
from urllib3.response import MultiDecoder

from marketing_api.envelope import MEDIA_TYPE, SUFFIX, Body, to_utf8
from marketing_api.errors import BrokenResponse, TooLarge, Transient, Unreachable
from marketing_api.operation import Call
from marketing_api.redaction import Redactor, Secret
from marketing_api.urllib3_internals import (
    Request,
    certificate_variable,
    open_pool,
    request_over,
    unpack_pieces,
    with_new_connection,
)

CONNECT_SECONDS = 10.0
SPOOL_BYTES = 4 * 1024 * 1024  # larger bodies go to a file while they arrive
_CHUNK = 256 * 1024
#: Responses shrink to a twentieth when they are packed; if they are full of zeros, to a hundredth.
#: A response that unpacks to more than this many times its size, and is not small, was made to fill
#: a disk. (Deflate's maximum is a thousand.)
MOST_RATIO = 200
SMALL_BYTES = 16 * 1024 * 1024
_HEADERS = {
    "Accept": MEDIA_TYPE,
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": "marketing-sync",
}
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
_FORM = {**_HEADERS, "Content-Type": "application/x-www-form-urlencoded"}


# ---- requests that last too long


#: The least average speed of a response after it has begun, in bytes per second.
SLOWEST = 10_000
#: Multiples of an operation's time-out: when the first bytes of the body must have come, and when
#: all of it must have come.
BEGUN = 2
WHOLE = 10
_LOOK_S = 0.25


@dataclass(slots=True, eq=False)
class UnderWay:
    """A request and how much of its response has come. `is_ended`: it was too slow; `is_sent`: it
    may have had an effect."""

    due: float  # steady clock: when it is too slow if no byte has come
    end: float  # when it is too slow in any case
    received: int = 0
    sock: socket.socket | None = None
    connecting: socket.socket | None = (
        None  # a second handle, since setting up TLS closes the first
    )
    is_ended: bool = False
    is_sent: bool = False

    def end_if_overdue(self, now: float) -> None:
        due = min(self.due + self.received / SLOWEST, self.end)
        if self.is_ended or now < due:
            return
        sock = self.sock or self.connecting
        if sock is None:
            return
        self.is_ended = True
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)  # ends the read of the thread that waits for it


class Watch:
    """Ends requests that are too slow, of several threads with one request each. `close` ends the
    watch's own thread.

    `on_look` is called four times a second from the first request on.
    """

    def __init__(self, on_look: Callable[[], object] = lambda: None) -> None:
        self._on_look = on_look
        self._under_way: set[UnderWay] = set()
        self._lock = threading.Lock()
        #: `request`: the request of this thread; the connection notes its progress there.
        self.mine = threading.local()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    @contextlib.contextmanager
    def watch_request(self, timeout: float) -> Iterator[UnderWay]:
        now = time.monotonic()
        self.mine.request = request = UnderWay(now + BEGUN * timeout, now + WHOLE * timeout)
        with self._lock:
            self._under_way.add(request)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch_requests, name="slow-responses", daemon=True
                )
                self._thread.start()
        try:
            yield request
        finally:
            with self._lock:
                self._under_way.discard(request)
                if request.connecting is not None:
                    request.connecting.close()

    def close(self) -> None:
        self._closing.set()

    def _watch_requests(self) -> None:
        while not self._closing.wait(_LOOK_S):
            with self._lock:
                for request in self._under_way:
                    request.end_if_overdue(time.monotonic())
            self._on_look()


# ---- requests


@dataclass(frozen=True, slots=True)
class Received:
    """The response, in UTF-8 and with the key replaced. With an `error` it is not a whole HTTP
    response, and `body` is the part that came."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body = field(default=b"", repr=False)
    error: Transient | None = None


class _Inflow:
    """A body as it comes in: in memory while small, then in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Any = io.BytesIO()

    def write(self, chunk: bytes) -> None:
        is_large = self._file.tell() + len(chunk) > SPOOL_BYTES
        if is_large and isinstance(self._file, io.BytesIO):
            begun = self._file.getbuffer()
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            descriptor = os.open(self._path, flags, 0o600)
            self._file = os.fdopen(descriptor, "wb")
            self._file.write(begun)
        self._file.write(chunk)

    def cut(self) -> None:
        self._file.truncate(SPOOL_BYTES)

    def finish(self) -> Body:
        if isinstance(self._file, io.BytesIO):
            return self._file.getvalue()
        self._file.close()
        return self._path

    def discard(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


class Transport:
    """Connections to one service with one key, kept open between requests. Thread-safe.

    `spool` is the folder for bodies over `SPOOL_BYTES`; the caller of `send` owns its files. If a
    response, unpacked, has more than `most_bytes`, only the beginning of its body is kept.
    `on_look`: see `Watch`."""

    def __init__(
        self,
        url: str,
        key: Secret,
        *,
        spool: Path,
        connections: int,
        most_bytes: int,
        on_look: Callable[[], object] = lambda: None,
    ) -> None:
        self._url = url
        self._spool = spool
        self._most_bytes = most_bytes
        self._redactor = Redactor(key)
        self._watch = Watch(on_look)
        self._connections = connections
        # never a proxy to this very machine
        is_here = _is_loopback(urllib.parse.urlsplit(url).hostname or "")
        self._open = partial(open_pool, url, key, self._watch.mine, is_here=is_here)
        self._opened = contextlib.ExitStack()

    @cached_property
    def _kept_pool(self) -> urllib3.HTTPConnectionPool:
        return self._opened.enter_context(self._open(self._connections))

    def send(self, call: Call, spool_name: str) -> Received:
        """Send once and read all of the response; `spool_name`: the file for a large body.

        The operation's time-out is the longest pause between two bytes. After twice that time, the
        response must come at a usable speed; after ten times that time, it must be complete."""
        what = call.operation.name
        timeout = call.operation.timeout
        failure: Transient | None = None
        status: int | None = None
        headers: Mapping[str, str] = {}
        body = _Inflow(self._spool / spool_name)
        with self._watch.watch_request(timeout) as under_way, contextlib.ExitStack() as opened:
            try:
                # Writes use a new connection: if the service closed an open one just now, the
                # outcome would be unknown.
                pool = self._kept_pool
                if not call.operation.is_read:
                    pool = opened.enter_context(with_new_connection(pool))
                response = request_over(
                    pool,
                    prepare_request(call, self._url),
                    urllib3.Timeout(connect=CONNECT_SECONDS, read=timeout),
                )
                status = response.status
                headers = response.headers
                self._receive_body(response, body, under_way)
            except TooLarge as found:
                failure = TooLarge(f"{what}: HTTP {status}, {found}")
                body.cut()
            # ValueError: a chunk of -5 bytes
            except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
                failure = _explain_error(error, what, status, timeout)
            except BaseException:
                body.discard()
                raise
        if under_way.is_ended:
            failure = Unreachable(
                f"{what}: {_describe_slowness(under_way, timeout)}", was_sent=under_way.is_sent
            )
        text = to_utf8(body.finish(), headers.get("Content-Type", ""))
        return Received(status, headers, text, failure)

    def _receive_body(
        self, response: urllib3.BaseHTTPResponse, body: _Inflow, under_way: UnderWay
    ) -> None:
        packed = response.stream(_CHUNK, decode_content=False)
        encodings = response.headers.get("Content-Encoding", "")
        unpacked = _unpack_chunks(packed, encodings, self._most_bytes)
        with contextlib.closing(response):
            # An announcement (1xx). The real response would be taken for that of the next call. So
            # the connection is closed before reading ends, which would hand it to the next call.
            if response.status < 200:
                raise urllib3.exceptions.ProtocolError("an announcement instead of a response")
            for chunk in self._redactor.redact_stream(unpacked):
                under_way.received += len(chunk)
                body.write(chunk)

    def close(self) -> None:
        self._watch.close()
        self._opened.close()


def prepare_request(call: Call, base_url: str) -> Request:
    """`base_url` up to and including `/1`. Parameters of a GET go into the query, those of a POST
    into the form body."""
    url = f"{base_url}/{call.operation.name}{SUFFIX}"
    params = urllib.parse.urlencode(call.params)
    if call.operation.method == "GET":
        if params:
            url += f"?{params}"
        return Request("GET", url, _HEADERS)
    headers = {**_FORM, "Content-Length": str(len(params))}
    return Request(call.operation.method, url, headers, params.encode() or None)


def _unpack_chunks(chunks: Iterable[bytes], encodings: str, most_bytes: int) -> Iterator[bytes]:
    """The chunks unpacked, in pieces of limited size. Raises TooLarge and DecodeError."""
    names = [encoding.strip() for encoding in encodings.lower().split(",")]
    names = [name for name in names if name not in ("", "identity")]
    decoder = None
    # We request no other encoding, so a body with another one stays unchanged.
    if names and _PACKED.issuperset(names):
        decoder = MultiDecoder(",".join(names))
    came = size = 0
    for chunk in chunks:
        came += len(chunk)
        for piece in unpack_pieces(decoder, chunk, _CHUNK) if decoder else (chunk,):
            size += len(piece)
            if size > most_bytes:
                raise TooLarge(
                    f"a response of more than {most_bytes:,} bytes (MARKETING_BODY_LIMIT allows "
                    "more)"
                )
            if size > max(SMALL_BYTES, came * MOST_RATIO):
                raise TooLarge(f"a response that unpacks to more than {MOST_RATIO} times its size")
            yield piece


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


#: Why nothing was sent; special kinds before general ones.
_NOT_CONNECTED: tuple[tuple[type[Exception], str], ...] = (
    (ssl.SSLCertVerificationError, "the service's certificate is not valid here"),
    (urllib3.exceptions.NameResolutionError, "the host name cannot be resolved"),
    (urllib3.exceptions.ProxyError, "the proxy cannot be used"),
    (urllib3.exceptions.NewConnectionError, "the connection was refused"),
    (urllib3.exceptions.ConnectTimeoutError, f"no connection within {CONNECT_SECONDS:g} s"),
)


def _describe_slowness(under_way: UnderWay, timeout: float) -> str:
    if not under_way.is_sent:
        return f"the connection was not established within {BEGUN * timeout:g} s"
    if time.monotonic() < under_way.end:
        return "the response came too slowly"
    return f"the response was not complete after {WHOLE * timeout:g} s"


def _explain_error(error: Exception, what: str, status: int | None, timeout: float) -> Transient:
    """In our own words: the texts of the libraries contain addresses and parameters."""
    causes = list(_list_causes(error))
    if any(isinstance(cause, urllib3.exceptions.ReadTimeoutError) for cause in causes):
        return Unreachable(f"{what}: no byte came for {timeout:g} s", was_sent=True)
    if status is not None:
        return BrokenResponse(f"{what}: HTTP {status}, the response broke off")
    for kind, words in _NOT_CONNECTED:
        if any(isinstance(cause, kind) for cause in causes):
            advice = ""
            if kind is ssl.SSLCertVerificationError:
                advice = _advise_on_certificates()
            return Unreachable(f"{what}: {words}{advice}", was_sent=False)
    return Unreachable(f"{what}: the connection broke before a response came", was_sent=True)


def _advise_on_certificates() -> str:
    variable = certificate_variable()
    if variable:
        return (
            f" among the certificates that {variable} names: add those of the service's authority "
            "there"
        )
    return "; set SSL_CERT_FILE to the certificates of its own authority"


def _list_causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what it wraps in its arguments, and what it wraps as `reason`."""
    yield error
    for inner in (*error.args, getattr(error, "reason", None)):
        if isinstance(inner, BaseException):
            yield from _list_causes(inner)
