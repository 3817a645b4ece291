"""What a column becomes in a copy that others read: whether it is included, whether it is personal
or a link, and what is shown of it.

The name of a column does not matter. `source` and `sync` tables declare their columns
(`Column.is_personal`, `is_link`, `is_internal`). For models it follows from their SQL
(`load_lineage`): a column made from a personal one is personal. So nothing has to be marked, and an
unknown column counts as personal."""

import hashlib
import json
import logging
import re
import secrets
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from marketing_api.redaction import Secret
from warehouse.disk import hold_lock, make_folder, write_file
from warehouse.errors import WarehouseError
from warehouse.policies import LEAST_KEY, PersonalData
from warehouse.schema import SCHEMAS, columns_of
from warehouse.sql import (
    MASKED,
    NORMAL_FORM,
    add_mask_addresses,
    add_normal_form,
    fetch_rows,
    quote_name,
    quote_relation,
)
from warehouse.tables import ALL_TABLES, SYNC_TABLES

log = logging.getLogger(__name__)

#: Written by `python -m tests.warehouse.test_lineage`.
LINEAGE = Path(__file__).with_name("lineage.json")


def personal_of(relation: str, columns: Collection[str]) -> Collection[str]:
    """Those of the columns that are personal."""
    schema, table = relation.split(".", 1)
    return [
        column for column in columns if column != "account" and is_personal(schema, table, column)
    ]


def is_personal(schema: str, table: str, column: str) -> bool:
    """Whether the column names, reaches or quotes a person."""
    return not _LINKS.issuperset(_sources_of(f"{schema}.{table}", column))


def is_link(schema: str, table: str, column: str) -> bool:
    """Whether the column is a link, or a text with links. Links may name a person, too."""
    return not _LINKS.isdisjoint(_sources_of(f"{schema}.{table}", column))


def _sources_of(relation: str, column: str) -> Collection[str]:
    """The personal columns and links (`table.column`) from which its values are made."""
    declared = _DECLARED.get(relation) or load_lineage()["columns"].get(relation, {})
    found: Collection[str] = declared.get(column, ("not known",))
    return found


@cache
def load_lineage() -> Mapping[str, Any]:
    """`columns`: table → column → the personal columns and links it is made from. `made_of`: table
    → column → all columns that it is made from."""
    found: Mapping[str, Any] = json.loads(LINEAGE.read_text(encoding="utf-8"))
    return found


#: The same for `source` and `sync`, where each column is its own source.
_DECLARED = {
    table.qualified: {
        column.name: (f"{table.name}.{column.name}",) * (column.is_personal or column.is_link)
        for column in table.columns
    }
    for table in ALL_TABLES
}
_LINKS = {
    f"{table.name}.{column.name}"
    for table in ALL_TABLES
    for column in table.columns
    if column.is_link
}


class PublishedColumn(NamedTuple):
    sql_type: str
    is_personal: bool
    is_link: bool = False


#: Columns with locations of archive files, and notes of loading.
INTERNAL_TABLES = {table.qualified for table in SYNC_TABLES if table.is_internal} | {"sync.meta"}


@cache
def internal_columns() -> Collection[tuple[str, str]]:
    """(relation, column) of columns that only loading needs."""
    return {
        (table.qualified, column.name)
        for table in ALL_TABLES
        for column in table.columns
        if column.is_internal
    }


def published_columns(
    connection: duckdb.DuckDBPyConnection,
) -> dict[str, dict[str, PublishedColumn]]:
    """Relation → published columns of a warehouse: all of `source`, `history`, `marts` and `sync`
    that are not internal."""
    found: dict[str, dict[str, PublishedColumn]] = {}
    for relation, columns in columns_of(connection).items():
        schema, table = relation.split(".", 1)
        if schema in SCHEMAS and relation not in INTERNAL_TABLES:
            found[relation] = {
                name: PublishedColumn(
                    sql_type, is_personal(schema, table, name), is_link(schema, table, name)
                )
                for name, sql_type in columns.items()
                if (relation, name) not in internal_columns()
            }
    return found


