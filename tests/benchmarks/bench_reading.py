"""What reading costs: one answer with a million contacts, and many small timelines.

    python -m tests.benchmarks.bench_reading [--contacts 1000000] [--timelines 20000]

Goals: a million contacts (280 MB in a file) read in 15 s of one core with less than 600 MB at most; 1,500
timelines of 11 events a second by one thread."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import resource
import tempfile
import time
from collections import deque
from collections.abc import Callable
from itertools import starmap
from pathlib import Path
from zoneinfo import ZoneInfo

from marketing_api import parsing, validation
from marketing_api.envelope import Body, read_envelope
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import contacts

ZONE = ZoneInfo("America/New_York")
EVENTS = 11


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--contacts", type=int, default=1_000_000)
    parser.add_argument("--timelines", type=int, default=20_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure_contacts(Path(folder) / "body.json", chosen.contacts)
    measure_timelines(chosen.timelines)


def measure_contacts(path: Path, count: int) -> None:
    with path.open("w") as file:
        file.write('{"response":{"header":{"status":"ok"},"data":{"contacts":{"items":[')
        for number in range(count):
            file.write(("," if number else "") + json.dumps(contact(number)))
        file.write(']}}},"rate-limit":{"limit":"15"}}')
    question = contacts.GETCONTACTS.bind(listid=5)
    timed("contacts, checked", count, lambda: check(question, path))
    timed("contacts, read", count, lambda: read(question, path))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"a body of {path.stat().st_size / 1e6:,.0f} MB took {peak:,.0f} MB of memory at most")


def contact(number: int) -> dict[str, object]:
    fields = {
        "101": f"First{number}",
        "102": f"Last name {number}",
        "103": f"+1 555 {number:07}",
        "104": f"Some street, City {number}",
    }
    added = (
        f"{number % 12 + 1:02}/{number % 28 + 1:02}/20{number % 20 + 10} {number % 24:02}:{number % 60:02}"
    )
    email = f"someone.with.name{number}@example-domain.com"
    return {
        "id": str(10_000_000 + number),
        "email": email,
        "status": str(number % 4),
        "registration_date": added,
        "fields": fields,
    }


def measure_timelines(count: int) -> None:
    questions = [contacts.TIMELINE.bind(id=number, include="utm,automated") for number in range(count)]
    bodies = [
        json.dumps({"response": {"header": {"status": "ok"}, "data": timeline(number)}}).encode()
        for number in range(count)
    ]
    pairs = list(zip(questions, bodies, strict=True))
    timed("timelines, checked", count, lambda: deque(starmap(check, pairs), maxlen=0))
    timed("timelines, read", count, lambda: deque(starmap(read, pairs), maxlen=0))


def timeline(number: int) -> dict[str, object]:
    details = [
        {"key": key, "label": key, "value": "11/04/2014 16:33"}
        for key in ("send-date", "open-date", "links-clicked")
    ]
    events = [
        {
            "key": "email-campaign-sent",
            "snippet": f"Campaign {each} was sent",
            "timestamp": 1_700_000_000 + each,
            "details": details,
        }
        for each in range(EVENTS)
    ]
    return {
        "id": number,
        "email": "a@example.com",
        "timeline": {"data": events, "count": EVENTS, "total": EVENTS},
        "utm": {"data": []},
    }


def check(question: Call, body: Body) -> None:
    validation.check(question, 200, {}, read_envelope(body))


def read(question: Call, body: Body) -> int:
    answer = Response(1, "main", question, dt.datetime.now(dt.UTC), body)
    return sum(len(rows.records) for rows in parsing.parse_rows(answer, ZONE, dt.date(2026, 1, 1)))


def timed(what: str, count: int, work: Callable[[], object]) -> None:
    began, cpu = time.perf_counter(), time.process_time()
    work()
    took, used = time.perf_counter() - began, time.process_time() - cpu
    print(f"{count:,} {what}: {took:.2f} s, {used:.2f} s of processor, {count / took:,.0f} a second")


if __name__ == "__main__":
    main()
