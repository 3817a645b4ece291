"""Reads rows by request id, from the ledger and from sealed files, and follows references.

Memory stays flat: files are read one row group at a time, a few groups are cached, large bodies are
copied from file to file."""

import bisect
import contextlib
import datetime as dt
import functools
import itertools
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from marketing_api.exchange import Response, new_request_id
from warehouse import disk
from warehouse.archive import sealed
from warehouse.archive.file_store import Files
from warehouse.archive.ledger import AccountCall, Extent, Ledger
from warehouse.archive.row import DROPPED, Row, response_of
from warehouse.errors import ArchiveDamaged, ArchiveError, NotArchived

log = logging.getLogger(__name__)
#: The first and the last moment, including both.
Between = tuple[dt.datetime, dt.datetime]

#: Most rows and bytes of a slab. Responses are read slab by slab, each in the order on disk.
_SLAB_ROWS = 1_000
_SLAB_BYTES = 32 << 20
#: The cache of what was read last: files, and the rows and bodies of their groups (of 8 MB or a
#: little more).
_KEPT_FILES = 16
_KEPT_HEADS = 64
_KEPT_BODIES = 8
_CALL_COLUMNS = (
    "question_key",
    "request_id",
    "requested_at",
    "account",
    "outcome",
    "bytes",
    "body_ref",
)


@dataclass(frozen=True, slots=True)
class _Found:
    """A row, its place on disk (for reading in that order), and how to get its body."""

    row: Row
    place: tuple[str, int, int]
    body: Callable[[], bytes]

    @property
    def own_bytes(self) -> int:
        """The memory that the body takes."""
        return 0 if self.row.body_file else self.row.bytes


