"""What forgetting costs: on arrival of a listing with 50 suppressed people in it; one person in the archive
of a large account; and the whole command in a home of that size, with its warehouse, models and published
file.

    python -m tests.benchmarks.bench_forget [--contacts 1000000] [--arrivals 100000] [--home FOLDER]

Nothing listens where the home's service would be: a request would end it. Goals: a listing takes a second
more for 100,000 contacts, less than half of what reading it takes; one person among a million contacts with
five million events is out of the archive within 20 s, without a request, in memory that does not grow with
the archive."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from home.folder import prepare_home
from marketing_api.exchange import Exchange, Outcome, Response, new_request_id
from marketing_api.operation import Call
from marketing_api.operations import contacts
from marketing_api.parsing import parse_rows
from tests.benchmarks.bench_archive import anonymous_mb, timed
from tests.simulators import model_data
from warehouse import disk
from warehouse.archive import Archive, sealed
from warehouse.archive.file_store import Files
from warehouse.archive.rewriting import forget_in_archive
from warehouse.archive.row import Digests, row_of
from warehouse.archive.suppression import add
from warehouse.models import build
from warehouse.publish import publish

LISTING = contacts.GETCONTACTS.bind(listid=3)
NOW = dt.datetime(2026, 11, 21, 2, tzinfo=dt.UTC)
#: Requests in one sealed file.
FILE_ROWS = 20_000


def address(number: int) -> str:
    return f"first{number % 977}.last{number}@mail{number % 13}.example"


def exchange(call: Call, body: bytes | Path) -> Exchange:
    return Exchange(new_request_id(), "main", call, NOW, 3, 120, 200, Outcome.OK, None, body)


def envelope(data: Any) -> bytes:
    return json.dumps({"response": {"header": {"status": "ok"}, "data": data}}).encode()


def write_listing(path: Path, count: int) -> Path:
    entry = {"status": "Active", "registration_date": "2026-01-02 03:04:05"}
    with path.open("w") as file:
        file.write(
            f'{{"response":{{"header":{{"status":"ok"}},"data":{{"contacts":{{"count":{count},"items":['
        )
        for number in range(1, count + 1):
            one = {
                "id": number,
                "email": address(number),
                **entry,
                "fields": {"12": f"First{number % 977}", "13": f"+41 79 {number}"},
            }
            file.write(json.dumps(one) + ("," if number < count else "]}}}}"))
    return path


def timeline(number: int) -> bytes:
    entries = [
        {
            "key": "email-campaign-sent",
            "snippet": f"Offer {event} of the week",
            "datetime": f"2026-0{event + 1}-02 03:04:05",
            "details": [
                {
                    "key": "open-date",
                    "label": "Open Date",
                    "value": f"2026-0{event + 1}-03 {number % 24:02d}:00:00",
                }
            ],
        }
        for event in range(5)
    ]
    return envelope(
        {"id": number, "email": address(number), "timeline": {"count": 5, "total": 5, "data": entries}}
    )


def arrival(folder: Path, count: int) -> None:
    root = folder / "archive"
    with Archive(root) as archive:
        with timed(f"record a listing of {count:,}, nobody is forgotten", count):
            archive.record(exchange(LISTING, write_listing(folder / "spool.json", count)))
        people = range(1, count, count // 50)
        add(root, map(address, people), (("main", number) for number in people))
        spool = write_listing(folder / "spool.json", count)
        before = anonymous_mb()
        with timed("the same with 50 forgotten people in it", count):
            kept = archive.record(exchange(LISTING, spool))
        print(f"memory grown by {anonymous_mb() - before:.0f} MB")
        with timed("to compare: read it into records", count):
            response = Response(kept.request_id, "main", kept.call, NOW, kept.body)
            assert (
                sum(len(rows.records) for rows in parse_rows(response, ZoneInfo("UTC"), NOW.date())) == count
            )


def fill(root: Path, folder: Path, count: int) -> None:
    with Archive(root) as archive:
        archive.record(exchange(LISTING, write_listing(folder / "spool.json", count)))
    (folder / "spool.json").unlink()
    for first in range(1, count + 1, FILE_ROWS):
        calls = [
            (exchange(contacts.TIMELINE.bind(id=number), timeline(number)))
            for number in range(first, min(first + FILE_ROWS, count + 1))
        ]
        name = f"date={NOW.date()}/{first:09d}.parquet"
        rows = (
            (row_of(each, Digests.of(each.body), None), each.body)
            for each in calls
            if isinstance(each.body, bytes)
        )
        sealed.put(sealed.tables_of(rows), Files(root), name, disk.Workspace(folder / "tmp"))
    Archive(root).close()


def forget_one(folder: Path, count: int) -> None:
    root = folder / "archive"
    with timed(f"(making an archive of {count:,} contacts and {5 * count:,} events)"):
        fill(root, folder, count)
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    print(f"archive: {size / 1e6:,.0f} MB")
    number = count // 2
    for way in ("dry run", "apply", "again"):
        forgotten, before = add(root, [address(number)], [("main", number)]), anonymous_mb()
        with timed(f"forget one person, {way}"):
            counts = forget_in_archive(root, forgotten, apply=way != "dry run")
        print(f"{dict(counts)}, memory grown by {anonymous_mb() - before:.0f} MB")


def whole_command(home: Path, count: int) -> None:
    prepare_home(home)
    with timed(f"(making a home of {count:,} contacts and {5 * count:,} events)"):
        fill(home / "archive", home, count)
        model_data.make(home / "warehouse.duckdb", count, 5 * count)
        report = build(home / "warehouse.duckdb")
        assert not report.problem, report.problem
        publish(home)
    for path in (home / "archive", home / "warehouse.duckdb", home / "published"):
        files = path.rglob("*") if path.is_dir() else [path]
        print(f"{path.name}: {sum(each.stat().st_size for each in files if each.is_file()) / 1e6:,.0f} MB")
    environment = {
        "MARKETING_HOME": str(home),
        "MARKETING_API_URL": "http://127.0.0.1:9/1",
        "MARKETING_API_KEY": "nobody-listens",
    }
    command = [
        sys.executable,
        "-m",
        "marketing_sync",
        "forget",
        "--contact-id",
        str(count // 2),
        "--account",
        "main",
    ]
    for way in ([], ["--apply"], ["--apply"]):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        ran = subprocess.run([*command, *way], env=os.environ | environment, capture_output=True, text=True)
        took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(
            f"{' '.join(['forget', *way])}: {took:.1f} s, processor {processor:.1f} s, at most "
            f"{after.ru_maxrss / 1024:,.0f} MB"
        )
        print(ran.stdout[-3000:], ran.stderr[-2000:], f"exit code {ran.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--contacts", type=int, default=1_000_000)
    parser.add_argument("--arrivals", type=int, default=100_000)
    parser.add_argument(
        "--home", type=Path, help="measure the whole command alone, in this new folder, which is kept"
    )
    chosen = parser.parse_args()
    if chosen.home:
        whole_command(chosen.home, chosen.contacts)
        return
    for measure, count in ((arrival, chosen.arrivals), (forget_one, chosen.contacts)):
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), count)


if __name__ == "__main__":
    main()
