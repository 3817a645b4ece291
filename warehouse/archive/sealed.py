"""The archive's permanent files: Parquet files of rows with their bodies, and files of large
bodies.

Row groups are small (to read a body, its group is read), and rows are in the order of their ids, so
that the statistics of `request_id` find the group. Not here: which rows go into which file
(`archive`), finding the file (`ledger`)."""

import bisect
import contextlib
import datetime as dt
import hashlib
import itertools
import logging
import mmap
import operator
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from marketing_api.envelope import SUFFIX, Envelope
from marketing_api.exchange import Outcome
from warehouse import disk
from warehouse.archive.file_store import BODIES, Files
from warehouse.archive.row import DROPPED, Digests, Row
from warehouse.errors import ArchiveDamaged

log = logging.getLogger(__name__)
T = TypeVar("T")

_ARROW_TYPES = {int: pa.int64(), str: pa.string(), dt.datetime: pa.timestamp("us", "UTC")}


def _list_fields() -> Iterator[pa.Field]:
    for name, hint in get_type_hints(Row, include_extras=True).items():
        python_type, meta = get_args(hint)
        plain = (
            python_type
            if get_origin(python_type) is None and isinstance(python_type, type)
            else get_args(python_type)[0]
        )
        yield pa.field(name, _ARROW_TYPES[plain], metadata={"comment": meta.description})


#: The columns without the body, each with its comment, as in `sync.requests`.
HEAD_SCHEMA = pa.schema(_list_fields())
_BODY_COMMENT = (
    "The body as received, UTF-8 JSON unless broken; NULL when body_ref or body_file is set, or "
    "none came."
)
SCHEMA = HEAD_SCHEMA.append(pa.field("body", pa.binary(), metadata={"comment": _BODY_COMMENT}))

#: Rows of a group, and bytes of their bodies.
_GROUP = (500, 8 << 20)
#: Columns with few values. For the others (ids, times, hashes, bodies) a dictionary would be
#: useless.
_REPETITIVE = ["account", "operation", "params", "http_status", "outcome", "error"]


def write_sealed(
    tables: Iterable[pa.Table], files: Files, name: str, workspace: disk.Workspace
) -> None:
    """Write the rows of the tables, in the order of their ids, into the file `name` below
    `requests`. Only one group of rows is in memory. Raises ArchiveFull."""
    with (
        _make_file(files, f"requests/{name}", workspace) as file,
        pq.ParquetWriter(
            file,
            SCHEMA,
            compression="zstd",
            use_dictionary=_REPETITIVE,
            write_statistics=["request_id", "requested_at", "operation"],
            write_page_checksum=True,
        ) as writer,
    ):
        for group in split_batches(
            tables, lambda table: (len(table), table["body"].nbytes), _GROUP
        ):
            writer.write_table(pa.concat_tables(group), row_group_size=_GROUP[0])


@contextlib.contextmanager
def _make_file(files: Files, name: str, workspace: disk.Workspace) -> Iterator[BinaryIO]:
    """A new file that is moved to its place when it is complete."""
    temporary = workspace.place_file(name.rpartition("/")[2])
    try:
        with disk.room_for(temporary), os.fdopen(disk.create_file(temporary), "wb") as file:
            yield file
        files.put_file(temporary, name)
    finally:
        temporary.unlink(missing_ok=True)


def split_batches(
    items: Iterable[T], sizes: Callable[[T], tuple[int, ...]], limits: tuple[int, ...]
) -> Iterator[list[T]]:
    """Runs of items whose sizes add up to the limits at most; a single item may exceed them."""
    batch = list[T]()
    total = (0,) * len(limits)
    for item in items:
        own = sizes(item)
        total = tuple(map(operator.add, total, own))
        if any(map(operator.gt, total, limits)):
            if batch:
                yield batch
            batch = []
            total = own
        batch.append(item)
    if batch:
        yield batch


def tables_of(rows: Iterable[tuple[Row, bytes]]) -> Iterator[pa.Table]:
    """The rows, each with its own body; every table is small enough for memory."""
    for group in split_batches(rows, lambda pair: (1, len(pair[1])), _GROUP):
        heads, bodies = zip(*group, strict=True)
        columns = [
            pa.array([getattr(row, column.name) for row in heads], column.type)
            for column in HEAD_SCHEMA
        ]
        columns.append(pa.array([body or None for body in bodies], pa.binary()))
        yield pa.Table.from_arrays(columns, schema=SCHEMA)


def merge_files(opened: Sequence["SealedFile"]) -> Iterator[pa.Table]:
    """All rows of the files in the order of their ids, each once, in small tables. Only overlapping
    groups are in memory together. Raises ArchiveDamaged."""
    groups = sorted(
        (first, number, group)
        for number, file in enumerate(opened)
        for group, first in enumerate(file.firsts)
    )
    pending = SCHEMA.empty_table()
    for (_, number, group), following in itertools.zip_longest(groups, groups[1:]):
        pending = pa.concat_tables(
            [pending, opened[number].read_group(group, SCHEMA.names).cast(SCHEMA)]
        ).sort_by("request_id")
        ids = pending["request_id"].to_numpy()
        end = int(np.searchsorted(ids, following[0])) if following else len(ids)
        if end:
            yield pending.slice(0, end).filter(pa.array(np.diff(ids[:end], prepend=0) != 0))
        pending = pending.slice(end)


def read_columns(files: Files, name: str, columns: Collection[str]) -> pa.Table:
    """All rows of a file with these columns, in the schema's order. Raises ArchiveDamaged."""
    file = SealedFile(files, name)
    return file.read_group(None, [column for column in HEAD_SCHEMA.names if column in columns])


