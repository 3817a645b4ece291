"""Large accounts without a limit: many contacts in one answer a list (of the independent server, which holds
more than the sandbox), and many timelines.

    python -m tests.benchmarks.bench_scale [--contacts 100000] [--timelines 20000]

Goals: contacts under 1 GiB peak and under 30 s beyond the server's own time; the second night with nothing
changed in seconds; timelines faster than 600/s under 600 MB."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import requests

from marketing_api.sandbox.options import DEFAULT_KEY
from marketing_api.sandbox.server import spawn


@dataclass(frozen=True)
class Used:
    """What a command took: wall-clock and processor seconds, and its largest resident size in MB."""

    seconds: float
    peak_mb: float
    cpu_s: float


@contextmanager
def large_service(contacts: int) -> Iterator[tuple[str, str]]:
    """The independent server in a process of its own: its address and key."""
    words = [
        "-m",
        "tests.independent.server",
        "--port",
        "0",
        "--limit",
        "1000000",
        "--contacts",
        str(contacts),
    ]
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url, key = (word.partition("=")[2] for word in process.stdout.readline().split())
            yield url, key
        finally:
            process.terminate()


def command(url: str, home: Path, *arguments: str, key: str = DEFAULT_KEY) -> Used:
    """Run `marketing-sync` to its end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MARKETING_")}
    environment |= {"MARKETING_API_URL": url, "MARKETING_API_KEY": key, "MARKETING_HOME": str(home)}
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "marketing_sync", *arguments], env=environment, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(arguments)} failed with {status}")
    return Used(time.monotonic() - began, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def server_seconds(url: str, key: str, list_ids: list[int]) -> float:
    """How long the server itself takes for the contacts of these lists, one after the other."""
    began = time.monotonic()
    for list_id in list_ids:
        address = f"{url}/emailmarketing/getcontacts.json"
        params: dict[str, str | int] = {"key": key, "listid": list_id, "limit": 1_000_000}
        with requests.get(address, params=params, stream=True, timeout=600) as answer:
            for _ in answer.iter_content(1 << 20):
                pass
    return time.monotonic() - began


def rows(home: Path, sql: str) -> list[tuple[int, ...]]:
    """The rows of one query on the warehouse."""
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def measure_contacts(count: int, home: Path) -> None:
    """All contacts, twice."""
    with large_service(count) as (url, key):
        command(url, home, "sync", "--only", "lists", key=key)
        lists = rows(home, "select list_id from source.lists")
        own = server_seconds(url, key, [list_id for (list_id,) in lists])
        for night in ("first", "second"):
            used = command(url, home, "sync", "--only", "contacts", key=key)
            beyond = used.seconds - own
            print(
                f"contacts, {night} night: {used.seconds:.1f} s, server's own {own:.1f} s, processor "
                f"{used.cpu_s:.1f} s"
            )
            print(f"contacts, {night} night: beyond the server's own {beyond:.1f} s (goal 30)")
            print(f"contacts, {night} night: peak {used.peak_mb:.0f} MB (goal 1024)")
    print(f"contacts in the warehouse: {rows(home, 'select count(*) from source.contacts')[0][0]:,}")


def measure_timelines(count: int, home: Path) -> None:
    """All timelines."""
    with spawn("--contacts", str(count), "--rate-limit", "0") as url:
        command(url, home, "sync", "--only", "lists", "contacts")
        used = command(url, home, "sync", "--only", "timelines")
    asked, events = rows(
        home, "select count(timeline_asked_at), sum(timeline_served) from sync.contact_coverage"
    )[0]
    print(
        f"timelines: {asked:,} with {events:,} events in {used.seconds:.1f} s, processor {used.cpu_s:.1f} s"
    )
    print(f"timelines: {asked / used.seconds:.0f}/s (goal 600)")
    print(f"timelines: peak {used.peak_mb:.0f} MB (goal 600)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contacts", type=int, default=100_000)
    parser.add_argument("--timelines", type=int, default=20_000)
    arguments = parser.parse_args()
    if arguments.contacts:
        with tempfile.TemporaryDirectory() as folder:
            measure_contacts(arguments.contacts, Path(folder))
    if arguments.timelines:
        with tempfile.TemporaryDirectory() as folder:
            measure_timelines(arguments.timelines, Path(folder))


if __name__ == "__main__":
    main()
