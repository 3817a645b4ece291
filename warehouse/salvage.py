"""What a damaged warehouse had and the archive has not, as far as it can be read there or stands in a published copy.

Not here: everything else (`rebuild` makes it anew).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

import duckdb

from warehouse.errors import WarehouseError
from warehouse.sql import literal, quoted, rows, transaction
from warehouse.sync_tables import KEPT, WRITEBACKS
from warehouse.warehouse import Warehouse

log = logging.getLogger(__name__)

_NAMES = "select schema_name, table_name from duckdb_tables() where database_name = 'damaged' and not temporary"


def salvage(warehouse: Warehouse, sources: Iterable[Path]) -> tuple[str, ...]:
    """Copy each table from the first of these files in which it can be read; returns the names of those that are in none."""
    wanted = {("sync", table.name) for table in KEPT if table is not WRITEBACKS}  # the outbox has these
    found: set[tuple[str, str]] = set()
    for source in sources:
        names = _names(warehouse, source)
        wanted |= {(schema, name) for schema, name in names if schema == "history"}
        found |= {name for name in sorted(wanted & names - found) if _is_copied(warehouse, source, *name)}
    return tuple(sorted(".".join(name) for name in wanted - found))


def _names(warehouse: Warehouse, source: Path) -> set[tuple[str, str]]:
    try:
        with warehouse.writing() as connection:
            return set(_attached(connection, source, _NAMES))
    except (duckdb.Error, WarehouseError) as problem:
        log.warning("nothing can be read in %s: %s", source.name, str(problem).splitlines()[0])
        return set()


def _is_copied(warehouse: Warehouse, source: Path, schema: str, table: str) -> bool:
    """One opening a table: what is damaged of another one must not get in the way."""
    name = f"{quoted(schema)}.{quoted(table)}"
    make = (f"create table if not exists {name} as from damaged.{name} limit 0", f"insert into {name} by name from damaged.{name}")
    try:
        with warehouse.writing() as connection:
            _attached(connection, source, *make)
        return True
    except (duckdb.Error, WarehouseError) as problem:
        log.warning("%s cannot be read in %s: %s", name, source.name, str(problem).splitlines()[0])
        return False


def _attached(connection: duckdb.DuckDBPyConnection, source: Path, *statements: str) -> list[tuple[str, str]]:
    """The rows of the last statement; `source` is the catalog `damaged` meanwhile."""
    rows(connection, f"attach {literal(str(source))} as damaged (read_only)")
    try:
        with transaction(connection):
            *_, found = [rows(connection, statement) for statement in statements]
        return found
    finally:
        rows(connection, "detach damaged")
