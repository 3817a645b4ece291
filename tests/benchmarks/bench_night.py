"""What a night costs beside its requests, and how that compares with plain code which does the same without
any promise.

    python -m tests.benchmarks.bench_night [--contacts 600] [--bulk 200000] [--timelines 2000] [--only nights
    bulk timelines commands]

Nights run against a sandbox without a limit, so that only their own work is left; each figure is processor
seconds unless it says otherwise. Plain code: requests, json, one Arrow table, one insert, in a process of its
own in the same run. Goals: a first night 12 s, also with 400 days chosen; one on which nothing changed 5 s, 6 by
the clock; 200,000 contacts in one answer at most 4 times the plain code; 1,000 timelines 1.5 s; `status` and
`doctor` within 1 s each. Exit code 1 on a miss."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import requests

from marketing_api.sandbox.options import DEFAULT_KEY
from marketing_api.sandbox.server import spawn
from tests.benchmarks.bench_economy import judge
from tests.benchmarks.bench_scale import Used, command, rows
from tests.pipelines.sandboxes import Sandbox

_FREE = ("--rate-limit", "0")
_OPERATIONS = {"contacts": "emailmarketing/getcontacts", "timelines": "emailmarketing/getcontacttimeline"}
_PARAMS = {"contacts": "listid", "timelines": "id"}


def nights(contacts: int, home: Path) -> bool:
    """A first night, ones after it on which nothing changed, and a first night with many days chosen: with
    models, publishing and report."""
    today = dt.datetime.now(dt.UTC).date()
    chosen = ("--from", str(today - dt.timedelta(days=400)), "--to", str(today))
    with spawn("--contacts", str(contacts), *_FREE, "--now", dt.datetime.now(dt.UTC).isoformat()) as url:
        first = command(url, home / "plain", "sync")
        unchanged = []
        for _ in range(5):
            asked = Sandbox(url).count
            unchanged.append(command(url, home / "plain", "sync"))
            requested = Sandbox(url).asked(asked)
        plain = apart("night", url, *(json.dumps([each["operation"], each["params"]]) for each in requested))
        long = command(url, home / "long", "sync", *chosen)
    night = sorted(unchanged, key=lambda used: used.cpu_s)[2]
    print(
        f"nights of {contacts} contacts, load {os.getloadavg()[0]:.1f}; unchanged, the median of five: "
        f"{night.seconds:.1f} s by the clock, {night.peak_mb:.0f} MB, {len(requested)} requests, which plain code "
        f"takes {plain:.2f} s for; the first had {first.peak_mb:.0f} MB"
    )
    is_met = [
        judge("first night", first.cpu_s, 12, at_most=True),
        judge("first night, 400 days", long.cpu_s, 12, at_most=True),
        judge("unchanged night", night.cpu_s, 5, at_most=True),
    ]
    return all([*is_met, judge("unchanged night, seconds", night.seconds, 6, at_most=True)])


def bulk(contacts: int, home: Path) -> bool:
    """Many contacts in few answers."""
    with spawn("--contacts", str(contacts), *_FREE) as url:
        start = command(url, home, "sync", "--only", "lists")
        ours = command(url, home, "sync", "--only", "contacts")
        lists = [str(number) for (number,) in rows(home, "select list_id from source.lists")]
        plain = apart("contacts", url, *lists)
    print(
        f"{contacts:,} contacts: {ours.cpu_s:.1f} s, of it start {start.cpu_s:.1f} s; plain code "
        f"{plain:.1f} s"
    )
    return judge(
        "contacts, beside the start, times the plain code",
        (ours.cpu_s - start.cpu_s) / plain,
        4,
        at_most=True,
    )


def timelines(contacts: int, home: Path) -> bool:
    """A request each."""
    with spawn("--contacts", str(contacts), *_FREE) as url:
        start = command(url, home, "sync", "--only", "lists", "contacts")
        ours = command(url, home, "sync", "--only", "timelines")
        found = [str(number) for (number,) in rows(home, "select distinct contact_id from source.contacts")]
        plain = apart("timelines", url, *found)
    each = 1000 / len(found)
    print(
        f"{len(found):,} timelines: {ours.cpu_s:.1f} s, of it start {start.cpu_s:.1f} s; plain code "
        f"{each * plain:.2f} s for 1,000"
    )
    print(f"  beside the start, times the plain code: {(ours.cpu_s - start.cpu_s) / plain:.3f}")
    return judge("1,000 timelines, beside the start", each * (ours.cpu_s - start.cpu_s), 1.5, at_most=True)


def commands(contacts: int, home: Path) -> bool:
    """What people wait for, the best of three."""
    with spawn("--contacts", str(contacts), *_FREE) as url:
        command(url, home, "sync", "--only", "lists", "contacts")
        took: dict[str, Used] = {}
        for name in ("status", "doctor"):
            took[name] = min((command(url, home, name) for _ in range(3)), key=lambda used: used.seconds)
    print(f"commands, {contacts:,} contacts, load {os.getloadavg()[0]:.1f}")
    met = [judge(f"{name}, seconds", used.seconds, 1, at_most=True) for name, used in took.items()]
    return all(met)


# --- plain code ---


def apart(what: str, url: str, *keys: str) -> float:
    """Processor seconds of the plain code, its imports left out, in a process of its own."""
    words = [sys.executable, "-m", "tests.benchmarks.bench_night", "--plain", what, url]
    return float(
        subprocess.run(words, input="\n".join(keys), text=True, check=True, stdout=subprocess.PIPE).stdout
    )


def plain(what: str, url: str, keys: list[str]) -> None:
    """Request all, one after the other, and put them into a new DuckDB file; prints the processor seconds."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    before = usage.ru_utime + usage.ru_stime
    session, found = requests.Session(), list[dict[str, Any]]()
    for key in keys:
        operation, given = json.loads(key) if what == "night" else (_OPERATIONS[what], {_PARAMS[what]: key})
        params = {"key": DEFAULT_KEY, **given}
        answer = session.get(f"{url}/{operation}.json", params=params, timeout=600).json()
        found += _entries(what, answer)
    with (
        tempfile.TemporaryDirectory() as folder,
        duckdb.connect(str(Path(folder) / "plain.duckdb")) as connection,
    ):
        connection.register("found", pa.Table.from_pylist(found))
        connection.execute("create table plain as from found")
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(usage.ru_utime + usage.ru_stime - before)


def _entries(what: str, answer: dict[str, Any]) -> list[dict[str, Any]]:
    data = answer["response"]["data"]
    if what == "night":
        return [{"data": json.dumps(data)}]
    found = data.get("contacts", {}).get("items", []) if what == "contacts" else data["timeline"]["data"]
    return [{name: str(value) for name, value in each.items()} for each in found]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--contacts", type=int, default=600)
    parser.add_argument("--bulk", type=int, default=200_000)
    parser.add_argument("--timelines", type=int, default=2000)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--plain", nargs=2)
    chosen = parser.parse_args()
    if chosen.plain:
        plain(chosen.plain[0], chosen.plain[1], sys.stdin.read().splitlines())
        return 0
    parts: dict[str, Callable[[Path], bool]] = {
        "nights": lambda home: nights(chosen.contacts, home),
        "bulk": lambda home: bulk(chosen.bulk, home),
        "timelines": lambda home: timelines(chosen.timelines, home),
        "commands": lambda home: commands(20_000, home),
    }
    met = []
    for name, part in parts.items():
        if not chosen.only or name in chosen.only:
            with tempfile.TemporaryDirectory() as folder:
                met.append(part(Path(folder)))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
