"""A body is UTF-8, or what its response declares; anything else is marked, never guessed."""

from pathlib import Path

import pytest

from marketing_api.client import Client, Connection, Secret
from marketing_api.envelope import UNDECODED, read_envelope, to_utf8
from marketing_api.operations import account
from marketing_api.rate_limit import RateLimiter
from tests.marketing_api.raw_server import RawServer, http

TEXT = '{"email": "jürgen@example.com", "name": "Zoë"}'
BODIES = {
    "UTF-8 without a charset": (TEXT.encode(), "application/json", TEXT),
    "UTF-8 in spite of the charset": (TEXT.encode(), "application/json; charset=ISO-8859-1", TEXT),
    "the declared charset": (TEXT.encode("latin-1"), "application/json; charset=ISO-8859-1", TEXT),
    "the declared charset, quoted": (TEXT.encode("cp1252"), 'text/json; charset="Windows-1252"', TEXT),
}


@pytest.mark.parametrize(("body", "content_type", "text"), BODIES.values(), ids=BODIES)
def test_a_body_becomes_utf8(tmp_path: Path, body: bytes, content_type: str, text: str) -> None:
    assert to_utf8(body, content_type) == text.encode()
    path = tmp_path / "body"
    path.write_bytes(body)
    assert to_utf8(path, content_type) == path
    assert path.read_bytes() == text.encode()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "content_type",
    ["", "application/json", "text/json; charset=ascii", "x; charset=nope", "x; charset=cp037"],
)
def test_what_no_charset_fits_stays_and_is_marked(tmp_path: Path, content_type: str) -> None:
    body = TEXT.encode("latin-1")
    assert to_utf8(body, content_type) == body
    path = tmp_path / "body"
    path.write_bytes(body)
    assert to_utf8(path, content_type).read_bytes() == body  # type: ignore[union-attr]
    assert list(tmp_path.iterdir()) == [path]
    envelope = read_envelope(body)
    assert envelope.has_undecoded
    assert UNDECODED in bytes(envelope.text).decode()


def test_a_declared_charset_is_read_from_the_wire(tmp_path: Path) -> None:
    text = '{"response":{"header":{"status":"ok"},"data":{"business":{"businessName":"Café Zoë"}}}}'
    reply = http(text.encode("latin-1")).replace(b"application/json", b"application/json; charset=ISO-8859-1")

    def send(connection: object, before: int) -> bool:
        connection.sendall(reply)  # type: ignore[attr-defined]
        return True

    with (
        RawServer(send) as server,
        Client(
            Connection("main", server.url, Secret("k3y")),
            RateLimiter(tmp_path / "pace"),
            record=lambda _: None,
            spool=tmp_path,
        ) as client,
    ):
        response = client.fetch(account.ME.bind())
    assert response.envelope.decode_payload(account.ME)["businessName"] == "Café Zoë"
