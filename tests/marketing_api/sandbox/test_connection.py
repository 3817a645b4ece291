"""Requests are made out however their bytes arrive, in every form that HTTP/1.1 clients send them."""

from __future__ import annotations

import asyncio
import contextlib
import http.client

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.sandbox.options import Options
from marketing_api.sandbox.responses import Request, Response
from marketing_api.sandbox.server import converse, serve
from tests.marketing_api.sandbox.asking import NOW
from tests.waiting import HANGS_S

BODY = b"name=News"
REQUESTS = {
    "length": b"POST /1/a?key=k HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n" + BODY,
    "chunks": b"POST /1/a?key=k HTTP/1.1\r\nHost: x\r\ntransfer-encoding: "
    b"Chunked\r\n\r\n4\r\nname\r\n5;x=y\r\n=News\r\n0\r\n\r\n",
    "trailers": b"POST /1/a?key=k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
    b"chunked\r\n\r\n9\r\nname=News\r\n0\r\nDigest: z\r\n\r\n",
    "whole address": b"POST http://127.0.0.1:1/1/a?key=k HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
    + BODY,
}


class Wire:
    """A connection whose requests are noted and answered at once, without a socket: the stream to which the
    sandbox writes."""

    def __init__(self) -> None:
        self.taken: list[Request] = []
        self.written = b""
        self.is_closed = False

    def receive(self, *pieces: bytes) -> None:
        """What arrives from the client, piece by piece, until it hangs up."""

        async def receive() -> None:
            reader = asyncio.StreamReader()
            conversation = asyncio.ensure_future(converse(reader, self, self._respond))  # type: ignore[arg-type]
            for piece in pieces:
                reader.feed_data(piece)
                while not conversation.done() and reader._buffer:  # type: ignore[attr-defined]
                    await asyncio.sleep(0)
            reader.feed_eof()
            await conversation

        asyncio.run(receive())

    async def _respond(self, request: Request) -> Response:
        self.taken.append(request)
        return Response(200, b"{}")

    def write(self, data: bytes) -> None:
        self.written += data

    async def drain(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


@given(
    names=st.lists(st.sampled_from(sorted(REQUESTS)), max_size=4),
    sizes=st.lists(st.integers(1, 60), min_size=1),
)
def test_requests_are_the_same_however_their_bytes_are_cut(names: list[str], sizes: list[int]) -> None:
    whole, wire, pieces = b"".join(REQUESTS[name] for name in names), Wire(), []
    while whole:
        size = sizes[len(whole) % len(sizes)]
        pieces.append(whole[:size])
        whole = whole[size:]
    wire.receive(*pieces)
    assert wire.taken == [Request("POST", "/1/a", "key=k", "", BODY)] * len(names)


def test_leave_to_send_a_body_is_given_once() -> None:
    wire, head = Wire(), b"POST /1/a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
    wire.receive(head, *(bytes([byte]) for byte in BODY))
    assert [one.body for one in wire.taken] == [BODY]
    assert wire.written.count(b"HTTP/1.1 100 Continue\r\n\r\n") == 1


@pytest.mark.parametrize(
    "received",
    [
        b"\x16\x03\x01\x02\x00",  # TLS: an address with https
        b"nonsense\r\n\r\n",
        b"GET /1/a HTTP/1.1\r\nHost: x\r\nContent-Length: some\r\n\r\n",
        b"GET /1/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET /1/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
    ],
)
def test_what_is_no_request_is_refused_at_once(received: bytes) -> None:
    wire = Wire()
    wire.receive(received)
    assert wire.written.startswith(b"HTTP/1.1 400 ")
    assert wire.is_closed
    assert wire.taken == []


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_body_over_the_cap_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marketing_api.sandbox.server._LARGEST_BODY", len(BODY) - 1)
    wire = Wire()
    wire.receive(REQUESTS[name])
    assert wire.written.startswith(b"HTTP/1.1 400 ")
    assert wire.is_closed
    assert wire.taken == []


def test_body_in_chunks_and_a_head_alone_leave_the_connection_usable() -> None:
    with (
        serve(Options(contacts=100, now=NOW, rate_limit=0)) as url,
        contextlib.closing(http.client.HTTPConnection(url.split("/")[2], timeout=HANGS_S)) as connection,
    ):
        for verb in ("HEAD", "POST"):
            connection.request(
                verb, "/1/emailmarketing/getcontacts?key=sandbox-key", body=iter([b"listid", b"=1801"])
            )
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (200, verb == "POST")
