"""The log of loads: which responses were loaded into which tables, one JSON object per line, in the order it
was done.

Every line ends with the CRC-32 of what it says, so that a damaged one is known for what it is; lines of
earlier versions have none. Written only under the warehouse's lock, so by one process at a time; read by
anybody."""

import base64
import datetime as dt
import itertools
import mmap
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from warehouse.archive import disk

Event = dict[str, Any]

_CHECKED = re.compile(rb',"crc32":"([0-9a-f]{8})"\}\n$')
_CHECK_BYTES = len(b',"crc32":"00000000"}\n')


class _Unchecked(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a version that wrote no checksums."""

    account: str
    asset: str
    tables: list[str]
    request_ids: list[int] | str
    zone: str
    logged_at: dt.datetime
    due_at: dt.datetime | None = None
    scope: dict[str, Any] = {}
    is_complete: bool = True
    shrink_limit: float | None = None
    service_count: int | None = None


class LoadLog:
    """The log in the file at `path`, which need not exist. Damaged lines are passed over; `damaged` counts
    them."""

    def __init__(self, path: Path) -> None:
        self._path = disk.no_folder(path)

    def append(self, *events: Mapping[str, Any]) -> None:
        """Durably add events (JSON values only); what a writer that died left of a line is removed.
        ArchiveFull."""
        lines = b"".join(map(_line, events))
        is_new = not self._path.exists()
        with self._mapped() as content:
            end = content.rfind(b"\n") + 1
        with (
            disk.room_for(self._path),
            os.fdopen(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600), "r+b", buffering=0) as file,
        ):
            try:
                file.truncate(end)
                file.seek(end)
                disk.write_whole(file.fileno(), lines)
                os.fsync(file)
            except OSError:
                file.truncate(end)
                raise
        if is_new:
            disk.sync(self._path.parent)

    def read(self) -> Iterator[Event]:
        """All whole events, oldest first; a torn last line counts as not written."""
        return (event for line in self._lines() if (event := _event(line)) is not None)

    def read_backwards(self) -> Iterator[Event]:
        """All whole events, newest first: what was logged last is found without reading the years before
        it."""
        with self._mapped() as content:
            end = content.rfind(b"\n") + 1
            while end:
                start = content.rfind(b"\n", 0, end - 1) + 1
                if (event := _event(content[start:end])) is not None:
                    yield event
                end = start

    def damaged(self) -> int:
        """How many lines are damaged."""
        return sum(_event(line) is None for line in self._lines())

    def rewrite(
        self,
        following: Callable[[Event | None], Iterable[Event]],
        change: Callable[[Event], Event] = lambda event: event,
    ) -> Path | None:
        """Put a log in this one's place that has no damaged line, each event as `change` says, and behind it
        (None: in front of all) those that `following` says. Damaged lines are kept in a file beside it, which
        is returned. ArchiveFull: it stays as it is."""
        for leftover in self._path.parent.glob(f"{self._path.name}.new-*"):
            leftover.unlink()
        temporary, aside = (
            self._path.with_name(f"{self._path.name}.{kind}-{disk.new_name()}") for kind in ("new", "damaged")
        )
        with disk.room_for(self._path):
            try:
                with os.fdopen(disk.create(temporary), "wb") as file:
                    file.writelines(map(_line, following(None)))
                    for line in self._lines():
                        if (event := _event(line)) is not None:
                            file.write(line if (changed := change(event)) == event else _line(changed))
                            file.writelines(map(_line, following(event)))
                            continue
                        with aside.open("ab") as damaged:
                            damaged.write(line)
                disk.move_into_place(temporary, self._path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        return aside if aside.exists() else None

    @contextmanager
    def _mapped(self) -> Iterator[bytes | mmap.mmap]:
        """The file's content, of which no more is read than is looked at. Only while nobody shortens it:
        under the warehouse's lock."""
        if not self._path.exists() or not self._path.stat().st_size:
            yield b""
            return
        with self._path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content

    def _lines(self) -> Iterator[bytes]:
        """Those that were written to their end."""
        if self._path.exists():
            with self._path.open("rb") as file:
                yield from (line for line in file if line.endswith(b"\n"))


#: Up to so many ids are logged as they are, for people; the log of a night with 400,000 would have 8 MB of
#: digits.
_READABLE_IDS = 20


def pack_ids(ids: Sequence[int]) -> list[int] | str:
    """Ids for the log: a list, or their differences as deflated text in base 64 (about 5 bytes an id)."""
    if len(ids) <= _READABLE_IDS:
        return list(ids)
    differences = [ids[0], *(after - before for before, after in itertools.pairwise(ids))]
    return base64.b64encode(zlib.compress(" ".join(map(str, differences)).encode(), 9)).decode()


def unpack_ids(packed: Sequence[int] | str) -> tuple[int, ...]:
    if not isinstance(packed, str):
        return tuple(packed)
    return tuple(itertools.accumulate(map(int, zlib.decompress(base64.b64decode(packed)).split())))


def _line(event: Mapping[str, Any]) -> bytes:
    encoded = msgspec.json.encode(event)
    return encoded[:-1] + b',"crc32":"%08x"}\n' % zlib.crc32(encoded)


def _event(line: bytes) -> Event | None:
    """What the line says; None when it is damaged, or has no checksum and is not what is logged of a load."""
    if check := _CHECKED.search(line, max(0, len(line) - _CHECK_BYTES)):
        line = line[: check.start()] + b"}"
        if zlib.crc32(line) != int(check[1], 16):
            return None
    try:
        event = msgspec.json.decode(line, type=Event)
        if not check:
            unpack_ids(msgspec.convert(event, _Unchecked).request_ids)
        return event
    except (ValueError, RecursionError, zlib.error):
        return None
