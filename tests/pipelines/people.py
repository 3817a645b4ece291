"""What a warehouse knows of people: texts that must not be found where nothing personal may be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from warehouse.tables import TABLES

#: Names of details, and times of openings and clicks, which are in columns of their own, too.
_PLAIN = re.compile(r"[a-z_-]+|(\d{4}-\d\d-\d\d|\d\d/\d\d/\d{4}).*")


def people_of(home: Path) -> set[str]:
    """Texts of the personal columns: addresses, and others that say something about somebody: those that
    stand in other columns as well (the business's name as a sender) do not."""
    others = "\n".join(texts_of(home, personal=False))
    return {
        text
        for text in texts_of(home, personal=True)
        if "@" in text[1:] or (len(text) > 6 and text not in others)
    }


def values_of(home: Path) -> set[str]:
    """The single values within the personal JSON columns: custom fields, details of timelines."""
    others = "\n".join(texts_of(home, personal=False))
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        columns = [
            (table.qualified, column.name)
            for table in TABLES.values()
            for column in table.columns
            if column.sql_type == "JSON"
        ]
        found = {
            leaf
            for table, column in columns
            for (text,) in connection.execute(
                f'select distinct "{column}"::varchar from {table} where "{column}" is not null'
            ).fetchall()
            for leaf in _leaves(json.loads(text))
        }
    return {text for text in found if len(text) > 6 and text not in others and not _PLAIN.fullmatch(text)}


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
    elif isinstance(value, str):
        yield value


def texts_of(home: Path, *, personal: bool) -> set[str]:
    """What stands in the text columns that are personal, or in those that are not."""
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        return {
            text
            for table in TABLES.values()
            for column in table.columns
            if column.sql_type == "VARCHAR" and column.is_personal is personal
            for (text,) in connection.execute(
                f'select distinct "{column.name}" from {table.qualified}'
            ).fetchall()
            if text
        }
