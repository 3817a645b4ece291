"""What the archive keeps for ever: Parquet files of rows with their bodies, and files of large bodies.

Row groups are small (a body is read by reading its group) and rows stand in the order of their ids, so that
the statistics of `request_id` lead to the group. Not here: which rows go into which file (`archive`), finding
the file (`ledger`)."""

import bisect
import contextlib
import datetime as dt
import hashlib
import itertools
import logging
import mmap
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from marketing_api.envelope import Envelope
from marketing_api.exchange import Outcome
from warehouse.archive import disk
from warehouse.archive.row import DROPPED, HEAD_SCHEMA, SCHEMA, Digests, Row
from warehouse.errors import ArchiveDamaged

log = logging.getLogger(__name__)

_GROUP_ROWS = 500
_GROUP_BYTES = 8 << 20
#: Columns with few values; the others (ids, times, hashes, bodies) would only fill a dictionary to throw it
#: away.
_REPETITIVE = ["account", "operation", "params", "http_status", "outcome", "error"]


def write(path: Path, tables: Iterable[pa.Table]) -> None:
    """A new file with the rows of the tables, in the order of their ids; of which no more than a group is in
    memory."""
    with os.fdopen(disk.create(path), "wb") as file:
        writer = pq.ParquetWriter(
            file,
            SCHEMA,
            compression="zstd",
            use_dictionary=_REPETITIVE,
            write_statistics=["request_id", "requested_at", "operation"],
            write_page_checksum=True,
        )
        for group in _groups(tables):
            writer.write_table(group, row_group_size=len(group))
        writer.close()


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    group: list[pa.Table] = []
    count = size = 0
    for table in tables:
        if group and (count + len(table) > _GROUP_ROWS or size + table["body"].nbytes > _GROUP_BYTES):
            yield pa.concat_tables(group)
            group, count, size = [], 0, 0
        group, count, size = [*group, table], count + len(table), size + table["body"].nbytes
    if group:
        yield pa.concat_tables(group)


def tables_of(rows: Iterable[tuple[Row, bytes]]) -> Iterator[pa.Table]:
    """The rows, each with the body that it has itself; every table small enough to be in memory."""
    rest = iter(rows)
    while table := list(_until_full(rest)):
        columns = [
            pa.array([getattr(row, field.name) for row, _ in table], field.type) for field in HEAD_SCHEMA
        ]
        yield pa.Table.from_arrays(
            [*columns, pa.array([body or None for _, body in table], pa.binary())], schema=SCHEMA
        )


def _until_full(rows: Iterator[tuple[Row, bytes]]) -> Iterator[tuple[Row, bytes]]:
    size = 0
    for row, body in itertools.islice(rows, _GROUP_ROWS):
        yield row, body
        if (size := size + len(body)) >= _GROUP_BYTES:
            return


def merged(paths: Iterable[Path]) -> Iterator[pa.Table]:
    """All rows of the files in the order of their ids, each once, in small tables: only groups that overlap
    are in memory together. ArchiveDamaged."""
    files = [SealedFile(path) for path in paths]
    groups = sorted(
        (first, number, group) for number, file in enumerate(files) for group, first in enumerate(file.firsts)
    )
    held = SCHEMA.empty_table()
    for (_, number, group), following in itertools.zip_longest(groups, groups[1:]):
        held = pa.concat_tables([held, files[number].read(group, SCHEMA.names).cast(SCHEMA)]).sort_by(
            "request_id"
        )
        ids = held["request_id"].to_numpy()
        if end := int(np.searchsorted(ids, following[0])) if following else len(ids):
            yield held.slice(0, end).filter(pa.array(np.diff(ids[:end], prepend=0) != 0))
        held = held.slice(end)


def read_columns(path: Path, names: Collection[str] = tuple(HEAD_SCHEMA.names)) -> pa.Table:
    """All rows of a file with the columns named, in the schema's order; by default all but the body.
    ArchiveDamaged."""
    with _readable(path):
        return pq.ParquetFile(path, page_checksum_verification=True).read(
            [name for name in HEAD_SCHEMA.names if name in names]
        )


def columns_or_none(path: Path, names: Collection[str] = tuple(HEAD_SCHEMA.names)) -> pa.Table | None:
    """The same; None for a file that is missing or damaged, which is logged: the others can be read."""
    try:
        return read_columns(path, names)
    except ArchiveDamaged as problem:
        log.warning("a file of the archive is left out: %s", problem)
        return None


def unnamed_bodies(root: Path, files: Iterable[Path]) -> Iterator[Path]:
    """The files of large bodies that no row of these sealed files names. ArchiveDamaged."""
    named = set[str]()
    for path in files:
        named.update(read_columns(path, ("body_file",))["body_file"].drop_null().to_pylist())
    for path in root.glob("bodies/date=*/*.zst"):
        if path.relative_to(root).as_posix() not in named:
            yield path