def columns_or_none(
    files: Files, name: str, columns: Collection[str] = tuple(HEAD_SCHEMA.names)
) -> pa.Table | None:
    """The same, by default all columns except the body. None for a missing or damaged file, which
    is logged: the others can be read."""
    try:
        return read_columns(files, name, columns)
    except ArchiveDamaged as error:
        log.warning("a file of the archive is left out: %s", error)
        return None


def unnamed_bodies(files: Files, sealed: Iterable[str]) -> list[str]:
    """Files of large bodies that no row in these sealed files names. Raises ArchiveDamaged."""
    bodies = files.list_names(BODIES)
    named = set[str]()
    for name in sealed if bodies else ():
        named.update(pc.unique(read_columns(files, name, ("body_file",))["body_file"]).to_pylist())
    return [name for name in bodies if name not in named]


def are_whole(rows: pa.Table) -> pa.Array:
    """`Row.is_whole` for each of the rows, if its body exists."""
    has_body = pc.not_equal(pc.coalesce(rows["body_ref"], rows["request_id"]), DROPPED)
    return pc.and_(
        has_body, pc.and_(pc.equal(rows["outcome"], Outcome.OK.value), pc.greater(rows["bytes"], 0))
    )


class SealedFile:
    """One file, opened to read rows by their request_id."""

    def __init__(self, files: Files, name: str) -> None:
        """By its name below `requests`. This and the methods raise ArchiveDamaged if the file is
        missing or incomplete."""
        name = f"requests/{name}"
        self._address = files.describe_place(name)
        with self._report_damage():
            self._file = pq.ParquetFile(files.open_file(name), page_checksum_verification=True)
        metadata = self._file.metadata
        column = self._file.schema_arrow.get_field_index("request_id")
        self.firsts = [
            metadata.row_group(group).column(column).statistics.min
            for group in range(metadata.num_row_groups)
        ]

    @property
    def groups(self) -> int:
        return len(self.firsts)

    def group_of(self, request_id: int) -> int:
        """The group that has the row if it is in this file; negative if it cannot be."""
        return bisect.bisect_right(self.firsts, request_id) - 1

    def read_heads(self, group: int) -> pa.RecordBatch:
        """The group's rows without bodies, in the order of their ids."""
        return self.read_group(group, HEAD_SCHEMA.names).combine_chunks().to_batches()[0]

    def read_bodies(self, group: int) -> Any:
        """The group's bodies as an Arrow array, by position."""
        return self.read_group(group, ["body"]).column(0).combine_chunks()

    def read_group(self, group: int | None, columns: Sequence[str]) -> pa.Table:
        """The rows of one group, or of all."""
        groups = range(self.groups) if group is None else [group]
        with self._report_damage():
            return self._file.read_row_groups(groups, columns)

    @contextlib.contextmanager
    def _report_damage(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise ArchiveDamaged(f"{self._address} cannot be read: {error}") from error


def row_at(heads: pa.RecordBatch, position: int) -> Row:
    """One row of a group."""
    return Row(*(column[position].as_py() for column in heads.columns))


def find_position(heads: pa.RecordBatch, request_id: int) -> int | None:
    """The row's position in the group; None when it isn't there."""
    ids = heads["request_id"].to_numpy()
    found = int(np.searchsorted(ids, request_id))
    return found if found < len(ids) and ids[found] == request_id else None


_CHUNK = 1 << 20


def name_of(request_id: int, requested_at: dt.datetime) -> str:
    """The file of a request's body, relative to the archive's folder."""
    return f"bodies/date={requested_at.astimezone(dt.UTC):%Y-%m-%d}/{request_id}{SUFFIX}.zst"


def request_of(body_file: str) -> int:
    return int(body_file.rpartition("/")[2].partition(".")[0])


def digests_of(spool: Path, opened: Envelope | None = None) -> Digests:
    """Reads through a memory map: the system may drop its pages at any time, so they don't count as
    used memory."""
    if spool.stat().st_size == 0:
        return Digests.of_body(b"")
    with spool.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as body:
        return Digests.of_body(body, opened)


def pack_body(spool: Path, files: Files, name: str, workspace: disk.Workspace) -> None:
    """Compress `spool`, which stays its owner's, into the file `name`. Raises ArchiveFull."""
    with (
        _make_file(files, name, workspace) as file,
        spool.open("rb") as source,
        pa.CompressedOutputStream(pa.PythonFile(file), "zstd") as sink,
    ):
        while chunk := source.read(_CHUNK):
            sink.write(chunk)


def unpack_body(files: Files, name: str, target: Path, sha256: str) -> Path:
    """Write the body as it was received to `target`. Raises FileNotFoundError if it does not exist,
    ArchiveDamaged if it does not match `sha256`, ArchiveFull if the disk is full."""
    digest = hashlib.sha256()
    with (
        files.open_file(name) as packed,
        disk.room_for(target),
        os.fdopen(disk.create_file(target), "wb") as sink,
    ):
        try:
            with pa.CompressedInputStream(packed, "zstd") as source:
                while chunk := source.read(_CHUNK):
                    digest.update(chunk)
                    sink.write(chunk)
        except OSError as error:
            if error.errno is None:  # the decompressor raised it, not the system
                raise ArchiveDamaged(f"{files.describe_place(name)} is damaged: {error}") from error
            raise
    if digest.hexdigest() != sha256:
        raise ArchiveDamaged(
            f"{files.describe_place(name)} is damaged: its content differs from what was received"
        )
    return target
