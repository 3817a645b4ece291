"""Which columns hold personal data: the one place that knows, for every schema of the file.

`source` and `sync` tables declare it (`Column.is_personal`). Models declare it in their yml: `config: {meta: {personal: true}}` on a
column. Who declares nothing is not trusted: a column of a model that is called like a personal one is personal, too, unless its
yml says `personal: false`, and a column that nobody describes is personal.
Not here: what is done with them (`masking`, `checks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from warehouse.sync_tables import SYNC_TABLES, SyncTable
from warehouse.table import Column, Table
from warehouse.tables import TABLES

MODELS = Path(__file__).parent
#: Where models, snapshots and seeds are described.
_FOLDERS = ("models", "snapshots", "seeds")
_KINDS = ("models", "snapshots", "seeds")
#: Written by dbt into every snapshot: times, and hashes of the key.
_DBT_PREFIX = "dbt_"

#: (schema, table, column) → is it personal? None where a description does not say.
Described = Mapping[tuple[str, str], bool | None]


def is_personal(schema: str, table: str, column: str) -> bool:
    """Whether the column names, reaches or quotes a person."""
    if schema in ("source", "sync"):
        declared = _declared().get((f"{schema}.{table}", column))
        return declared is None or declared.is_personal
    return model_says(described(), table, column)


def model_says(models: Described, table: str, column: str) -> bool:
    """The rule for tables of `history` and `marts`."""
    if (said := models.get((table, column))) is not None:
        return said
    if column in _personal_names():
        return True
    return (table, column) not in models and column not in _plain_names() and not column.startswith(_DBT_PREFIX)


@cache
def described() -> Described:
    """What the yml files of the models say, by (model, column)."""
    paths = [path for folder in _FOLDERS for path in sorted((MODELS / folder).rglob("*.yml"))]
    return read_descriptions(yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths)


def read_descriptions(files: Iterable[Any]) -> Described:
    """The same of parsed yml files."""
    return dict(item for content in files for item in _columns(content or {}))


def _columns(content: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], bool | None]]:
    for model in (model for kind in _KINDS for model in content.get(kind) or ()):
        table = (model.get("config") or {}).get("alias") or model["name"]
        for column in model.get("columns") or ():
            meta = (column.get("meta") or {}) | ((column.get("config") or {}).get("meta") or {})
            yield (table, column["name"]), bool(meta["personal"]) if "personal" in meta else None


@cache
def _declared() -> Mapping[tuple[str, str], Column]:
    tables: tuple[Table | SyncTable, ...] = (*TABLES.values(), *SYNC_TABLES)
    return {(table.qualified, column.name): column for table in tables for column in table.columns}


@cache
def _personal_names() -> frozenset[str]:
    return frozenset(name for (_, name), column in _declared().items() if column.is_personal)


@cache
def _plain_names() -> frozenset[str]:
    return frozenset(name for _, name in _declared()) - _personal_names()
