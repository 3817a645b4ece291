"""The `sync` tables as `sync_tables.toml` declares them, and `requests`, which follows from the archive's row.

Not here: who fills them (`bookkeeping`, `loads.coverage`, `loads.load`), the data itself (`tables`).
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from warehouse.archive.row import HEAD_SCHEMA
from warehouse.tables import TABLES, Column, Table


@dataclass(frozen=True, slots=True)
class SyncTable:
    """One `sync` table. `key` identifies a row (empty: rows repeat); an internal one is not published.

    `kept`: which of its rows a rebuild takes over, when it is among `KEPT`. `formerly`: the table of earlier versions that it replaces,
    and the columns that are taken over of it.
    """

    name: str
    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    is_internal: bool = False
    kept: str = "true"
    formerly: tuple[str, ...] = ()

    @property
    def qualified(self) -> str:
        return f"sync.{self.name}"


_ARCHIVED = {pa.int64(): "BIGINT", pa.string(): "VARCHAR", pa.timestamp("us", "UTC"): "TIMESTAMPTZ"}
#: Parameters name people, and the service's words about an error may.
_PERSONAL = {"params", "error"}
#: Where and how bodies are archived. Their hashes have no key: whoever knows an address could find out that it was requested.
_INTERNAL = {"question_key", "body_sha256", "content_sha256", "body_file", "body_ref"}

REQUESTS = SyncTable(
    "requests",
    "Every request that was sent, with what came back: the archive without its bodies.",
    tuple(
        Column(field.name, _ARCHIVED[field.type], field.metadata[b"comment"].decode(), field.name in _PERSONAL, field.name in _INTERNAL)
        for field in HEAD_SCHEMA
    ),
    key=("request_id",),
)


def _declared(name: str, columns: Mapping[str, list[str]], **others: Any) -> SyncTable:
    made = tuple(Column(column, row[0], row[1], "personal" in row, "internal" in row) for column, row in columns.items())
    fields: dict[str, Any] = {field: tuple(each) if isinstance(each, list) else each for field, each in others.items()}
    return SyncTable(name, columns=made, **fields)


_TOML = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_BY_NAME = {name: _declared(name, **table) for name, table in _TOML.items()}
#: What a published copy says of itself; the warehouse has no such table.
FACTS = _BY_NAME.pop("published")
#: Every `sync` table.
SYNC_TABLES = (REQUESTS, *_BY_NAME.values())
#: Every table that is declared: what the models make follows from these.
ALL_TABLES: tuple[Table | SyncTable, ...] = (*TABLES.values(), *SYNC_TABLES)

COVERAGE, READINGS, CONTACT_COVERAGE, REJECTED_RECORDS, WRITEBACKS, SCHEMA_CHANGES = (
    _BY_NAME[name] for name in ("coverage", "readings", "contact_coverage", "rejected_records", "writebacks", "schema_changes")
)
#: SQL of a row of `sync.schema_changes` in words.
IN_WORDS = """concat_ws(' ', table_name || ':', change, field,
    '(' || if(after is null, coalesce(sample, before), concat_ws(' → ', before, after)) || ')')"""
#: Those that a rebuild cannot make anew from the archive.
KEPT = (_BY_NAME["runs"], _BY_NAME["plans"], _BY_NAME["home_sizes"], _BY_NAME["erasures"], WRITEBACKS, SCHEMA_CHANGES)
