"""Publishes while others read and write, and publishes a large warehouse.

    python -m tests.benchmarks.bench_publish [--swaps 100] [--contacts 1000000] [--other-python PATH]

Goals: 100 swaps while four readers query in a loop, one of them with the file open from the first to the
last, and loads write: no error, no reader that sees half of anything; the large warehouse with 30 seconds of
the processor (others disturb the clock), below 1 GiB, held for less than 2 s. `--other-python`: an
interpreter with DuckDB 1.5, which reads along as a fifth. Exit code 1 when a goal is missed."""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

import warehouse.publish
from marketing_api.redaction import Secret
from warehouse.connection import open_database
from warehouse.errors import WarehouseLocked
from warehouse.masking import Masking
from warehouse.policies import PersonalData
from warehouse.publish import publish_copy, published_path
from warehouse.schema import ensure_schema

#: Opens the file anew each time (or keeps it: the first argument), and checks that what it sees is of one
#: moment.
_READER = """
import os, sys, time, duckdb
keeps, path, stop = sys.argv[1] == "keep", sys.argv[2], sys.argv[3]
queries, errors, one = 0, 0, {"threads": 1}
seen = set()
connection = duckdb.connect(path, read_only=True, config=one) if keeps else None
while not os.path.exists(stop):
    try:
        used = connection or duckdb.connect(path, read_only=True, config=one)
        rows = used.execute("select min(name), max(name), count(*), (select max(reply_to) from source.lists) from source.lists").fetchall()
        assert len(set(rows[0][:2])) == 1 and rows[0][2] == 50 and rows[0][3] == rows[0][0], rows
        seen.add(rows[0][0])
        if not keeps:
            used.close()
    except Exception as problem:
        errors += 1
        print(type(problem).__name__, str(problem)[:200], file=sys.stderr)
    queries += 1
    time.sleep(0.02)
print(queries, errors, len(seen), duckdb.__version__)
"""
#: Loads: each changes every row in one transaction.
_WRITER = """
import sys, time
from pathlib import Path
from warehouse.connection import open_database
path, stop, count = Path(sys.argv[1]), Path(sys.argv[2]), 0
while not stop.exists():
    with open_database(path, deadline_s=60) as connection:
        count += 1
        connection.execute("update source.lists set name = $1, reply_to = $1", [f"load {count}"])
    time.sleep(0.2)
print(count, 0, 0, "writer")
"""


def make(path: Path, *fill: str) -> None:
    with open_database(path) as connection:
        ensure_schema(connection)
        for statement in fill:
            connection.execute(statement)


@contextmanager
def others(home: Path, pythons: list[tuple[str, str]]) -> Iterator[list[list[str]]]:
    """Readers and a writer at work; what they counted is in the list afterwards."""
    stop, counted = home / "stop", list[list[str]]()
    readers = [
        [python, "-c", _READER, kind, str(published_path(home)), str(stop)] for python, kind in pythons
    ]
    commands = [*readers, [sys.executable, "-c", _WRITER, str(home / "warehouse.duckdb"), str(stop)]]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    time.sleep(2)
    try:
        yield counted
    finally:
        stop.touch()
        counted += [process.communicate(timeout=60)[0].split() for process in processes]


def measure_swaps(home: Path, swaps: int, other_python: str | None) -> bool:
    home.mkdir()
    lists = "select 'main' account, n list_id, 'load 0' as name, 'load 0' reply_to from range(50) as t(n)"
    make(home / "warehouse.duckdb", f"insert into source.lists by name {lists}")
    publish_copy(home)
    pythons = [(sys.executable, "anew")] * 3 + [(sys.executable, "keep")]
    pythons += [(other_python, "anew")] if other_python else []
    failed = 0
    began = time.monotonic()
    with others(home, pythons) as counted:
        for _ in range(swaps):
            try:
                publish_copy(home, deadline_s=60)
            except WarehouseLocked:
                failed += 1
    seconds = time.monotonic() - began
    *readers, writer = counted
    errors = sum(int(reader[1]) if reader else 1 for reader in readers)
    print(f"swaps                {swaps} in {seconds:.0f} s, {failed} failed (goal 0)")
    reads = sum(int(reader[0]) for reader in readers)
    versions = ", ".join(f"{reader[2]} (DuckDB {reader[3]})" for reader in readers)
    print(f"reads                {reads:,} by {len(readers)}, {errors} errors (goal 0)")
    print(f"versions seen        {versions}; the fourth kept the file open")
    print(f"loads meanwhile      {writer[0] if writer else 'failed'}")
    return not failed and not errors and bool(writer) and int(readers[3][2]) == 1


