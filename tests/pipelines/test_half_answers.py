"""A service that answers half: over HTTP and through `sync`, no row goes, it is said, and the next good
answer heals everything."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import duckdb
import pytest
import requests

from marketing_api.sandbox.server import serve
from tests.fixtures import STANDING, Command
from tests.pipelines.sandboxes import Sandbox

TABLES = ("direct_reviews", "review_stats", "social_media_stats", "campaign_clickers", "goals")
ONLY = (
    "sync",
    "--only",
    "direct_reviews",
    "reputation_stats",
    "campaigns",
    "campaign_stats",
    "webhooks",
    "goals",
)
#: What becomes of the `data` of an operation.
Halving = dict[str, Callable[[dict[str, Any]], object]]


class Between(ThreadingHTTPServer):
    """Stands between the client and a service, and makes half answers of whole ones."""

    daemon_threads = True

    def __init__(self, service: str) -> None:
        super().__init__(("127.0.0.1", 0), _Forwarder)
        self.service = service.removesuffix("/1")
        self.halving: Halving = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/1"


class _Forwarder(BaseHTTPRequestHandler):
    server: Between
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        reply = requests.get(self.server.service + self.path, timeout=30)
        whole = reply.json()
        name = self.path.removeprefix("/1/").partition(".json")[0]
        if (halve := self.server.halving.get(name)) is not None:
            halve(whole["response"]["data"])
        body = json.dumps(whole).encode()
        self.send_response(reply.status_code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def between() -> Iterator[Between]:
    with serve(STANDING) as url, Between(url) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def live(home: Path) -> dict[str, int]:
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        counts = {
            name: connection.execute(
                f"select count(*) from source.{name} where _deleted_at is null"
            ).fetchone()
            for name in TABLES
        }
    return {name: count[0] for name, count in counts.items() if count is not None}


def cut(data: dict[str, Any]) -> None:
    """Six of ten entries, while the count stays."""
    (payload,) = data.values()
    payload["items"] = payload["items"][: len(payload["items"]) * 6 // 10]


def empty(data: dict[str, Any]) -> None:
    """Nothing, and a count that agrees."""
    data["reviews"] = {"count": 0, "items": []}


def a_day_passes(home: Path) -> None:
    """The statistics of campaigns are asked for once a day."""
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        connection.execute(
            "update source.campaign_stats set observed_on = observed_on - 2, _changed_at = _changed_at - "
            "interval 2 day"
        )


@pytest.mark.usefixtures("unrecorded")
@pytest.mark.slow
def test_half_answers_take_no_row_and_are_said_until_a_whole_one_comes(
    command: Command, between: Between, home: Path
) -> None:
    service = Sandbox(between.url)
    assert command(*ONLY, sandbox=service).code == 0
    before = live(home)
    assert min(before.values()) > 1
    a_day_passes(home)
    between.halving = {
        "reputation/direct": empty,
        "goal/lists": cut,
        "reputation/stats": lambda data: data.update(stats=[]),
        "emailmarketing/stats": lambda data: data["campaign"].update(clicks=None),
    }
    half = command(*ONLY, sandbox=service)
    assert half.code == 1
    assert live(home) == before
    assert "goals: goal/lists: the service counts 6 entries and lists 3" in half.out
    assert "more than 50% would be deleted; not applied" in half.out
    assert "reputation/stats, " in half.out
    assert "campaign_clickers: " in half.out
    between.halving = {}
    a_day_passes(home)
    whole = command(*ONLY, sandbox=service)
    assert whole.code == 0, whole.text
    assert live(home) == before
    between.halving = {"reputation/direct": empty}
    accepted = command("sync", "--only", "direct_reviews", "--accept-shrink", sandbox=service)
    assert accepted.code == 0, accepted.text
    assert live(home)["direct_reviews"] < before["direct_reviews"]
    between.halving = {}
    assert command("sync", "--only", "direct_reviews", sandbox=service).code == 0
    assert live(home) == before
