"""Writes `models/staging/` from the declarations: `python -m warehouse.model_sources`. A test fails when it is stale.

Per `source` table one view with its current rows: no deleted ones, no `extra`, and the columns of the loading under plain
names. Not here: anything about what the data means (`models/marts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import yaml

from warehouse.sync_tables import SYNC_TABLES
from warehouse.table import Column, Snapshot, Table
from warehouse.tables import TABLES

FOLDER = Path(__file__).parent / "models" / "staging"

_BY = "# Written by `python -m warehouse.model_sources`; change the declarations in warehouse/tables.py.\n"
_PLAIN_NAMES = {"_first_seen_at": "first_seen_at", "_changed_at": "changed_at"}


def render() -> dict[str, str]:
    """File name → text."""
    files = {f"stg_{table.name}.sql": _view(table) for table in TABLES.values()}
    for area, tables in groupby(TABLES.values(), key=lambda table: table.area):
        files[f"{area}.yml"] = _yaml({"version": 2, "models": [_model(table) for table in tables]})
    return files | {"sources.yml": _sources()}


def columns(table: Table) -> Iterator[tuple[Column, str]]:
    """The columns of the table's view: (column of the table, name in the view)."""
    for column in table.columns:
        if column.name in _PLAIN_NAMES:
            yield column, _PLAIN_NAMES[column.name]
        elif column.name != "extra" and not column.name.startswith("_"):
            yield column, column.name


def _view(table: Table) -> str:
    named = [column.name if column.name == name else f"{column.name} as {name}" for column, name in columns(table)]
    lines = [f"-- Current rows of {table.qualified}; one row per {', '.join(table.key) or 'account'}."]
    lines += ["select", *(f"    {name}," for name in named[:-1]), f"    {named[-1]}"]
    lines += [f"from {{{{ source('source', '{table.name}') }}}}"]
    lines += ["where _deleted_at is null"] if isinstance(table.load, Snapshot) else []
    return "\n".join(lines) + "\n"


def _model(table: Table) -> dict[str, object]:
    return {
        "name": f"stg_{table.name}",
        "description": f"Current rows of {table.qualified}. {table.doc}",
        "config": {"meta": {"area": table.area}},
        "columns": [{"name": name, "description": column.comment} for column, name in columns(table)],
    }


def _sources() -> str:
    tables = [{"name": table.name, "description": table.doc} for table in TABLES.values()]
    sync = [{"name": table.name, "description": table.doc} for table in SYNC_TABLES]
    return _yaml(
        {
            "version": 2,
            "sources": [
                {"name": "source", "description": "Typed mirror of the service.", "tables": tables},
                {"name": "sync", "description": "What was asked, loaded, refused and is known to be read.", "tables": sync},
            ],
        }
    )


def _yaml(content: object) -> str:
    return _BY + str(yaml.safe_dump(content, sort_keys=False, width=140, allow_unicode=True))


def write() -> None:
    """Make the folder what it should be: files of tables that are gone go."""
    files = render()
    for path in FOLDER.iterdir():
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