def are_whole(rows: pa.Table) -> pa.Array:
    """`Row.is_whole` of each of the rows, of those whose bodies are there."""
    has_body = pc.not_equal(pc.coalesce(rows["body_ref"], rows["request_id"]), DROPPED)
    return pc.and_(
        has_body, pc.and_(pc.equal(rows["outcome"], Outcome.OK.value), pc.greater(rows["bytes"], 0))
    )


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as problem:
        raise ArchiveDamaged(f"{path} cannot be read: {problem}") from problem


class SealedFile:
    """One file, opened to read rows by their request_id."""

    def __init__(self, path: Path) -> None:
        """ArchiveDamaged, as from the methods, when the file is missing or not whole."""
        self._path = path
        with _readable(path):
            self._file = pq.ParquetFile(path, page_checksum_verification=True)
        metadata, column = self._file.metadata, self._file.schema_arrow.get_field_index("request_id")
        self.firsts = [
            metadata.row_group(group).column(column).statistics.min
            for group in range(metadata.num_row_groups)
        ]

    @property
    def groups(self) -> int:
        return len(self.firsts)

    def group_of(self, request_id: int) -> int:
        """The group in which the row stands if it is in this file at all; negative when it cannot be."""
        return bisect.bisect_right(self.firsts, request_id) - 1

    def heads(self, group: int) -> pa.RecordBatch:
        """The group's rows without bodies, in the order of their ids."""
        return self.read(group, HEAD_SCHEMA.names).combine_chunks().to_batches()[0]

    def bodies(self, group: int) -> Any:
        """The group's bodies as an Arrow array, by position."""
        return self.read(group, ("body",)).column(0).combine_chunks()

    def read(self, group: int, names: Iterable[str]) -> pa.Table:
        with _readable(self._path):
            return self._file.read_row_group(group, columns=list(names))


def row_at(heads: pa.RecordBatch, position: int) -> Row:
    """One of the rows of a group; of many groups one alone may be wanted."""
    return Row(*(column[position].as_py() for column in heads.columns))


def position(heads: pa.RecordBatch, request_id: int) -> int | None:
    """Where in the group the row stands, None when it is not in it."""
    ids = heads["request_id"].to_numpy()
    found = int(np.searchsorted(ids, request_id))
    return found if found < len(ids) and ids[found] == request_id else None


_CHUNK = 1 << 20


def name_of(request_id: int, requested_at: dt.datetime) -> str:
    """Where the body of a request stands, below the archive's folder."""
    return f"bodies/date={requested_at.astimezone(dt.UTC):%Y-%m-%d}/{request_id}.json.zst"


def digests_of(spool: Path, opened: Envelope | None = None) -> Digests:
    """Reads through a memory map: the system may drop its pages at any time, so it does not count as memory
    used."""
    if spool.stat().st_size == 0:
        return Digests.of(b"")
    with spool.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as body:
        return Digests.of(body, opened)


def pack(spool: Path, temporary: Path, target: Path) -> None:
    """Compress `spool`, which stays its owner's, into `target`, durably, by way of `temporary`. ArchiveFull
    when there is no room."""
    with disk.room_for(target):
        try:
            with (
                spool.open("rb") as source,
                os.fdopen(disk.create(temporary), "wb") as file,
                pa.CompressedOutputStream(pa.PythonFile(file), "zstd") as sink,
            ):
                while chunk := source.read(_CHUNK):
                    sink.write(chunk)
            disk.move_into_place(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def unpacked(packed: Path) -> Iterator[Any]:
    """A body to be read as it was received. FileNotFoundError when it is not there, ArchiveDamaged."""
    with packed.open("rb") as file:
        try:
            with pa.CompressedInputStream(pa.PythonFile(file), "zstd") as source:
                yield source
        except OSError as problem:
            if problem.errno is None:  # not the system but the decompressor
                raise ArchiveDamaged(f"{packed} is damaged: {problem}") from problem
            raise


def unpack(packed: Path, target: Path, sha256: str) -> None:
    """Write the body as it was received to `target`. FileNotFoundError when it is not there, ArchiveDamaged
    when it is not what `sha256` says, ArchiveFull when there is no room."""
    digest = hashlib.sha256()
    with unpacked(packed) as source, disk.room_for(target), os.fdopen(disk.create(target), "wb") as sink:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            sink.write(chunk)
    if digest.hexdigest() != sha256:
        raise ArchiveDamaged(f"{packed} is damaged: it is not what was received")
