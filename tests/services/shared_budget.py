"""A process that requests as much as the limit allows, through a Redis that it shares with others; and what
the sandbox counted.

    python -m tests.services.shared_budget SERVICE REDIS SECONDS WORKERS

Prints `ready`, begins with a line on standard input, and prints how many responses came.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from marketing_api.client import Client, Connection, Secret
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import account
from marketing_api.rate_limit import RateLimiter
from marketing_api.sandbox.options import DEFAULT_KEY


class Asker:
    """A process with a temp folder of its own, as if on another machine."""

    def __init__(self, folder: Path, service: str, redis: str, seconds: float, workers: int = 32) -> None:
        folder.mkdir()
        words = [
            sys.executable,
            "-m",
            "tests.services.shared_budget",
            service,
            redis,
            str(seconds),
            str(workers),
        ]
        self.log = folder / "log"
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"TMPDIR": str(folder)},
            )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", self.log.read_text()

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def finish(self) -> int:
        """How many responses came."""
        output = self._process.communicate()[0]
        assert self._process.returncode == 0, self.log.read_text()
        return int(output)


class Counted(NamedTuple):
    """Requests by the second in which they arrived, those that were refused included."""

    accepted: Counter[int]
    refused: Counter[int]

    def rate(self, first: int, last: int) -> float:
        """Accepted a second, both included."""
        return sum(self.accepted[second] for second in range(first, last + 1)) / (last - first + 1)

    @property
    def whole_seconds(self) -> tuple[int, int]:
        return min(self.accepted) + 1, max(self.accepted) - 1

    @property
    def refused_share(self) -> float:
        return self.refused.total() / (self.accepted + self.refused).total()


def counted(service: str) -> Counted:
    accepted, refused, since = Counter[int](), Counter[int](), 0
    while items := _page(service, since):
        for item in items:
            (refused if item["outcome"] == "429" else accepted)[int(item["arrived"])] += 1
        since = items[-1]["number"]
    return Counted(accepted, refused)


def _page(service: str, since: int) -> list[dict[str, float]]:
    url = f"{service.removesuffix('/1')}/sandbox/log?since={since}&limit=1000"
    with urllib.request.urlopen(url) as response:
        items: list[dict[str, float]] = json.load(response)["items"]
    return items


def ask(service: str, redis: str, seconds: float, workers: int) -> int:
    end = 0.0

    def calls() -> Iterator[Call]:
        while time.monotonic() < end:
            yield account.ME.bind()

    connection = Connection("main", service, Secret(DEFAULT_KEY), budget_url=Secret(redis))
    limiter = RateLimiter.share_limit(connection)
    with (
        tempfile.TemporaryDirectory() as spool,
        Client(
            connection, limiter, record=lambda exchange: None, spool=Path(spool), workers=workers
        ) as client,
    ):
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.monotonic() + seconds
        return sum(isinstance(result, Response) for result in client.fetch_many(calls()))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    print(ask(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))
