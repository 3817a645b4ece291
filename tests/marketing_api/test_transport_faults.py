"""Bytes on the wire that are no good answer: each ends in bounded time with the right reason."""

import contextlib
import dataclasses
import datetime as dt
import gzip
import socket
import ssl
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import urllib3
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from marketing_api import transport
from marketing_api.client import Client, Connection, Secret
from marketing_api.errors import BrokenResponse, OutcomeUnknown, Transient, Unreachable
from marketing_api.exchange import Exchange
from marketing_api.operation import Call, Operation
from marketing_api.operations import account, contacts
from marketing_api.rate_limit import RateLimiter
from tests.marketing_api.raw_server import RawServer, Send, body_of, http

BODY = body_of()
KEY = "k3y-of-us"
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)


def always(response: bytes, *, keep: bool = True) -> Send:
    def send(connection: socket.socket, before: int) -> bool:
        connection.sendall(response)
        return keep

    return send


def once(response: bytes, then: bytes = http(BODY)) -> Send:
    """The first answer goes wrong, the second is whole."""

    def send(connection: socket.socket, before: int) -> bool:
        connection.sendall(then if before else response)
        return bool(before)

    return send


class TlsServer(RawServer):
    """The same with a certificate for localhost; `authority` is the file of the authority that signed it."""

    def __init__(self, send: Send, folder: Path) -> None:
        super().__init__(send)
        self.url = self.url.replace("http://127.0.0.1", "https://localhost")
        key, name = (
            ec.generate_private_key(ec.SECP256R1()),
            x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "An Own Authority")]),
        )
        now, names = dt.datetime.now(dt.UTC), x509.SubjectAlternativeName([x509.DNSName("localhost")])
        made = x509.CertificateBuilder(
            name,
            name,
            key.public_key(),
            x509.random_serial_number(),
            now - dt.timedelta(1),
            now + dt.timedelta(9),
        )
        made = made.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        ).add_extension(names, critical=False)
        self.authority, own = folder / "authority.pem", folder / "own.pem"
        self.authority.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
        own.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(self.authority, own)

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            super()._serve(self._tls.wrap_socket(connection, server_side=True))


@pytest.fixture
def no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_bundle")
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", ""])
def test_a_service_with_a_certificate_of_an_own_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    with TlsServer(always(http(BODY)), tmp_path) as server, client_of(server, tmp_path, []) as client:
        if variable:
            monkeypatch.setenv(variable, str(server.authority))
            assert client.fetch(account.ME.bind())
        else:
            with pytest.raises(Unreachable, match="; set SSL_CERT_FILE to"):
                client.fetch(account.ME.bind())


@pytest.mark.usefixtures("no_bundle")
def test_the_variable_that_wins_is_named_when_a_certificate_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "others").mkdir()
    with (
        TlsServer(always(http(BODY)), tmp_path) as server,
        TlsServer(always(http(BODY)), tmp_path / "others") as other,
        client_of(server, tmp_path, []) as client,
    ):
        monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(other.authority))
        with pytest.raises(Unreachable, match="that REQUESTS_CA_BUNDLE names: add those"):
            client.fetch(account.ME.bind())


