"""Details cost a request of their own: hashes of the listing's entries say which rows are new or changed."""

from collections.abc import Iterable, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from marketing_api.exchange import Response
from marketing_api.parsing import parse_rows
from marketing_api.records.fields import Record
from warehouse.loads.arrow import entry_hash
from warehouse.loads.target import Target
from warehouse.sql import literal, query, quoted
from warehouse.tables import Table

Key = tuple[Any, ...]


def needs_detail(
    table: Table, responses: Iterable[Response], known: Mapping[Key, str], zone: ZoneInfo
) -> list[Record]:
    """The entries of a listing that are new or differ from when their detail was requested: the last of each
    key, in order.

    `known` has the stored hashes by key (`Warehouse.listing_hashes`). Responses of operations that do not
    list are passed over."""
    listed: dict[Key, Record] = {}
    for response in responses:
        if response.call.operation != table.load.listing:
            continue
        for rows in parse_rows(response, zone, response.requested_at.astimezone(zone).date()):
            if rows.record is table.record:
                listed |= {
                    tuple(getattr(record, name) for name in table.key): record for record in rows.records
                }
    return [record for key, record in listed.items() if known.get(key) != entry_hash(record)]


def row_hash(table: Table, alias: str) -> str:
    """The hash of a stored row that is itself the listing's entry, as SQL; it depends on no setting of the
    session."""
    parts = []
    for column in table.record_columns:
        value = f"{alias}.{quoted(column.name)}"
        if column.sql_type == "TIMESTAMPTZ":
            value = f"epoch_us({value})"
        parts.append(f"{literal(column.name)}: {value}")
    return f"md5(to_json({{{', '.join(parts)}}})::varchar)"


def take_entry_hashes(target: Target, listing: Table) -> None:
    """Stage with each detail the hash of its entry in the `listing` table."""
    terms = {"staged": target.staged, "listing": listing.qualified, "same_key": target.on("p", "s")}
    target.make("hashed", query("with_entry_hashes").format(**terms, row_hash=row_hash(listing, "p")))
    target.staged = target.temp("hashed")
