"""Requests are understood however their bytes arrive; what is no request is refused."""

import socket
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.sandbox.responses import Request, Response
from marketing_api.sandbox.server import Handler

BODY = b"name=News"
POST = b"POST /1/a?key=k HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n" + BODY


class Wire:
    """A connection whose requests are noted and answered immediately."""

    def __init__(self) -> None:
        self.taken: list[Request] = []

    def respond(self, request: Request) -> Response:
        self.taken.append(request)
        return Response(200, b"{}")

    def receive(self, *pieces: bytes) -> bytes:
        """What the sandbox writes to a client that sends these pieces and then no more."""
        client, peer = socket.socketpair()
        with client, peer:
            # The handler's socket options are those of TCP, which a pair does not have.
            kind = type("PairHandler", (Handler,), {"disable_nagle_algorithm": False})
            server = SimpleNamespace(respond=self.respond)
            conversation = threading.Thread(target=self._converse, args=(kind, peer, server))
            conversation.start()
            for piece in pieces:
                client.sendall(piece)
            client.shutdown(socket.SHUT_WR)
            conversation.join()
            peer.close()
            return b"".join(iter(lambda: client.recv(65536), b""))

    def _converse(self, kind: type[Handler], peer: socket.socket, server: object) -> None:
        kind(peer, ("127.0.0.1", 1), server)  # type: ignore[arg-type]


@given(count=st.integers(0, 4), sizes=st.lists(st.integers(1, 60), min_size=1))
def test_requests_are_the_same_however_their_bytes_are_cut(count: int, sizes: list[int]) -> None:
    whole, wire, pieces = POST * count, Wire(), []
    while whole:
        size = sizes[len(whole) % len(sizes)]
        pieces.append(whole[:size])
        whole = whole[size:]
    wire.receive(*pieces)
    assert wire.taken == [Request("POST", "/1/a", "key=k", "", BODY)] * count


def test_leave_to_send_a_body_is_given_once() -> None:
    wire, head = Wire(), b"POST /1/a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
    written = wire.receive(head, *(bytes([byte]) for byte in BODY))
    assert [one.body for one in wire.taken] == [BODY]
    assert written.count(b"HTTP/1.1 100 Continue\r\n\r\n") == 1


def test_head_is_answered_without_a_body_and_the_connection_stays_usable() -> None:
    wire = Wire()
    written = wire.receive(POST.replace(b"POST", b"HEAD") + POST)
    assert [one.verb for one in wire.taken] == ["HEAD", "POST"]
    assert written.count(b"{}") == 1


@pytest.mark.parametrize(
    ("received", "status"),
    [
        (b"\x16\x03\x01\x02\x00\r\n", 400),  # TLS: an address with https
        (b"nonsense\r\n\r\n", 400),
        (b"GET /1/a HTTP/1.1\r\nHost: x\r\nContent-Length: some\r\n\r\n", 411),
        (b"GET /1/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", 411),
    ],
)
def test_what_is_no_request_is_refused_and_ends_the_connection(received: bytes, status: int) -> None:
    wire = Wire()
    written = wire.receive(received + POST)
    assert written.startswith(b"HTTP/1.1 %d " % status)
    assert written.count(b"HTTP/1.1 ") == 1
    assert wire.taken == []
