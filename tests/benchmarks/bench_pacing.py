"""How much of the limit is used, and how often the service refuses: one process, then two that share the
budget.

    python -m tests.benchmarks.bench_pacing [--seconds 60] [--limit 15] [--windows fixed following sliding
    bucket]

The server delays each request before it counts it (median 20 ms, 99th percentile 60 ms) and its answer (120
and 600 ms). Goal: at least 97 % of the limit, at most 0.3 % refused."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from marketing_api.client import Client, Connection, Secret
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import account
from marketing_api.rate_limit import RateLimiter, shared_path
from tests.simulators.limited_server import WINDOWS, counted, serving


def ask_for(seconds: float, url: str, workers: int) -> dict[str, float]:
    """Ask as much as the limit allows for so long, in this process."""
    end = time.monotonic() + seconds

    def questions() -> Iterator[Call]:
        while time.monotonic() < end:
            yield account.ME.bind()

    connection = Connection("main", url, Secret("a-key-of-the-benchmark"))
    with (
        tempfile.TemporaryDirectory() as spool,
        Client(
            connection,
            RateLimiter(shared_path(url, connection.key)),
            record=lambda exchange: None,
            spool=Path(spool),
            workers=workers,
        ) as client,
    ):
        began = os.times()
        answered = sum(isinstance(result, Response) for result in client.fetch_many(questions()))
        ended = os.times()
    return {"answered": answered, "cpu": ended.user + ended.system - began.user - began.system}


def measure(seconds: float, limit: int, windows: str, workers: list[int]) -> None:
    """One line of figures for so many processes with so many workers each."""
    with serving("--limit", str(limit), "--windows", windows) as (url, server):
        command = [
            sys.executable,
            "-m",
            "tests.benchmarks.bench_pacing",
            "--asker",
            url,
            "--seconds",
            str(seconds),
            "--workers",
        ]
        askers = [
            subprocess.Popen([*command, str(count)], stdout=subprocess.PIPE, text=True) for count in workers
        ]
        figures = [json.loads(asker.communicate()[0]) for asker in askers]
        total = counted(server)
    rate = total["accepted"] / total["seconds"]
    refused = total["refused"] / (total["accepted"] + total["refused"])
    shares = " + ".join(
        f"{each['answered'] / sum(one['answered'] for one in figures):.0%}" for each in figures
    )
    cpu = sum(each["cpu"] for each in figures) / total["accepted"] * 1000
    print(
        f"{windows:>9} windows, {' + '.join(map(str, workers)):>6} workers: {rate:.2f}/s = "
        f"{rate / limit:.1%} of the limit, "
        f"{total['refused']:.0f} refused = {refused:.2%}, shares {shares}, {cpu:.2f} ms CPU a request",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--limit", type=int, default=15)
    parser.add_argument("--windows", nargs="+", choices=WINDOWS, default=["fixed"])
    parser.add_argument("--asker", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=32, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.asker:
        print(json.dumps(ask_for(chosen.seconds, chosen.asker, chosen.workers)))
        return
    for windows in chosen.windows:
        for workers in ([32], [32, 8]):
            measure(chosen.seconds, chosen.limit, windows, workers)


if __name__ == "__main__":
    main()
