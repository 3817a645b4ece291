"""Hashes of listing entries: which rows' details have to be asked, and what is stored once they were.

A row's detail costs a request of its own, so it is asked only when its entry in the listing is new or says something else
than when the detail was asked last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from marketing_api.exchange import Response
from marketing_api.records.fields import Record
from warehouse.arrow import ENTRY_HASH, entry_hash
from warehouse.loads.target import Target
from warehouse.sql import literal, quoted
from warehouse.staging import ReadRows
from warehouse.table import Snapshot, Table

Key = tuple[Any, ...]


def needs_detail(
    table: Table, responses: Iterable[Response], known: Mapping[Key, str], zone: ZoneInfo, parse_rows: ReadRows
) -> list[Record]:
    """The entries of a listing that are new or differ from when their detail was asked: the last of each key, in order.

    `known` has the stored hashes by key (`lookups.listing_hashes`). Answers of operations that do not list are passed over.
    """
    assert isinstance(table.load, Snapshot)
    listed: dict[Key, Record] = {}
    for response in responses:
        if response.call.operation.name not in table.load.listing:
            continue
        for rows in parse_rows(response, zone, response.requested_at.astimezone(zone).date()):
            if rows.record is table.record:
                listed |= {tuple(getattr(record, name) for name in table.key): record for record in rows.records}
    return [record for key, record in listed.items() if known.get(key) != entry_hash(record)]


def row_hash(table: Table, alias: str) -> str:
    """The hash of a stored row that is itself the listing's entry, as SQL; it depends on no setting of the session."""
    parts = []
    for column in table.record_columns:
        name = f"{alias}.{quoted(column.name)}"
        parts.append(f"{literal(column.name)}: {f'epoch_us({name})' if column.sql_type == 'TIMESTAMPTZ' else name}")
    return f"md5(to_json({{{', '.join(parts)}}})::varchar)"


def take_entry_hashes(target: Target, listing: Table) -> None:
    """Stage with each detail the hash of its entry in the `listing` table."""
    target.make(
        "hashed",
        f"""
        select s.* replace ({row_hash(listing, "p")} as {ENTRY_HASH})
        from {target.staged} s left join {listing.qualified} p on p.account = {target.account} and {target.on("p", "s")}
        """,
    )
    target.staged = target.temp("hashed")