class Reader:
    """Reads the archive with these files. Safe for several threads."""

    def __init__(self, files: Files, ledger: Ledger, workspace: disk.Workspace) -> None:
        self._place = files
        self._ledger = ledger
        self._workspace = workspace
        self._lock = threading.RLock()
        self._files: list[Extent] = []
        self._open = functools.lru_cache(_KEPT_FILES)(functools.partial(sealed.SealedFile, files))
        self._heads = functools.lru_cache(_KEPT_HEADS)(
            lambda name, group: self._open(name).read_heads(group)
        )
        self._bodies = functools.lru_cache(_KEPT_BODIES)(sealed.SealedFile.read_bodies)
        self._unpacked: dict[int, Path] = {}
        self._numbers = itertools.count()

    def read_responses(self, request_ids: Sequence[int]) -> Iterator[Response]:
        """The responses in the order of `request_ids`, including unsealed ones, with flat memory.

        A body stored by reference is that of the earlier, equal response. A large body is a Path to
        a file that is deleted when the next response is taken. Raises NotArchived for an unknown
        id, ArchiveDamaged if a body is missing."""
        for start in range(0, len(request_ids), _SLAB_ROWS):
            pairs = self._find_rows(request_ids[start : start + _SLAB_ROWS])
            for slab in sealed.split_batches(
                pairs, lambda pair: (pair[1].own_bytes,), (_SLAB_BYTES,)
            ):
                own = [source for _, source in slab if source.row.body_file is None]
                with self._lock:
                    small = {
                        source.row.request_id: source.body()
                        for source in sorted(own, key=lambda found: found.place)
                    }
                for found, source in slab:
                    if source.row.body_file is None:
                        yield response_of(found.row, small[source.row.request_id])
                    else:
                        path = self._unpack_body(source)
                        try:
                            yield response_of(found.row, path)
                        finally:
                            path.unlink(missing_ok=True)

    def read_response(self, request_id: int) -> Response:
        """One response; the file of a large body stays until the archive is closed."""
        ((found, source),) = self._find_rows([request_id])
        with self._lock:
            if source.row.body_file is None:
                return response_of(found.row, source.body())
            body_id = source.row.request_id
            if body_id not in self._unpacked:
                self._unpacked[body_id] = self._unpack_body(source)
            return response_of(found.row, self._unpacked[body_id])

    def last_id(self) -> int:
        """The largest request id; 0 in an empty archive."""
        with self._lock:
            self._files = self._ledger.list_files()
            return max([0, *self._ledger.find_recorded(), *(file.last_id for file in self._files)])

    def find_newest(self, account: str, since: int, between: Between) -> dict[str, int]:
        """The latest whole response to each call from request `since` on that was requested
        `between` two moments: its request id by call key."""
        first, last = between
        found = [
            (row.question_key, row.request_id)
            for row, *_ in self._ledger.find_recorded().values()
            if row.account == account and row.is_whole and first <= row.requested_at <= last
        ]
        for file in self._ledger.list_files():
            if file.last_id < since or file.last_at < first:
                continue
            table = sealed.columns_or_none(self._place, file.name, _CALL_COLUMNS)
            if table is None:
                continue
            at = table["requested_at"].type
            fits = pc.field("account") == account
            fits &= pc.field("requested_at") >= pa.scalar(first, at)
            fits &= pc.field("requested_at") <= pa.scalar(last, at)
            whole = table.filter(sealed.are_whole(table)).filter(fits)
            found += zip(
                whole["question_key"].to_pylist(), whole["request_id"].to_pylist(), strict=True
            )
        return dict(sorted((pair for pair in found if pair[1] >= since), key=lambda pair: pair[1]))

    def _find_rows(self, request_ids: Sequence[int]) -> list[tuple[_Found, _Found]]:
        """Each row with the row that has its body: itself, or the one that it refers to. Raises
        NotArchived, ArchiveDamaged."""
        with self._lock:
            rows = self._locate_rows(request_ids)
            refs = [found.row.body_ref for found in rows.values() if found.row.body_ref is not None]
            if DROPPED in refs:
                raise ArchiveDamaged("a body is kept no longer (MARKETING_KEEP)")
            try:
                sources = self._locate_rows(refs)
            except NotArchived as error:
                raise ArchiveDamaged(
                    f"a body that the archive refers to is missing: {error}"
                ) from error
            return [
                (rows[id_], sources.get(rows[id_].row.body_ref or id_, rows[id_]))
                for id_ in request_ids
            ]

    def forget_files(self) -> None:
        """Clear the cache of files, which may have been rewritten."""
        with self._lock:
            for kept in (self._open, self._heads, self._bodies):
                kept.cache_clear()
            self._files = self._ledger.list_files()

    def _locate_rows(self, request_ids: Sequence[int]) -> dict[int, _Found]:
        found = {}
        with contextlib.suppress(ArchiveDamaged):
            found = self._look_up(request_ids)
        missing = [id_ for id_ in request_ids if id_ not in found]
        if missing:
            self.forget_files()  # they may have been sealed, or merged into another file, meanwhile
            found |= self._look_up(missing)
        missing = [id_ for id_ in missing if id_ not in found]
        if missing:
            raise NotArchived(
                f"request {missing[0]} is not in the archive {self._place.describe_place('')}"
            )
        return found

    def _look_up(self, request_ids: Sequence[int]) -> dict[int, _Found]:
        """The ledger is searched first: a row is in a file before it leaves the ledger. Files of
        processes that ran at the same time overlap."""
        found = {
            id_: _Found(recorded.row, ("", 0, id_), recorded.unpack_body)
            for id_, recorded in self._ledger.find_recorded(request_ids).items()
        }
        left = sorted(set(request_ids) - found.keys())
        for file in reversed(self._files):
            near = left[
                bisect.bisect_left(left, file.first_id) : bisect.bisect_right(left, file.last_id)
            ]
            for id_ in near:
                if id_ not in found and (place := self._look_into(file.name, id_)):
                    found[id_] = place
        return found

    def _look_into(self, name: str, request_id: int) -> _Found | None:
        # stays open for the body: the file may be merged into another and removed before that is
        # read
        file = self._open(name)
        group = file.group_of(request_id)
        if group < 0:
            return None
        heads = self._heads(name, group)
        position = sealed.find_position(heads, request_id)
        if position is None:
            return None
        return _Found(
            sealed.row_at(heads, position),
            (name, group, position),
            lambda: self._bodies(file, group)[position].as_py() or b"",
        )

    def _unpack_body(self, source: _Found) -> Path:
        """The large body as it was received, in its own file."""
        for _ in range(2):
            assert source.row.body_file is not None
            path = self._workspace.place_file(f"{source.row.request_id}-{next(self._numbers)}")
            try:
                return sealed.unpack_body(
                    self._place, source.row.body_file, path, source.row.body_sha256
                )
            except FileNotFoundError:
                # it may have been sealed meanwhile, and now refer to an earlier body
                with self._lock:
                    self._files = self._ledger.list_files()
                ((_, source),) = self._find_rows([source.row.request_id])
                if source.row.body_file is None:
                    break
        raise ArchiveDamaged(
            f"{self._place.describe_place(str(source.row.body_file))}, the body of request "
            f"{source.row.request_id}, is missing"
        )


class Reusable:
    """The latest whole responses of one account, as request ids by call key: the `newest` so far,
    and those that are `recorded` later."""

    def __init__(
        self,
        reader: Reader,
        account: str,
        newest: Mapping[str, int],
        recorded: Mapping[AccountCall, int],
    ) -> None:
        self._reader = reader
        self._account = account
        self._newest = newest
        self._recorded = recorded
        self._begun = new_request_id()

    def request_id(self, question_key: str, since: int = 0) -> int | None:
        """The request id of that response; None if there is none from `since` on."""
        recorded = self._recorded.get(AccountCall(self._account, question_key), 0)
        newest = recorded if recorded > self._begun else self._newest.get(question_key, 0)
        return newest if newest and newest >= since else None

    def get(self, question_key: str, since: int = 0) -> Response | None:
        """The response to request `since` or a later one; None if the call must be requested.

        Never the response to a write: a write must take effect again."""
        newest = self.request_id(question_key, since)
        if newest is None:
            return None
        try:
            response = self._reader.read_response(newest)
        except ArchiveError as error:
            log.warning("an archived response cannot be used again: %s", error)
            return None
        return response if response.call.operation.is_read else None
