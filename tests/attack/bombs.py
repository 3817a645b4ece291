"""Bombs: little that becomes much. Each is met in a process of its own, whose memory and time are bounded.

`python -m tests.attack.bombs NAME` meets one in this process.
"""

from __future__ import annotations

import datetime as dt
import json
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

MB = 1_000_000
#: What answers and inputs may hold here; memory may be so many times that, beside the libraries.
_LIMIT, _TIMES, _LIBRARIES = 50 * MB, 5, 250 * MB
_MOST_S = 60.0


@dataclass(frozen=True)
class Met:
    """What became of a bomb: the refusal, processor seconds, peak memory in bytes."""

    said: str
    seconds: float
    peak: int


def _deflated(wbits: int) -> bytes:
    packer = zlib.compressobj(9, wbits=wbits)
    return b"".join([*(packer.compress(b" " * MB) for _ in range(640)), packer.flush()])


def _answered(folder: Path, head: str, body: bytes, again: int = 1) -> str:
    """What the transport says of an answer; `again`: how often the body is sent."""
    from marketing_api.records.account import ME
    from marketing_api.redaction import Secret
    from marketing_api.transport import Transport
    from tests.marketing_api.raw_server import RawServer

    def send(connection: socket.socket, _: int) -> bool:
        connection.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\nConnection: close\r\n\r\n".encode())
        for _ in range(again):
            connection.sendall(body)
        return False

    with RawServer(send) as server:
        transport = Transport(server.url, Secret("k" * 20), spool=folder, connections=1, most_bytes=_LIMIT)
        received = transport.send(ME.bind(), "body.json")
        transport.close()
    return str(received.problem)


def _read(items: str) -> str:
    """What reading a listing of contacts says."""
    from marketing_api import parsing, validation
    from marketing_api.envelope import read_envelope
    from marketing_api.errors import MarketingApiError
    from marketing_api.operations import ALL
    from tests.marketing_api.responses import of_body

    answer = of_body(
        ALL["emailmarketing/getcontacts"],
        f'{{"response":{{"header":{{"status":"ok"}},"data":{items}}}}}'.encode(),
        listid=1,
    )
    try:
        validation.check_response(answer.call, 200, {}, read_envelope(answer.body))
    except MarketingApiError as problem:
        return str(problem)
    reasons = [
        entry.reason
        for rows in parsing.parse_rows(answer, ZoneInfo("UTC"), dt.date(2026, 1, 1))
        for entry in rows.rejected
    ]
    return f"{len(reasons)} rejected: {reasons[0]}" if reasons else "read"


def _pushed(path: Path) -> str:
    from write_back.input.files import read_file
    from write_back.input.rows import InputError

    try:
        return f"read: {len(read_file(path, limit=_LIMIT))} rows"
    except InputError as problem:
        return str(problem)


