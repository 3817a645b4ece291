"""What reaches into `urllib3` and `requests` beneath their public interfaces. A test names the versions that this was written for.

Why: the key is added to the request line by the connection itself, as the very last step, so that neither library ever has an
address with the key in it (their logs, exceptions and reprs cannot leak it); the watch has to know when a request leaves, and
over which socket; and what `requests` would prepare, check and look up again is a third of a request's cost.
"""

import socket
import urllib.parse
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import requests
import urllib3
import urllib3.response
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict

from marketing_api.redaction import Secret
from marketing_api.watchdog import Watch


class KeyedAdapter(HTTPAdapter):
    """Connections to one service that write the key into the request line themselves."""

    def __init__(self, key: Secret, watch: Watch, **options: Any) -> None:
        self._watch = watch
        self._query = "key=" + urllib.parse.quote(key.reveal(), safe="")
        self._pool: Any = None
        super().__init__(**options)

    def get_connection_with_tls_context(self, *args: Any, **options: Any) -> Any:
        """The one pool there is (one service, one proxy); looking it up would cost a fifth of a request."""
        if self._pool is None:
            pool: Any = super().get_connection_with_tls_context(*args, **options)
            pool.ConnectionCls = _keyed(pool.ConnectionCls, self._query, self._watch)
            self._pool = pool
        return self._pool

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
        self._pool = None
        super().close()


def _keyed(kind: Any, query: str, watch: Watch) -> Any:
    class Keyed(kind):  # type: ignore[misc]
        debuglevel = 0  # http.client would print request lines

        def putrequest(self, method: str, url: str, *args: Any, **options: Any) -> None:
            watch.mine.request.is_sent = True  # it may leave from now on
            super().putrequest(method, f"{url}{'&' if '?' in url else '?'}{query}", *args, **options)

        def _new_conn(self) -> Any:
            sock = super()._new_conn()
            watch.mine.request.connecting = sock.dup()  # TLS may still have to be agreed over it
            return sock

        def getresponse(self) -> Any:
            watch.mine.request.sock = plain_socket(self.sock)
            return super().getresponse()

    return Keyed


def ready_request(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> requests.PreparedRequest:
    """A request as it is: preparing would check and parse again what was put together a moment ago."""
    request = requests.PreparedRequest()
    request.method, request.url, request.body = method, url, body
    request.headers = CaseInsensitiveDict(headers)
    return request


def environment_settings(url: str) -> dict[str, Any]:
    """Proxies and certificate bundle as other tools take them from the environment."""
    with requests.Session() as session:
        found = session.merge_environment_settings(url, {}, None, None, None)
    return {"verify": found["verify"], "proxies": found["proxies"]}


def plain_socket(sock: Any) -> socket.socket:
    """The socket that carries the bytes: TLS to a proxy wraps it in another way."""
    plain: socket.socket = sock if isinstance(sock, socket.socket) else sock.socket
    return plain


class Decoder:
    """Unpacks a body in limited pieces, however much one byte stands for. Raises urllib3's DecodeError."""

    def __init__(self, encodings: str, piece_bytes: int) -> None:
        self._decoder = urllib3.response.MultiDecoder(encodings)
        self._piece_bytes = piece_bytes

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        try:
            while (piece := self._decoder.decompress(chunk, max_length=self._piece_bytes)) or self._decoder.has_unconsumed_tail:
                chunk = b""
                yield piece
        except zlib.error as problem:
            raise urllib3.exceptions.DecodeError("not packed as it says") from problem
