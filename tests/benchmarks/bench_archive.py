"""What the archive costs: recording, sealing, reading back, an unchanged second night, one very large answer.

    python -m tests.benchmarks.bench_archive [--answers 20000] [--megabytes 300]

Goals: 5,000 answers of 3 kB recorded a second by one thread; 20,000 of them sealed in 1 s and read back in 2
s; a body of 300 MB recorded in 5 s with flat memory."""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from marketing_api.exchange import Exchange, Outcome, new_request_id
from marketing_api.operations import find
from warehouse.archive import Archive

TIMELINE = find("emailmarketing/getcontacttimeline")


def body(chance: random.Random, words: list[str], number: int) -> bytes:
    """About 3 kB of events that hardly repeat."""
    events = [
        {
            "key": "email-open",
            "snippet": " ".join(chance.choices(words, k=12)),
            "time": chance.randrange(10**9, 2 * 10**9),
        }
        for _ in range(22)
    ]
    envelope = {
        "response": {"header": {"status": "ok"}, "data": {"events": events}},
        "rate-limit": {"requests": str(number % 15)},
    }
    return json.dumps(envelope).encode()


def exchange(contact_id: int, content: bytes | Path) -> Exchange:
    now = dt.datetime.now(dt.UTC)
    return Exchange(
        new_request_id(), "main", TIMELINE.bind(id=contact_id), now, 3, 120, 200, Outcome.OK, None, content
    )


@contextlib.contextmanager
def timed(what: str, count: int = 0) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds = time.perf_counter() - began
    print(f"{what:<58}{seconds:7.2f} s" + (f" {count / seconds:>9,.0f}/s" if count else ""))


def anonymous_mb() -> float:
    """Memory in use without mapped files, whose pages the system may drop."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1]) / 1e3


def many_small(root: Path, count: int) -> None:
    chance = random.Random(1)
    words = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(3_000)
    ]
    contents = [body(chance, words, number) for number in range(count)]
    print(f"{count:,} answers of {sum(map(len, contents)) / count:,.0f} bytes")
    nights: list[list[int]] = []
    for night in ("first", "second, unchanged"):
        with Archive(root, full_bytes=1 << 40, full_rows=1 << 40) as archive:
            made = [exchange(number, content) for number, content in enumerate(contents, 1)]
            with timed(f"{night} night: record", count):
                for one in made:
                    archive.record(one)
            with timed(f"{night} night: seal", count):
                archive.seal()
            nights.append([one.request_id for one in made])
    print(
        "files: "
        f"{', '.join(f'{path.stat().st_size / 1e6:.1f} MB' for path in sorted((root / 'requests').rglob('*.parquet')))}"
    )
    with Archive(root) as archive:
        for label, ids in zip(("read back", "read back by reference"), nights, strict=True):
            with timed(label, count):
                assert sum(1 for _ in archive.responses(ids)) == count
        reusable = archive.reusable(
            "main",
            made[0].request_id,
            (made[0].requested_at, made[-1].requested_at + dt.timedelta(seconds=1)),
        )
        with timed("use again, one by one", count):
            assert all(reusable.get(one.call.key) for one in made)
    (root / "ledger.sqlite").unlink()
    with timed("open without a ledger", 2 * count):
        Archive(root).close()


def one_large(root: Path, megabytes: int) -> None:
    spool = root / "spool.json"
    chance = random.Random(2)
    with spool.open("w") as file:
        file.write('{"response":{"header":{"status":"ok"},"data":{"items":[0')
        while file.tell() < megabytes * 10**6:
            file.writelines(
                f',{{"id":{chance.randrange(10**9)},"email":"{chance.getrandbits(60):x}@example.com"}}'
                for _ in range(1_000)
            )
        file.write("]}}}")
    with Archive(root) as archive:
        before = anonymous_mb()
        large = exchange(1, spool)
        with timed(f"record a body of {spool.stat().st_size / 1e6:.0f} MB"):
            archive.record(large)
        with timed("unpack it again"):
            for answer in archive.responses([large.request_id]):
                assert isinstance(answer.body, Path)
        print(f"memory grown by {anonymous_mb() - before:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--answers", type=int, default=20_000)
    parser.add_argument("--megabytes", type=int, default=300)
    chosen = parser.parse_args()
    pa.array([1], pa.int64())  # the first call imports pandas, once per process
    for measure, size in ((one_large, chosen.megabytes), (many_small, chosen.answers)):
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder) / "archive" if measure is many_small else Path(folder), size)


if __name__ == "__main__":
    main()
