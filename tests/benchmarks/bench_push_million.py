"""The plan of a push of a million rows, of which the warehouse knows a tenth: the whole command in a process of
its own, for contacts, tags and activities, as CSV, Parquet and a query; Excel with a fifth of the rows.

    python -m tests.benchmarks.bench_push_million [--rows 1000000] [--only contacts.csv …]

Goals for each: at most 60 s of processor and 1 GB of memory at a million rows, in proportion for others (of
memory, above 300 MB); every row planned. Each case is ended after ten minutes."""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import openpyxl
import pyarrow.csv as pc
import pyarrow.parquet as pq

from tests.benchmarks.bench_push_plan import people, write_csv
from tests.write_back.planner import make_warehouse
from write_back.kinds import ACTIVITIES, CONTACTS, TAGS

GOAL_S, GOAL_MB, BASE_MB, LIMIT_S = 60.0, 1000.0, 300.0, 600
KINDS = (CONTACTS, TAGS, ACTIVITIES)
QUERIES: Mapping[str, str] = {
    CONTACTS: "'News' as list, 'City ' || n % 500 as city",
    TAGS: "'vip, region ' || n % 20 as tag",
    ACTIVITIES: "'Order ' || n as description, timestamp '2026-11-01' + interval (n) second as datetime",
}


def records(kind: str, count: int) -> Iterator[tuple[str, ...]]:
    """Rows of tags or activities, with their header."""
    yield ("email", "tag") if kind == TAGS else ("email", "description", "datetime")
    for row in range(count):
        email, minute = f"person.{row}@example.com", f"2026-11-{1 + row % 20:02} {row % 24:02}:{row % 60:02}"
        yield (email, f"vip, region {row % 20}") if kind == TAGS else (email, f"Order {row}", minute)


def write_files(folder: Path, kind: str, count: int) -> None:
    """CSV, Parquet, and a workbook of a fifth."""
    path = folder / f"{kind}.csv"
    if kind == CONTACTS:
        write_csv(path, count, changed_every=100)
    else:
        with path.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows(records(kind, count))
    pq.write_table(pc.read_csv(path), path.with_suffix(".parquet"))
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    with path.open(newline="", encoding="utf-8") as stream:
        for _, record in zip(range(count // 5 + 1), csv.reader(stream), strict=False):
            sheet.append(record)
    book.save(path.with_suffix(".xlsx"))


def measured(home: Path, kind: str, *source: str) -> tuple[float, float, str]:
    """Seconds of processor and MB of memory of `push KIND`, and what it says."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MARKETING_")}
    command = [sys.executable, "-m", "marketing_sync", "push", kind, *source]
    child = subprocess.Popen(
        ["timeout", str(LIMIT_S), *command],
        env=own | {"MARKETING_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    text = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text if not child.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="+", default=())
    chosen = parser.parse_args()
    met = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        make_warehouse(home / "warehouse.duckdb", people(chosen.rows // 10))
        for kind in KINDS:
            write_files(home, kind, chosen.rows)
            sql = f"select 'person.' || n || '@example.com' as email, {QUERIES[kind]} from range({chosen.rows}) as r (n)"
            files = {
                f"{kind}.{end}": ("--from", str(home / f"{kind}.{end}")) for end in ("csv", "parquet", "xlsx")
            }
            for name, source in chain(files.items(), [(f"{kind}.sql", ("--sql", sql))]):
                if chosen.only and name not in chosen.only:
                    continue
                rows = chosen.rows // 5 if name.endswith("xlsx") else chosen.rows
                share = rows / 1e6
                seconds, memory, text = measured(home, kind, *source)
                is_met = (
                    text.startswith(f"{rows:,} rows")
                    and seconds <= GOAL_S * share + 5
                    and memory <= BASE_MB + (GOAL_MB - BASE_MB) * chosen.rows / 1e6
                )
                met.append(is_met)
                print(
                    f"  {name}: {rows:,} rows, processor {seconds:.1f} s, at most {memory:,.0f} MB, load "
                    f"{os.getloadavg()[0]:.1f}: {'met' if is_met else 'MISSED'}",
                    flush=True,
                )
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