def _workbook(folder: Path, sheet: bytes, again: int, *, is_lying: bool = False) -> Path:
    import openpyxl

    plain, path = folder / "plain.xlsx", folder / "bomb.xlsx"
    openpyxl.Workbook().save(plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for member in source.infolist():
            if not member.filename.endswith("sheet1.xml"):
                target.writestr(member, source.read(member))
        with target.open("xl/worksheets/sheet1.xml", "w") as file:
            file.write(
                b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
            )
            for _ in range(again):
                file.write(sheet)
            file.write(b"</sheetData></worksheet>")
        if is_lying:
            target.infolist()[-1].file_size = 1_000
    return path


def _sparse(folder: Path, size: int) -> Path:
    path = folder / "line.csv"
    with path.open("wb") as file:
        file.write(b"email,tag\n")
        file.truncate(size)
    return path


def _line(folder: Path) -> Path:
    path = folder / "line.csv"
    path.write_bytes(b"email,tag\n" + b"a" * (_LIMIT - 100))
    return path


def _parquet(folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "rows.parquet"
    rows = pa.table({"email": pa.array(["a@example.com"] * 1_000_000).dictionary_encode()})
    with pq.ParquetWriter(path, rows.schema) as writer:
        for _ in range(50):
            writer.write_table(rows)
    return path


def _queried(folder: Path, sql: str) -> str:
    import duckdb

    from home.settings import Settings
    from write_back.input.query import read_query
    from write_back.input.rows import InputError

    path = folder / "warehouse.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "create schema source; create table source.people as select 'person ' || range as name from "
            "range(100000)"
        )
    try:
        return f"read: {len(read_query(Settings(folder, query_seconds=5, input_limit=_LIMIT), sql))} rows"
    except InputError as problem:
        return str(problem)


_CELLS = b'<row r="1"><c r="A1" t="inlineStr"><is><t>' + b"a" * MB + b"</t></is></c></row>"
_CHUNK = b"%x\r\n" % MB + b" " * MB + b"\r\n"
_CROSS = "source.people a, source.people b"
BOMBS: dict[str, Callable[[Path], str]] = {
    "nothing": lambda folder: "",
    "gzip, 640 MB": lambda folder: _answered(folder, "Content-Encoding: gzip", _deflated(31)),
    "deflate, 640 MB": lambda folder: _answered(folder, "Content-Encoding: deflate", _deflated(15)),
    "gzip in gzip": lambda folder: _answered(
        folder, "Content-Encoding: gzip, gzip", zlib.compress(_deflated(31), 9, wbits=31)
    ),
    "chunks without end": lambda folder: _answered(folder, "Transfer-Encoding: chunked", _CHUNK, 500),
    "a header without end": lambda folder: _answered(folder, "Set-Cookie: a=" + "b" * 10 * MB, b""),
    "lists 100,000 deep": lambda folder: _read(f'{{"contacts":{{"items":{"[" * 100_000 + "]" * 100_000}}}}}'),
    "1,000,000 names": lambda folder: _read(
        f'{{"contacts":{{"items":[{{{",".join(f"{chr(34)}{n}{chr(34)}:0" for n in range(MB))}}}]}}}}'
    ),
    "a number of 1,000,000 digits": lambda folder: _read(f'{{"contacts":{{"items":[{{"id":{"9" * MB}}}]}}}}'),
    "a name of 1 MB": lambda folder: _read(f'{{"contacts":{{"items":[{{"{"n" * MB}":1}}]}}}}'),
    "a sheet of 600 MB": lambda folder: _pushed(_workbook(folder, _CELLS, 600)),
    "a sheet of 600 MB that says 1 kB": lambda folder: _pushed(_workbook(folder, _CELLS, 600, is_lying=True)),
    "row 999,999,999 of a sheet": lambda folder: _pushed(
        _workbook(folder, b'<row r="999999999"><c r="A999999999"><v>1</v></c></row>', 1)
    ),
    "a sheet of cells without end": lambda folder: _pushed(_workbook(folder, b'<c r="A1"' * 100_000, 40)),
    "a line of 1 GB": lambda folder: _pushed(_sparse(folder, 1_000 * MB)),
    "a line of 50 MB": lambda folder: _pushed(_line(folder)),
    "50,000,000 equal rows in Parquet": lambda folder: _pushed(_parquet(folder)),
    "a query of 10,000,000,000 rows": lambda folder: _queried(
        folder, f"select a.name, b.name as other from {_CROSS}"
    ),
    "a query without end": lambda folder: _queried(
        folder, f"select count(*) as n from {_CROSS} where md5(a.name || b.name) < '0'"
    ),
    "a query that sorts 10,000,000,000 rows": lambda folder: _queried(
        folder, f"select a.name from {_CROSS} order by md5(b.name)"
    ),
}


def meet(name: str) -> Met:
    """Meet a bomb in a process of its own. AssertionError when that took more than it may."""
    command = [sys.executable, "-m", "tests.attack.bombs", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{name}: {done.stderr[-2000:]}; again: {' '.join(command)}"
    met = Met(**json.loads(done.stdout.splitlines()[-1]))
    assert met.peak <= _TIMES * _LIMIT + _LIBRARIES, (
        f"{name}: {met.peak // MB} MB; again: {' '.join(command)}"
    )
    assert met.seconds <= _MOST_S, f"{name}: {met.seconds} s; again: {' '.join(command)}"
    return met


def attack(minutes: float = 10, seed: int = 0) -> str:
    """Every bomb once (there is no chance in them)."""
    lines = ["| bomb | peak memory | processor | what is said |", "|---|---|---|---|"]
    for name in BOMBS:
        met = meet(name)
        lines.append(f"| {name} | {met.peak // MB} MB | {met.seconds:.1f} s | {met.said} |")
    return "\n".join(lines)


def _peak() -> int:
    """Bytes of this program at its largest; `ru_maxrss` would count those of the process that started it."""
    (line,) = (
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) * 1024


def _meet_here(name: str) -> Met:
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        said = BOMBS[name](Path(folder))
    return Met(said, round(time.process_time() - began, 2), _peak())


if __name__ == "__main__":
    print(json.dumps(vars(_meet_here(sys.argv[1]))))
