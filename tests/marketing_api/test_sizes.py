"""How large an answer may be: whatever its packing, memory and disk hold no more than the limits."""

import gzip
import itertools
import socket
import zlib
from functools import cache
from pathlib import Path

import pytest

from marketing_api.errors import BrokenResponse
from marketing_api.exchange import BODY_LIMIT
from marketing_api.records.account import ME
from marketing_api.redaction import Secret
from marketing_api.transport import MOST_RATIO, SMALL_BYTES, SPOOL_BYTES, Received, Transport
from tests.marketing_api.raw_server import RawServer, body_of, http


def _received(tmp_path: Path, response: bytes, most_bytes: int = BODY_LIMIT) -> Received:
    def send(connection: socket.socket, _: int) -> bool:
        connection.sendall(response)
        return False

    with RawServer(send) as server:
        transport = Transport(
            server.url, Secret("k" * 20), spool=tmp_path, connections=1, most_bytes=most_bytes
        )
        try:
            return transport.send(ME.bind(), "body.json")
        finally:
            transport.close()


@cache
def _packed(size: int, wbits: int) -> bytes:
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(bytes(size)) + packer.flush()


@pytest.mark.parametrize("encoding", ["gzip", "X-GZIP", "deflate", "gzip, gzip", "gzip,identity"])
def test_what_unpacks_to_many_times_its_size_is_refused_with_its_beginning_kept(
    tmp_path: Path, encoding: str
) -> None:
    body = _packed(100_000_000, 15 if encoding == "deflate" else 31)
    if encoding == "gzip, gzip":
        body = gzip.compress(body)
    received = _received(tmp_path, http(body, "200 OK", f"Content-Encoding: {encoding}"))
    assert isinstance(received.error, BrokenResponse)
    assert f"more than {MOST_RATIO} times" in str(received.error)
    assert isinstance(received.body, Path)
    assert received.body.stat().st_size == SPOOL_BYTES


def test_an_answer_that_is_large_and_packs_well_is_taken(tmp_path: Path) -> None:
    """A million contacts pack to a tenth or twentieth; many that are nearly the same to a hundredth."""
    body = b",".join(
        b'{"id":%d,"status":"Active","custom":{"a":"","b":"","c":""}}' % number for number in range(400_000)
    )
    assert len(body) > SMALL_BYTES
    received = _received(tmp_path, http(gzip.compress(body), "200 OK", "Content-Encoding: gzip"))
    assert received.error is None
    assert isinstance(received.body, Path)
    assert received.body.read_bytes() == body


@pytest.mark.parametrize("head", [b"Transfer-Encoding: chunked", b"Connection: close"])
def test_a_body_without_end_is_read_up_to_the_limit(tmp_path: Path, head: bytes) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    received = _received(
        tmp_path, b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + chunk * 300, most_bytes=10_000_000
    )
    assert "more than 10,000,000 bytes" in str(received.error)
    assert isinstance(received.body, Path)
    assert received.body.stat().st_size == SPOOL_BYTES


@pytest.mark.parametrize("encoding", ["gzip", "deflate", ",".join(itertools.repeat("gzip", 50))])
def test_a_body_that_is_not_packed_as_it_says_is_a_broken_answer(tmp_path: Path, encoding: str) -> None:
    received = _received(tmp_path, http(body_of(), "200 OK", f"Content-Encoding: {encoding}"))
    assert isinstance(received.error, BrokenResponse)


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes), ("", bytes)],
)
def test_a_whole_answer_is_the_same_however_it_is_packed(
    tmp_path: Path, encoding: str, pack: type[bytes]
) -> None:
    received = _received(tmp_path, http(pack(body_of()), "200 OK", f"Content-Encoding: {encoding}"))
    assert received.error is None
    assert received.body == body_of()


_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "response",
    [
        _CHUNKED + b"-5\r\n{}",
        _CHUNKED + b"f" * 5_000 + b"\r\n{}",
        _CHUNKED + b"9" * 1_000_000 + b"\r\n{}",
        _CHUNKED + b"nonsense\r\n{}",
        b"HTTP/1.1 " + b"9" * 5_000 + b" OK\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nSet-Cookie: " + b"a" * 1_000_000 + b"\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 100_000 + b"\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Length: 20\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: \xff\xfe\r\nContent-Encoding: \xff\r\n\r\n{}",
        b"\x00" * 1_000_000,
    ],
    ids=lambda response: response[-40:-20].decode("latin-1"),
)
def test_whatever_is_sent_in_place_of_http_is_a_problem_of_ours_or_an_answer(
    tmp_path: Path, response: bytes
) -> None:
    received = _received(tmp_path, response)
    assert received.error is not None or received.body == b"{}"
