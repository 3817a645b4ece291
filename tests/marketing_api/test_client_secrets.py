"""The key is on the wire and nowhere else: not in logs, exceptions or what is recorded."""

import gc
import http.client
import logging
import pickle
import traceback
import urllib.parse
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.client import Connection, Secret
from marketing_api.errors import MarketingApiError
from marketing_api.operations import ALL, account
from marketing_api.redaction import Redactor
from tests.marketing_api.conftest import KEY, MakeBench
from tests.marketing_api.scripted_server import Reply, ok, refusal

ME = account.ME.bind()
NOBODY = "http://127.0.0.1:9/1"
SPELLINGS = (
    KEY,
    urllib.parse.quote(KEY, safe=""),
    urllib.parse.quote_plus(KEY),
    repr(KEY)[1:-1],
    KEY.replace('"', '\\"'),
)


def leaks(text: str) -> bool:
    return any(spelling in text for spelling in SPELLINGS)


@pytest.fixture
def everything_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.LogCaptureFixture]:
    monkeypatch.setattr(http.client.HTTPConnection, "debuglevel", 9)
    for name in ("urllib3", "urllib3.connectionpool"):  # other tests' programs may have silenced them
        monkeypatch.setattr(logging.getLogger(name), "disabled", False)
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, logger="urllib3"):
        yield caplog


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(ok(), id="ok"),
        pytest.param(refusal(1003, text=f"bad key={KEY}"), id="refused"),
        pytest.param(Reply(500, b"oops"), id="500"),
        pytest.param(Reply(mishap="reset"), id="reset"),
        pytest.param(
            Reply(302, b"", {"Location": f"/1/elsewhere?key={urllib.parse.quote(KEY)}"}), id="redirect"
        ),
    ],
)
def test_no_log_print_or_error_holds_the_key(
    bench: MakeBench,
    everything_logged: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    reply: Reply,
) -> None:
    at = bench(reply)
    texts = _asked(at.client)
    assert at.asked[0].query["key"] == KEY
    assert "Starting new HTTP connection" in everything_logged.text, (
        "the libraries logged nothing, so this proves nothing"
    )
    assert reply.mishap or "/1/app/me" in everything_logged.text
    out, err = capfd.readouterr()
    for text in (
        *texts,
        everything_logged.text,
        out,
        err,
        str(at.recorded),
        *(str(each.body) for each in at.recorded),
    ):
        assert not leaks(text)


def test_no_error_of_a_broken_connection_holds_the_key(
    bench: MakeBench, everything_logged: pytest.LogCaptureFixture
) -> None:
    texts = _asked(bench(url=NOBODY).client)
    assert texts
    assert not any(map(leaks, (*texts, everything_logged.text)))


def test_an_echoed_key_is_not_recorded_in_any_spelling(bench: MakeBench) -> None:
    echo = {
        "business": {
            "links": [
                KEY,
                urllib.parse.quote(KEY, safe=""),
                f"https://host/?key={urllib.parse.quote_plus(KEY)}",
            ]
        }
    }
    at = bench(ok(echo))
    response = at.client.fetch(ME)
    assert not leaks(bytes(response.body).decode())
    assert bytes(response.body).count(b"***") == 3
    assert at.recorded[0].body == response.body


def test_a_secret_answer_is_returned_but_not_recorded(bench: MakeBench) -> None:
    at = bench(
        ok({"id": 1, "name": "Ann", "email": "ann@example.com", "login-url": "https://host/secret-path"})
    )
    response = at.client.fetch(ALL["account/getsubaccountautologin"].bind(id=1, expire=60))
    assert b"secret-path" in bytes(response.body)
    assert at.recorded[0].body == b""


def test_nothing_that_is_printed_shows_a_secret() -> None:
    secret = Secret(KEY)
    connection = Connection("main", "https://host.example/1", secret)
    assert not any(
        leaks(text) for text in (repr(secret), str(secret), f"{secret}", repr(connection), str([connection]))
    )
    with pytest.raises(TypeError):
        pickle.dumps(secret)


@given(st.binary(max_size=60), st.integers(0, 3), st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_the_key_is_found_across_chunks(filler: bytes, times: int, sizes: list[int]) -> None:
    redactor = Redactor(Secret("abcabd"))
    data = filler.join([b"abcabd"] * (times + 1))
    chunks, rest = [], data
    for size in sizes:
        chunks.append(rest[:size])
        rest = rest[size:]
    whole = b"".join(redactor.redact_stream([*chunks, rest]))
    assert whole == redactor.redact(data)
    assert b"abcabd" not in whole


def _asked(client: object) -> list[str]:
    """Ask, and return every text of the error: messages, tracebacks, and those of all causes."""
    try:
        client.fetch(ME)  # type: ignore[attr-defined]
    except MarketingApiError as problem:
        texts, error = [], problem
        while error is not None:
            texts += [str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error))]
            error = error.__cause__ or error.__context__  # type: ignore[assignment]
        return texts
    finally:
        gc.collect()
    return []
