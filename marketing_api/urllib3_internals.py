"""Code that uses private parts of `urllib3` and `requests`. A test names the versions that it was
written for.

There are three reasons:
- The connection itself adds the key to the request line, as the last step. So neither library ever
  has an address with the key, and their logs, exceptions and reprs cannot leak it.
- The watch must know when a request leaves, and over which socket.
- `requests` prepares, checks and looks up so much for each request that it is a third of its cost.
  Here it only finds proxies and certificates."""

import copy
import os
import queue
import socket
import threading
import urllib.parse
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
import urllib3
import urllib3.response
from requests.adapters import HTTPAdapter

from marketing_api.redaction import Secret

#: Variables that name trusted certificates, the one that wins first: two of `requests`, two of
#: OpenSSL.
_CERTIFICATE_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")


def certificate_variable() -> str:
    """The variable that names the trusted certificates; empty where none is set."""
    return next((name for name in _CERTIFICATE_VARIABLES if os.environ.get(name)), "")


def open_pool(
    url: str, key: Secret, mine: threading.local, connections: int, *, is_here: bool
) -> urllib3.HTTPConnectionPool:
    """Connections to one service that add the key to the request line, and note the progress of
    their thread's request in `mine.request`.

    The certificate bundle and proxies come from the environment, as with other tools. If the
    service `is_here`, on this machine, no proxy is used."""
    with requests.Session() as session:
        settings = session.merge_environment_settings(url, {}, None, None, None)
    verify = settings["verify"]
    proxies = {} if is_here else settings["proxies"]
    variable = certificate_variable()
    # `requests` only knows its own variables
    if verify is True and variable:
        verify = os.environ[variable]
    adapter = HTTPAdapter(pool_connections=1, pool_maxsize=connections)
    request = requests.Request("GET", url).prepare()
    pool: Any = adapter.get_connection_with_tls_context(request, verify, proxies)
    try:
        adapter.cert_verify(pool, url, verify, None)  # type: ignore[no-untyped-call]
        if pool.scheme == "https":
            _read_certificates_once(pool)
    except OSError as error:
        named = "the system's bundle"
        if certificate_variable():
            named = f"{certificate_variable()}={verify}"
        raise OSError(f"{named} holds no certificates") from error
    query = "key=" + urllib.parse.quote(key.reveal(), safe="")
    pool.ConnectionCls = _make_keyed(pool.ConnectionCls, query, mine)
    return pool  # type: ignore[no-any-return]


def _read_certificates_once(pool: Any) -> None:
    """Each connection would read the bundle again, in 20 ms of processor time: six times as long as
    the rest of a write."""
    context = urllib3.util.ssl_.create_urllib3_context()
    context.load_verify_locations(pool.ca_certs, pool.ca_cert_dir)
    pool.ca_certs = pool.ca_cert_dir = None
    pool.conn_kw["ssl_context"] = context
    if pool.proxy_config is not None:  # of one that is reached over TLS
        pool.conn_kw["proxy_config"] = pool.proxy_config._replace(ssl_context=context)


def with_new_connection(pool: urllib3.HTTPConnectionPool) -> urllib3.HTTPConnectionPool:
    """A pool like this one, with a single connection that is not open yet. Finding proxies and
    certificates again would cost as much as the request."""
    new = copy.copy(pool)
    new.pool = queue.LifoQueue(1)
    new.pool.put(None)
    return new


def _make_keyed(kind: Any, query: str, mine: threading.local) -> Any:
    class Keyed(kind):  # type: ignore[misc]
        debuglevel = 0  # http.client would print request lines

        def putrequest(self, method: str, url: str, *args: Any, **options: Any) -> None:
            mine.request.is_sent = True  # it may leave from now on
            separator = "&" if "?" in url else "?"
            super().putrequest(method, f"{url}{separator}{query}", *args, **options)

        def _new_conn(self) -> Any:
            sock = super()._new_conn()
            mine.request.connecting = sock.dup()  # TLS may still have to be set up over it
            return sock

        def getresponse(self) -> Any:
            is_plain = isinstance(self.sock, socket.socket)
            mine.request.sock = (
                self.sock if is_plain else self.sock.socket
            )  # TLS to a proxy wraps it
            return super().getresponse()

    return Keyed


@dataclass(frozen=True, slots=True)
class Request:
    """A request without the key."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str]
    body: bytes | None = field(default=None, repr=False)


def request_over(
    pool: urllib3.HTTPConnectionPool, request: Request, timeout: urllib3.Timeout
) -> urllib3.BaseHTTPResponse:
    """The response as far as its headers. A proxy without a tunnel needs the whole address in the
    request line."""
    is_proxied = pool.proxy is not None and pool.scheme == "http"
    target = request.url
    if not is_proxied:
        target = urllib3.util.parse_url(request.url).request_uri
    options: dict[str, Any] = {
        "retries": False,
        "redirect": False,
        "assert_same_host": False,
        "preload_content": False,
    }
    return pool.urlopen(
        request.method, target, request.body, request.headers, timeout=timeout, **options
    )


def unpack_pieces(
    decoder: urllib3.response.MultiDecoder, chunk: bytes, piece_bytes: int
) -> Iterator[bytes]:
    """A chunk of a packed body, unpacked in pieces of limited size. Raises urllib3's
    DecodeError."""
    try:
        piece = decoder.decompress(chunk, max_length=piece_bytes)
        while piece or decoder.has_unconsumed_tail:
            yield piece
            piece = decoder.decompress(b"", max_length=piece_bytes)
    except zlib.error as error:
        raise urllib3.exceptions.DecodeError("not packed as it says") from error
