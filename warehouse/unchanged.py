"""Tells which timelines say again what was loaded of their contact last: their rows need neither be read nor compared.

That is certain for timelines alone: nothing but its own timelines ever touches a contact's rows, and loading one twice is
loading it once. A coupon, in contrast, may move from address to address, and reading such a small answer costs less than this.
Not here: reading (`staging`), what is known about asking (`contact_coverage`, where the digests are kept).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources

import duckdb

from marketing_api.exchange import Response
from marketing_api.operations import contacts
from warehouse.archive.row import payload_of
from warehouse.sql import rows
from warehouse.table import Table

#: Everything that decides which rows come of a payload.
_CODE = ("marketing_api", "marketing_api.operations", "marketing_api.records", "warehouse", "warehouse.loads")


@dataclass(frozen=True, slots=True)
class Said:
    """What the timeline said that was loaded of a contact last: its digest, and how many events it had of how many."""

    digest: str
    extent: tuple[int, int]


def contact_of(operation: str, params: Mapping[str, str]) -> int | None:
    """The contact whose timeline is asked for; None for other questions."""
    wanted = params.get("id", "")
    return int(wanted) if operation == contacts.TIMELINE.name and wanted.isdecimal() else None


def digest_of(response: Response, key: bytes) -> str | None:
    """Equal for answers of which the same rows come (32 hex digits); None for one that has to be read whatever it says."""
    payload = payload_of(response.body) if isinstance(response.body, bytes) else None
    return None if payload is None else hashlib.blake2b(payload, key=key, digest_size=16).hexdigest()


def last_said(connection: duckdb.DuckDBPyConnection, account: str, people: Iterable[int]) -> dict[int, Said]:
    """What the timelines of these contacts said that were loaded last, where that is certain."""
    found = rows(
        connection,
        "select contact_id, timeline_digest, timeline_served, timeline_total from sync.contact_coverage "
        "where account = $account and timeline_digest is not null and contact_id in (select unnest($people::bigint[]))",
        {"account": account, "people": sorted(people)},
    )
    return {contact: Said(digest, (served, total)) for contact, digest, served, total in found}


def holds(connection: duckdb.DuckDBPyConnection, account: str, assumed: Mapping[int, str | None]) -> bool:
    """Whether these digests are what was loaded last: somebody else may have loaded since they were compared."""
    return not assumed or {contact: said.digest for contact, said in last_said(connection, account, assumed).items()} == assumed


@functools.cache
def reading_key(tables: tuple[Table, ...], zone: str) -> bytes:
    """Another one wherever the same payload may become other rows: in another time zone, other tables, or by other code."""
    shapes = [(table.name, table.key, [(column.name, column.sql_type) for column in table.columns]) for table in tables]
    return hashlib.blake2b(repr((zone, shapes, _code())).encode(), digest_size=32).digest()


@functools.cache
def _code() -> str:
    digest = hashlib.blake2b(digest_size=16)
    for package in _CODE:
        for file in sorted(resources.files(package).iterdir(), key=lambda file: file.name):
            if file.name.endswith(".py"):
                digest.update(file.read_bytes())
    return digest.hexdigest()
