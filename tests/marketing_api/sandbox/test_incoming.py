"""Requests are made out however their bytes arrive, in every form that HTTP/1.1 clients send them."""

from __future__ import annotations

import contextlib
import http.client

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.sandbox.incoming import Incoming, Unreadable
from marketing_api.sandbox.options import Options
from marketing_api.sandbox.replies import Request
from marketing_api.sandbox.server import serve
from tests.marketing_api.sandbox.asking import NOW

BODY = b"name=News"
REQUESTS = {
    "length": b"POST /1/a?key=k HTTP/1.1\r\nContent-Length: 9\r\n\r\n" + BODY,
    "chunks": b"POST /1/a?key=k HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n4\r\nname\r\n5;x=y\r\n=News\r\n0\r\n\r\n",
    "trailers": b"POST /1/a?key=k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nname=News\r\n0\r\nDigest: z\r\n\r\n",
    "whole address": b"POST http://127.0.0.1:1/1/a?key=k HTTP/1.1\r\nContent-Length: 9\r\n\r\n" + BODY,
    "blank line first": b"\r\nPOST /1/a?key=k HTTP/1.1\r\nContent-Length: 9\r\n\r\n" + BODY,
}


def taken(incoming: Incoming) -> list[Request]:
    found = []
    while (one := incoming.take()) is not None:
        found.append(one[0])
    return found


@given(names=st.lists(st.sampled_from(sorted(REQUESTS)), max_size=4), sizes=st.lists(st.integers(1, 60), min_size=1))
def test_requests_are_the_same_however_their_bytes_are_cut(names: list[str], sizes: list[int]) -> None:
    whole, found, incoming = b"".join(REQUESTS[name] for name in names), [], Incoming(lambda: None)
    while whole:
        size = sizes[len(whole) % len(sizes)]
        incoming.feed(whole[:size])
        whole = whole[size:]
        found += taken(incoming)
    assert found == [Request("POST", "/1/a", "key=k", "", BODY)] * len(names)


def test_leave_to_send_a_body_is_given_once() -> None:
    said: list[int] = []
    incoming = Incoming(lambda: said.append(1))
    incoming.feed(b"POST /1/a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
    for byte in BODY:
        assert incoming.take() is None
        incoming.feed(bytes([byte]))
    assert [one.body for one in taken(incoming)] == [BODY]
    assert said == [1]


@pytest.mark.parametrize(
    "received",
    [
        b"\x16\x03\x01\x02\x00",  # TLS: an address with https
        b"nonsense\r\n\r\n",
        b"GET /1/a HTTP/1.1\r\nContent-Length: some\r\n\r\n",
        b"GET /1/a HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET /1/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
    ],
)
def test_what_is_no_request_is_refused_at_once(received: bytes) -> None:
    incoming = Incoming(lambda: None)
    incoming.feed(received)
    with pytest.raises(Unreadable):
        incoming.take()


def test_body_in_chunks_and_a_head_alone_leave_the_connection_usable() -> None:
    with (
        serve(Options(contacts=100, now=NOW, rate_limit=0)) as url,
        contextlib.closing(http.client.HTTPConnection(url.split("/")[2], timeout=20)) as connection,
    ):
        for verb in ("HEAD", "POST"):
            connection.request(verb, "/1/emailmarketing/getcontacts?key=sandbox-key", body=iter([b"listid", b"=1801"]))
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (200, verb == "POST")