def measure_large(home: Path, contacts: int) -> bool:
    """A process of its own per way, so that each has its own peak."""
    home.mkdir()
    make(home / "warehouse.duckdb", *_large(contacts))
    size = (home / "warehouse.duckdb").stat().st_size / 1e6
    print(f"warehouse            {size:.0f} MB, {contacts:,} contacts, {5 * contacts:,} events")
    return all([_one(home, way) for way in PersonalData])  # noqa: C419 - a miss does not spare the others


def _large(contacts: int) -> list[str]:
    asked = "now() _first_seen_at, now() _changed_at, '{}'::json extra"
    return [
        "insert into source.contacts by name select 'main' account, 1 + i % 5 list_id, i contact_id, 'p' "
        "|| i || '@example.com' email, "
        "email as email_normalized, 'active' status, "
        f"json_object('first', 'Ann' || i % 997, 'phone', '555' || i) custom_fields, {asked} from "
        f"range({contacts}) t(i)",
        f"insert into source.timeline_events by name select 'main' account, i % {contacts} contact_id, "
        "md5(i::varchar) || '-1' event_key, "
        f"'email-campaign-sent' as \"key\", 'Campaign ' || i % 100 || ' was sent to person' || i snippet, "
        "timestamptz '2021-01-01' + interval (i % 2000) day occurred_at, json_array(json_object('value', "
        f"i)) details, {asked} "
        f"from range({5 * contacts}) t(i)",
        "insert into sync.requests by name select i request_id, 'main' account, "
        "'emailmarketing/getcontacttimeline' operation, "
        f"'{{\"contactid\": ' || i || '}}' params, now() requested_at, md5(i::varchar) body_sha256 from "
        f"range({contacts}) t(i)",
    ]


def _one(home: Path, way: str) -> bool:
    command = [sys.executable, "-m", "tests.benchmarks.bench_publish", "--home", str(home), "--way", way]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds, processor, held, peak = map(float, ran.stdout.split())
    goals = (
        f"processor {processor:.1f} s (goal 30), held {held:.2f} s (goal 2), peak {peak:.0f} MB (goal 1024)"
    )
    print(f"{way:20} {seconds:.1f} s, {goals}")
    return processor < 30 and held < 2 and peak < 1024


def child(home: Path, way: str) -> None:
    """Prints seconds, processor seconds, seconds of holding the warehouse, and the largest resident MB."""
    held: list[float] = []
    copy = warehouse.publish.copy_locked

    def timed(source: str, target: str) -> None:
        began = time.monotonic()
        copy(source, target)
        held.append(time.monotonic() - began)

    warehouse.publish.copy_locked = timed
    began = time.monotonic()
    key = Secret("a key for the benchmark") if way == "hash" else None
    publish_copy(home, Masking(PersonalData(way), key))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(time.monotonic() - began, used.ru_utime + used.ru_stime, sum(held), used.ru_maxrss / 1024)


def main() -> int:
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--swaps", type=int, default=100)
    parser.add_argument("--contacts", type=int, default=1_000_000)
    parser.add_argument("--other-python")
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        child(arguments.home, arguments.way)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        print(f"load                 {os.getloadavg()[0]:.1f}, DuckDB {duckdb.__version__}")
        fine = [
            measure_swaps(Path(folder) / "small", arguments.swaps, arguments.other_python),
            measure_large(Path(folder) / "large", arguments.contacts),
        ]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
