"""Which tables of the published file are what they would be if they were written again, so that a night on
which little changed writes little.

What each was made of is noted beside the file, for that very file. Not here: the writing (`publish`)."""

import datetime as dt
import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import duckdb
import msgspec

from warehouse.disk import write_file
from warehouse.loads.staging import code_digest
from warehouse.masking import Masking
from warehouse.schema import version_of

#: A file whose tables were replaced has room where the old ones were, and in it what they held: it is written
#: whole when so much of it is free, and after so long.
_MOST_FREE, _LONGEST = 0.3, dt.timedelta(days=7)


class Noted(msgspec.Struct):
    """Of the file that was published at that moment: how its tables were made, when the whole was, and each
    one's version."""

    published_at: dt.datetime
    made_by: str
    whole_at: dt.datetime
    versions: dict[str, str]


def made_by(masking: Masking) -> str:
    """Another one wherever the same rows may become others: by other code, or another masking."""
    return _hash([code_digest(), duckdb.__version__, masking.fingerprint])


def version(connection: duckdb.DuckDBPyConnection, relation: str, shown: Iterable[str]) -> str:
    """Of what a published table is made of: its rows, and what is `shown` and said of them."""
    return _hash([version_of(connection, relation), *shown])


def noted(path: Path, published_at: dt.datetime, masking: Masking) -> Noted | None:
    """What is known of the published file at `path`; None when that one, so masked, is not what was noted, or
    the next one is to be written whole."""
    with suppress(OSError, msgspec.DecodeError):
        found = msgspec.json.decode(_place(path).read_bytes(), type=Noted)
        is_it = found.published_at == published_at and found.made_by and found.made_by == made_by(masking)
        return found if is_it and abs(published_at - found.whole_at) < _LONGEST else None
    return None


def note(path: Path, noted: Noted | None) -> None:
    if noted:
        write_file(_place(path), msgspec.json.encode(noted))
    else:
        _place(path).unlink(missing_ok=True)


def is_full_of_holes(connection: duckdb.DuckDBPyConnection, database: str) -> bool:
    """Whether so much of the attached file is free that the next one should be written whole."""
    sql = "select free_blocks, total_blocks from pragma_database_size() where database_name = ?"
    ((free, total),) = connection.execute(sql, [database]).fetchall()
    return bool(free > _MOST_FREE * max(total, 1))


def _place(path: Path) -> Path:
    return path.with_name(".versions.json")


def _hash(parts: Iterable[str]) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
