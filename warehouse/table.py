"""What a `source` table is: a record type, a key and a way to load; its columns follow from the record's annotations.

Belongs here: the shape of tables, columns and load kinds. Not here: which tables there are (`tables`), how rows get into
them (`loads/`), how they are created (`schema`).
"""

from __future__ import annotations

import datetime as dt
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, Union, get_args, get_origin

import pyarrow as pa

from marketing_api.records.fields import Record, is_personal


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its DuckDB type, the Arrow type it is staged as, its COMMENT, whether it holds personal data, and whether
    only the loading needs it, so that it is not published.
    """

    name: str
    sql_type: str
    comment: str
    is_personal: bool = False
    is_internal: bool = False

    @property
    def arrow_type(self) -> pa.DataType:
        return _ARROW_TYPES[self.sql_type]


#: DuckDB's types and what rows are handed over as; JSON travels as text.
_ARROW_TYPES: dict[str, pa.DataType] = {
    "BIGINT": pa.int64(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "DATE": pa.date32(),
    "DECIMAL(18,4)": pa.decimal128(18, 4),
    "DOUBLE": pa.float64(),
    "VARCHAR[]": pa.list_(pa.string()),
    "BIGINT[]": pa.list_(pa.int64()),
    "JSON": pa.string(),
}

_SQL_TYPES: dict[type, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    str: "VARCHAR",
    dt.datetime: "TIMESTAMPTZ",
    dt.date: "DATE",
    Decimal: "DECIMAL(18,4)",
    float: "DOUBLE",
}


def sql_type(annotation: Any) -> str:
    """The DuckDB type of a record's field; TypeError for annotations that have none."""
    if get_origin(annotation) in (Union, types.UnionType):
        words = {sql_type(part) for part in get_args(annotation) if part is not type(None)}
        if len(words) == 1:
            return words.pop()
    if get_origin(annotation) is Literal:
        return "VARCHAR"
    if get_origin(annotation) is list and get_args(annotation) == (str,):
        return "VARCHAR[]"
    if get_origin(annotation) in (dict, list):
        return "JSON"
    for base, word in _SQL_TYPES.items():  # in this order: a bool is an int, a datetime is a date
        if isinstance(annotation, type) and issubclass(annotation, base):
            return word
    raise TypeError(f"no column type for {annotation!r}")


@dataclass(frozen=True)
class Snapshot:
    """A complete listing of a scope: missing rows are marked as deleted, once the scope was read completely.

    `scope` maps the columns that name the scope to the wire parameters it is asked with; empty: the account is the scope.
    `is_whole`: each answer is the whole of its scope (otherwise the load's `is_complete` says whether all pages came).
    `listing`: operations that prove which rows exist; empty: all. `detail`: the operation asked per new or changed row.
    `is_guarded`: every listing that shrinks too much is refused; of parts of one entry (its fields, its clickers) a few may always go.
    `within`: the table whose deleted rows take the rows here with them (they share the columns of its key).
    """

    scope: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = False
    listing: tuple[str, ...] = ()
    detail: str = ""
    is_guarded: bool = True
    within: str = ""


@dataclass(frozen=True)
class Window:
    """A range of days, `from_on` to `to_on` of the load's scope, by `column` (its day in the account's zone).

    Rows of the range that a complete answer no longer has are marked as deleted. Without a column the row itself is about the range: it
    is replaced by key and nothing is deleted.
    """

    column: str = ""


@dataclass(frozen=True)
class Accumulate:
    """Rows are added and updated, none is ever removed: the service shows only part of them.

    The last column of the key is `identity-occurrence` (`records.fields.keyed`).
    """


@dataclass(frozen=True)
class Daily:
    """One row per key, which ends in `observed_on`: the account's local date of asking."""


LoadKind = Snapshot | Window | Accumulate | Daily

_FIRST_SEEN = Column("_first_seen_at", "TIMESTAMPTZ", "When an answer first held this row.")
_CHANGED = Column("_changed_at", "TIMESTAMPTZ", "When an answer last added, changed, removed or restored this row.")
_DELETED = Column("_deleted_at", "TIMESTAMPTZ", "When a complete listing no longer held this row; NULL while it exists.")
_LISTING_HASH = Column("_listing_hash", "VARCHAR", "Hash of the listing's entry as of the last detail answer.", is_internal=True)
ACCOUNT = Column("account", "VARCHAR", "Name of the account in the configuration.")
EXTRA = Column("extra", "JSON", "Fields the service sent that have no column of their own.", is_personal=True)  # nobody knows what comes


@dataclass(frozen=True)
class Table:
    """One `source` table. `key` are the columns that identify a row within its account (empty: one row per account)."""

    name: str
    record: type[Record]
    key: tuple[str, ...]
    load: LoadKind
    area: str
    doc: str

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def qualified(self) -> str:
        return f"source.{self.name}"

    @property
    def is_composed(self) -> bool:
        """Whether several operations contribute to one row."""
        return isinstance(self.load, Snapshot) and bool(self.load.listing)

    @property
    def is_partial(self) -> bool:
        """Whether a column that an answer does not know stays as it is, rather than becoming empty."""
        return self.is_composed or isinstance(self.load, Accumulate)

    @cached_property
    def record_columns(self) -> tuple[Column, ...]:
        """The columns that a record fills, in the record's order."""
        fields = self.record.model_fields.items()
        return tuple(Column(name, sql_type(info.annotation), info.description or "", is_personal(info)) for name, info in fields)

    @property
    def marks_deleted(self) -> bool:
        """Whether answers prove rows to be gone, which are then marked."""
        return isinstance(self.load, Snapshot) or (isinstance(self.load, Window) and bool(self.load.column))

    @cached_property
    def system_columns(self) -> tuple[Column, ...]:
        """The columns that loading fills."""
        has_details = isinstance(self.load, Snapshot) and self.load.detail
        return (_FIRST_SEEN, _CHANGED, *((_DELETED,) if self.marks_deleted else ()), *((_LISTING_HASH,) if has_details else ()))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Every column in the table's order."""
        return (ACCOUNT, *self.record_columns, EXTRA, *self.system_columns)

    @cached_property
    def values(self) -> tuple[Column, ...]:
        """The record's columns that are not part of the key."""
        return tuple(column for column in self.record_columns if column.name not in self.key)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)
