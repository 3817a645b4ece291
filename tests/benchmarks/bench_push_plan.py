"""Planning a nightly push of everybody: a CSV file of 100,000 rows of which 1 % changed, against a warehouse
that knows more.

    python -m tests.benchmarks.bench_push_plan [--rows 100000]

Goals: at most 1 GB of memory for 200,000 rows that are all sent again; exactly one request per changed row; the
plan, reading the file included, in under 5 s (aim: 3 s), also
when the outbox remembers that every one of these rows was sent before, and when every row is new; and so the
whole command where 1 % changed, from its start to its exit, in a process of its own. Planning hardly waits
for anything, so on a busy machine the processor time tells: the shorter of both counts."""

from __future__ import annotations

import argparse
import csv
import gc
import os
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from home.settings import Settings
from tests.write_back.planner import LISTS, READ_AT, make_warehouse
from write_back.account_state import load_known
from write_back.input.files import read_file
from write_back.item import Options, Plan
from write_back.kinds import CONTACTS, make_plan
from write_back.outbox.outbox import Outbox

GOAL_S, GOAL_MB, MANY = 5.0, 1000, 200_000
#: The command by a small program: the most memory that one takes begins with that of the one which starts it.
_MEASURED = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)"""
FIRST = ("Ann", "Bo", "Cyril", "Dörte", "Édith")


def people(count: int) -> list[tuple[int, int, str, int, dict[str, Any] | None]]:
    """Contacts of two lists with four custom-field values each; the file is about as many of them."""
    return [
        (
            1000 + number,
            1 + number % 2,
            f"person.{number}@example.com",
            1 if number % 10 else 2,
            {"11": f"City {number % 500}", "12": f"+49 {number:07d}"}
            if number % 2 == 0
            else {"city": f"City {number % 500}", "VIP since": "2020"},
        )
        for number in range(count)
    ]


def write_csv(path: Path, count: int, *, changed_every: int, prefix: str = "person") -> None:
    """Rows as the warehouse knows them, but for one in `changed_every`."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["Email", "List", "Status", "City", "Home phone", "VIP since"])
        for number in range(count):
            city = f"City {number % 500}" if number % changed_every else "Moved away"
            own = (f"+49 {number:07d}", "") if number % 2 == 0 else ("", "2020")
            writer.writerow(
                [
                    f"{prefix}.{number}@Example.com",
                    LISTS[1 + number % 2],
                    "active" if number % 10 else "unsubscribed",
                    city,
                    *own,
                ]
            )


def timed(home: Path, file: Path, outbox: Outbox) -> tuple[float, Plan]:
    gc.collect()
    began, cpu = time.perf_counter(), time.process_time()
    rows = read_file(file)
    read = time.perf_counter()
    known = load_known(Settings(home, lock_seconds=300), "main")
    plan = make_plan(CONTACTS, rows, known, outbox, Options())
    took = time.perf_counter() - began
    used = time.process_time() - cpu
    print(
        f"  read {read - began:.2f} s, plan {began + took - read:.2f} s, processor {used:.2f} s; "
        f"{len(plan.idle):,} idle rows"
    )
    return min(took, used), plan


def push_command(file: Path) -> list[str]:
    return [sys.executable, "-m", "marketing_sync", "push", "contacts", "--from", str(file), "--sandbox"]


def memory_of_command(home: Path, file: Path) -> int:
    """MB at most of `marketing-sync push contacts --all`."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MARKETING_")}
    command = [sys.executable, "-c", _MEASURED, *push_command(file), "--all"]
    told = subprocess.run(
        command, env=ours | {"MARKETING_HOME": str(home)}, stdout=subprocess.PIPE, check=True
    )
    return int(told.stdout)


def timed_command(home: Path, file: Path) -> tuple[float, int]:
    """Seconds of `marketing-sync push contacts`, and the requests that it tells: one is whose account it is."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MARKETING_")}
    command = push_command(file)
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    told = subprocess.run(command, env=ours | {"MARKETING_HOME": str(home)}, capture_output=True, text=True)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"  by the clock {took:.2f} s, processor {used:.2f} s, exit code {told.returncode}")
    found = re.search(r"^([\d,]+) requests", told.stdout, re.MULTILINE)
    return min(took, used), int(found[1].replace(",", "")) if found and not told.returncode else 0


def judged(name: str, took: float, requests: int, wanted: int) -> bool:
    """Whether both goals were met, which is said."""
    is_met = took < GOAL_S and requests == wanted
    print(
        f"  {name}: {took:.2f} s (goal {GOAL_S:g} s), {requests:,} requests (goal {wanted:,}): "
        f"{'met' if is_met else 'MISSED'}"
    )
    return is_met


def remember_all(home: Path, file: Path, outbox: Outbox) -> None:
    """As if every row had been sent and read since."""
    known = load_known(Settings(home, lock_seconds=300), "main")
    plan = make_plan(CONTACTS, read_file(file), known, outbox, Options(send_all=True))
    outbox.enqueue(replace(plan, idle=(), bad=()))
    with sqlite3.connect(outbox.path) as connection:
        connection.execute("update item set state = 'applied', done_at = ?", (READ_AT.timestamp() - 86_400,))
    connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    count = parser.parse_args().rows
    met = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        make_warehouse(home / "warehouse.duckdb", people(count * 13 // 10))
        same, file, fresh = home / "same.csv", home / "rows.csv", home / "new.csv"
        write_csv(same, count, changed_every=count + 1)
        write_csv(file, count, changed_every=100)
        write_csv(fresh, count, changed_every=count + 1, prefix="fresh")
        print(f"{count:,} rows, load {os.getloadavg()[0]:.1f}")
        met.append(judged("the whole command, 1 % changed", *timed_command(home, file), count // 100 + 1))
        with Outbox(home / "outbox.sqlite") as outbox:
            for name, path, wanted in (
                ("1 % changed", file, count // 100),
                ("all new", fresh, count),
                ("sent before", file, count // 100),
            ):
                if name == "sent before":
                    remember_all(home, same, outbox)
                took, plan = timed(home, path, outbox)
                met.append(judged(name, took, len(plan.items) if not plan.bad else -1, wanted))
        met.append(judged("the whole command, sent before", *timed_command(home, file), count // 100 + 1))
        write_csv(file, MANY, changed_every=100)
        memory = memory_of_command(home, file)
        print(f"  {MANY:,} rows, all sent again: {memory:,} MB (goal {GOAL_MB:,} MB)")
        met.append(memory <= GOAL_MB)
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