#: Hexadecimal digits of a hash that are kept: 128 bits, so that no two people share one.
_DIGITS = 32
#: Types that hold no text. All other types, such as JSON and structs, count as personal.
_PLAIN_TYPE = re.compile(
    r"(BOOLEAN|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL\(.*\)"
    r"|DATE|TIME.*|INTERVAL|UUID)(\[\d*\])*"
)
#: Type → SQL of its texts without addresses.
_MASKED = {
    "VARCHAR": MASKED,
    "VARCHAR[]": f"list_transform({{0}}, lambda item: {MASKED.format('item')})",
}


class Masking:
    """The SQL that turns a column into what may be shown. `key` is only needed for hashes."""

    def __init__(self, personal_data: PersonalData, key: Secret | None = None) -> None:
        if personal_data is PersonalData.HASH and not key:
            raise ValueError("hashing needs a key")
        self.personal_data = personal_data
        self._key = key

    def prepare_connection(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Define on the connection what the expressions need. The key is a variable, so that no
        statement contains it."""
        if self._key:
            raw = self._key.reveal().encode()
            block = (hashlib.sha256(raw).digest() if len(raw) > 64 else raw).ljust(64, b"\0")
            for pad, constant in (("inner", 0x36), ("outer", 0x5C)):  # RFC 2104
                padded = bytes(byte ^ constant for byte in block)
                fetch_rows(connection, f"set variable mask_{pad} = $1::blob", [padded])
        add_normal_form(connection)
        add_mask_addresses(connection)

    def select_rows(
        self, catalog: str, relation: str, columns: Mapping[str, PublishedColumn]
    ) -> str:
        """A query of the relation in the catalog with its columns masked."""
        columns_sql = ", ".join(self.mask_column(name, column) for name, column in columns.items())
        return f"select {columns_sql} from {catalog}.{quote_relation(relation)}"

    def mask_column(self, name: str, column: PublishedColumn) -> str:
        """The column as it is shown. With `hash` and `drop`, links and JSON are NULL, and other
        texts lose addresses."""
        text = quote_name(name)
        is_open = not (column.is_personal or column.is_link)
        if self.personal_data is PersonalData.KEEP or (
            is_open and _PLAIN_TYPE.fullmatch(column.sql_type)
        ):
            return text
        if is_open and column.sql_type in _MASKED:
            return f"{_MASKED[column.sql_type].format(text)} as {text}"
        if (
            self.personal_data is PersonalData.HASH
            and column.sql_type == "VARCHAR"
            and not column.is_link
        ):
            # one hash for all spellings of an address (RFC 2104); an empty text stays
            inner = f"sha256(getvariable('mask_inner') || encode({NORMAL_FORM.format(text)}))"
            outer = f"left(sha256(getvariable('mask_outer') || unhex({inner})), {_DIGITS})"
            return (
                f"case when {text} = '' then '' when {text} is not null then {outer} end as {text}"
            )
        return f"null::{column.sql_type} as {text}"


def personal_key(home: Path, configured: Secret | None = None) -> Secret:
    """The key from the settings, or the home's key, which is created if necessary. Raises
    WarehouseError if it is too short."""
    if configured:
        return _check_key(configured, "MARKETING_PERSONAL_KEY")
    path = make_folder(home) / "personal.key"
    with hold_lock(home):  # only one process creates it
        # left by a process that was killed meanwhile
        for left in home.glob(f".{path.name}-*"):
            left.unlink()
        if not path.exists():
            write_file(path, f"{secrets.token_hex(32)}\n".encode())
            log.warning("created the key %s: hashes made with another key don't match", path)
    return _check_key(Secret(path.read_text(encoding="utf-8", errors="replace").strip()), str(path))


def _check_key(key: Secret, where: str) -> Secret:
    text = key.reveal()
    if len(text) < LEAST_KEY or not text.isprintable() or "\ufffd" in text:
        raise WarehouseError(
            f"{where} has no key of at least {LEAST_KEY} printable characters: restore the old "
            "one, or write a new one"
        )
    return key