@pytest.mark.usefixtures("no_bundle")
def test_certificates_are_read_once_whatever_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each connection it would take 20 ms, and each write has one of its own."""
    read, load = list[str](), ssl.SSLContext.load_verify_locations

    def counted(context: ssl.SSLContext, *where: Any) -> None:
        read.append(where[0])
        load(context, *where)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counted)
    with TlsServer(always(http(BODY)), tmp_path) as server, client_of(server, tmp_path, []) as client:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
        for _ in range(3):
            assert client.write(contacts.ADDTAG.bind(email="ann@example.com", tagname="vip"))
            assert client.fetch(account.ME.bind())
    assert read == [str(server.authority)]


@pytest.mark.usefixtures("no_bundle")
def test_a_file_without_certificates_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("none here")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    with (
        TlsServer(always(http(BODY)), tmp_path) as server,
        client_of(server, tmp_path, []) as client,
        pytest.raises(OSError, match=f"SSL_CERT_FILE={bundle} holds no certificates"),
    ):
        client.fetch(account.ME.bind())


def quick(operation: Operation, seconds: float = 1) -> Operation:
    return dataclasses.replace(operation, timeout=seconds)


def client_of(server: RawServer, folder: Path, recorded: list[Exchange]) -> Client:
    connection = Connection("main", server.url, Secret(KEY))
    return Client(
        connection, RateLimiter(folder / "pace"), record=recorded.append, spool=folder, first_pause=0.001
    )


@pytest.fixture
def fetch(tmp_path: Path) -> Callable[[Send], list[Exchange]]:
    """Ask `app/me` once of such a server; what was recorded, whether there was an answer or not."""

    def of(send: Send) -> list[Exchange]:
        recorded: list[Exchange] = []
        with RawServer(send) as server, client_of(server, tmp_path, recorded) as client:
            with contextlib.suppress(Transient):
                client.fetch(account.ME.bind())
            assert KEY not in "".join(exchange.error or "" for exchange in recorded)
        return recorded

    return of


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(http(gzip.compress(BODY), "200 OK", "Content-Encoding: gzip"), id="gzip"),
        pytest.param(
            http(gzip.compress(gzip.compress(BODY)), "200 OK", "Content-Encoding: gzip, gzip"),
            id="gzip twice",
        ),
        pytest.param(
            http(zlib.compress(BODY)[2:-4], "200 OK", "Content-Encoding: deflate"),
            id="deflate without its head",
        ),
        pytest.param(http(BODY, "200 OK", "Content-Encoding: br"), id="plain, called brotli"),
        pytest.param(http(BODY, "200 OK", "Content-Encoding: utf-8"), id="an encoding that is none"),
        pytest.param(http(CHUNKED, "200 OK", "Transfer-Encoding: chunked", length=None), id="chunked"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + http(BODY), id="after 100 Continue"),
        pytest.param(http(BODY, "200"), id="no reason"),
        pytest.param(http(BODY, "999 Strange"), id="a status of its own"),
        pytest.param(http(BODY).replace(b"\r\n", b"\n"), id="bare line ends"),
        pytest.param(http(BODY, "200 OK", "X-Odd: \0ÿ"), id="a header that is no text"),
    ],
)
def test_an_untidy_answer_is_an_answer(fetch: Callable[[Send], list[Exchange]], response: bytes) -> None:
    assert [exchange.outcome.value for exchange in fetch(always(response))] == ["ok"]


@pytest.mark.parametrize(
    "response", [b"HTTP/1.0 200 OK\r\n\r\n" + BODY, http(BODY, length=None)], ids=["HTTP 1.0", "no length"]
)
def test_an_answer_may_end_with_the_connection(
    fetch: Callable[[Send], list[Exchange]], response: bytes
) -> None:
    assert [exchange.outcome.value for exchange in fetch(always(response, keep=False))] == ["ok"]


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(http(BODY, "200 OK", "Content-Encoding: gzip"), id="plain, called gzip"),
        pytest.param(http(gzip.compress(BODY)), id="gzip, not called so"),
        pytest.param(http(gzip.compress(BODY)[:-20], "200 OK", "Content-Encoding: gzip"), id="cut gzip"),
        pytest.param(
            http(BODY, "200 OK", "Content-Encoding: " + ", ".join(["gzip"] * 8)), id="encoded eight times"
        ),
        pytest.param(http(BODY, length=len(BODY) - 5), id="a length too small"),
        pytest.param(http(BODY, length=len(BODY) + 5), id="a length too large"),
        pytest.param(http(BODY, "200 OK", "Content-Length: 7"), id="two lengths"),
        pytest.param(http(BODY[:-70], length=None), id="cut at the end of the connection"),
        pytest.param(
            http(b"zz\r\n" + BODY, "200 OK", "Transfer-Encoding: chunked", length=None),
            id="a chunk of no size",
        ),
        pytest.param(
            http(CHUNKED[:-5], "200 OK", "Transfer-Encoding: chunked", length=None), id="no last chunk"
        ),
        pytest.param(http(body_of({"business": {"businessName": "Ö"}})[:-3], "200 OK"), id="cut JSON"),
        pytest.param(http(b"", "204 No Content", length=None), id="204"),
        pytest.param(http(b"", "205 Reset Content"), id="205"),
        pytest.param(http(b""), id="nothing"),
        pytest.param(http(b"<html>please log in</html>"), id="a page"),
        pytest.param(b"hello\r\n\r\n", id="no HTTP at all"),
        pytest.param(http(BODY, "abc"), id="a status that is no number"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\n", id="too many headers"),
    ],
)
def test_what_is_not_whole_is_asked_again(fetch: Callable[[Send], list[Exchange]], response: bytes) -> None:
    first, second = fetch(once(response))
    assert first.outcome.value in ("broken", "unreachable")
    assert second.outcome.value == "ok"


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"]
)
def test_the_key_follows_no_redirect(tmp_path: Path, status: str) -> None:
    with RawServer(always(http(BODY))) as other:
        where = f"Location: {other.url}/app/me.json?key={KEY}"
        with RawServer(always(http(b"", status, where))) as server, client_of(server, tmp_path, []) as client:
            with pytest.raises(BrokenResponse, match="redirect") as caught:
                client.fetch(account.ME.bind())
            assert KEY not in str(caught.value)
        assert other.requests == []


def test_an_announcement_is_not_the_answer_and_the_late_answer_is_not_the_next_ones(tmp_path: Path) -> None:
    def send(connection: socket.socket, before: int) -> bool:
        if before:
            connection.sendall(http(body_of({"business": {"businessName": "Right"}})))
            return True
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        connection.recv(1, socket.MSG_PEEK)  # the next request on this connection, or its end
        with contextlib.suppress(OSError):
            connection.sendall(http(body_of({"business": {"businessName": "Late"}})))
        return False

    with RawServer(send) as server, client_of(server, tmp_path, []) as client:
        assert b"Right" in bytes(client.fetch(account.ME.bind()).body)


def trickling(raw: bytes, at_once: int, server: list[RawServer]) -> Send:
    def send(connection: socket.socket, before: int) -> bool:
        connection.sendall(raw[:at_once])
        for byte in raw[at_once:]:
            connection.sendall(bytes([byte]))
            if server[0].closing.wait(0.05):
                break
        return False

    return send


@pytest.mark.parametrize("at_once", [0, 60], ids=["from the first byte", "after the headers began"])
@pytest.mark.slow
def test_a_byte_at_a_time_does_not_last_for_ever(
    tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marketing_api.retry.TRIES", 2)
    place: list[RawServer] = []
    recorded: list[Exchange] = []
    with (
        RawServer(trickling(http(BODY), at_once, place)) as server,
        client_of(server, tmp_path, recorded) as client,
    ):
        place.append(server)
        with pytest.raises(Unreachable):
            client.fetch(quick(account.ME, 1).bind())
    assert len(recorded) == 2
    assert any("too slowly" in str(exchange.error) for exchange in recorded)


def test_a_write_whose_answer_trickles_may_have_taken_effect(tmp_path: Path) -> None:
    place: list[RawServer] = []
    with RawServer(trickling(http(BODY), 0, place)) as server, client_of(server, tmp_path, []) as client:
        place.append(server)
        call = contacts.ADDTAG.bind(email="ann@example.com", tagname="vip")
        with pytest.raises(OutcomeUnknown):
            client.write(Call(quick(call.operation, 0.1), call.params))
        assert len(server.requests) <= 1, "a busy server may not have read it yet"


def test_a_time_out_is_that_of_the_operation_between_two_bytes_and_its_own_for_connecting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[urllib3.Timeout] = []

    def request_over(pool: object, request: object, timeout: urllib3.Timeout) -> None:
        seen.append(timeout)
        raise urllib3.exceptions.ProtocolError("enough was seen")

    monkeypatch.setattr(transport, "request_over", request_over)
    sent = transport.Transport(
        "http://127.0.0.1:1/1", Secret(KEY), spool=tmp_path, connections=1, most_bytes=100
    )
    sent.send(quick(account.ME, 75).bind(), "body")
    sent.close()
    assert [(each.total, each.connect_timeout, each.read_timeout) for each in seen] == [
        (None, transport.CONNECT_SECONDS, 75)
    ]
