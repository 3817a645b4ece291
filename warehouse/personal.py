"""Which columns hold personal data: the one place that knows, for every schema of the file.

`source` and `sync` tables declare it (`Column.is_personal`). For models it follows from their SQL (`lineage`): a column that is made
of a personal one is personal. Nobody has to mark anything, and a column that nobody knows is personal. Not here: what is done with
them (`masking`, `checks`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from warehouse.sync_tables import SYNC_TABLES, SyncTable
from warehouse.table import Table
from warehouse.tables import TABLES

#: Written by `python -m warehouse.lineage`.
LINEAGE = Path(__file__).with_name("lineage.json")


def is_personal(schema: str, table: str, column: str) -> bool:
    """Whether the column names, reaches or quotes a person."""
    if schema in ("source", "sync"):
        return _declared().get((f"{schema}.{table}", column), True)
    return bool(lineage()["columns"].get(f"{schema}.{table}", {}).get(column, True))


def small_groups(schema: str, table: str) -> Mapping[str, Any] | None:
    """How the table's rows stand for groups of people, where that is to be kept from telling of a few: `Masking.relation`."""
    found: Mapping[str, Any] | None = lineage()["small_groups"].get(f"{schema}.{table}")
    return found


@cache
def lineage() -> Mapping[str, Any]:
    """`columns`: table → column → the personal columns it is made of. `released`: columns that are made of personal ones and do not
    show them, as their yml declares and a test proves. `small_groups`: as the yml of models declares.
    """
    found: Mapping[str, Any] = json.loads(LINEAGE.read_text(encoding="utf-8"))
    return found


@cache
def _declared() -> Mapping[tuple[str, str], bool]:
    tables: tuple[Table | SyncTable, ...] = (*TABLES.values(), *SYNC_TABLES)
    return {(table.qualified, column.name): column.is_personal for table in tables for column in table.columns}
