"""The models that are written from the declarations (`python -m warehouse.model_files`); a test fails when they are stale.

`models/staging`: per `source` table one view with its current rows (no deleted ones, no `extra`, and the columns of the loading under
plain names). `models/history/versions`: the tables whose every version is kept.
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from warehouse.masking import is_personal
from warehouse.sync_tables import SYNC_TABLES
from warehouse.tables import ACCOUNT, EXTRA, TABLES, Column, Table

MODELS = Path(__file__).parent / "models"
_STAGING, _VERSIONS = "staging", "history/versions"
#: Their changes and deletions cannot be had later.
_VERSIONED = ("contacts", "lists", "campaigns", "goals", "webhooks", "users")

_BY = "# Written by `make docs`; change the declarations in warehouse/tables.py.\n"
_PLAIN_NAMES = {"_first_seen_at": "first_seen_at", "_changed_at": "changed_at"}


def render() -> dict[str, str]:
    """Path below `MODELS` → text."""
    files = {f"{_STAGING}/stg_{table.name}.sql": _view(table) for table in TABLES.values()}
    for area, tables in groupby(TABLES.values(), key=lambda table: table.area):
        files[f"{_STAGING}/{area}.yml"] = _yaml({"version": 2, "models": [_model(table) for table in tables]})
    versioned = [TABLES[name] for name in _VERSIONED]
    files |= {f"{_VERSIONS}/history_{table.name}.sql": _versions(table) for table in versioned}
    return files | {
        f"{_STAGING}/sources.yml": _sources(),
        f"{_VERSIONS}/versions.yml": _yaml({"version": 2, "models": [_version_model(table) for table in versioned]}),
    }


def found() -> dict[str, str]:
    """What is there now, in the same form."""
    paths = [path for folder in (_STAGING, _VERSIONS) for path in (MODELS / folder).iterdir()]
    return {path.relative_to(MODELS).as_posix(): path.read_text(encoding="utf-8") for path in paths}


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
    lines += ["where _deleted_at is null"] if table.marks_deleted else []
    return "\n".join(lines) + "\n"


def _model(table: Table) -> dict[str, object]:
    return {
        "name": f"stg_{table.name}",
        "description": f"Current rows of {table.qualified}. {table.doc}",
        "config": {"meta": {"area": table.area}},
        "columns": [{"name": name, "description": column.comment} for column, name in columns(table)],
    }


_VERSION_COLUMNS = (
    ("valid_from", "When a response first showed these values, UTC."),
    ("valid_to", "When a response first showed others, or no row; NULL while the version is current."),
    ("is_current", "Whether the row exists and has these values."),
    ("ended_by", "changed or deleted: what ended the version; NULL while it is current."),
)


def _versions(table: Table) -> str:
    values = [column.name for column in (*table.values, EXTRA)]
    key = ", ".join(repr(name) for name in table.key)
    unique = ", ".join(repr(name) for name in ("account", *table.key, "valid_from"))
    wrapped = textwrap.fill(", ".join(repr(name) for name in values), 120, initial_indent="    ", subsequent_indent="    ")
    return (
        f"-- Every version of {table.qualified}; one row per {', '.join(table.key)} and valid_from.\n"
        f"{{{{ config(unique_key=[{unique}]) }}}}\n"
        f"{{{{ versions('{table.name}', [{key}], [\n{wrapped}\n]) }}}}\n"
    )


def _version_model(table: Table) -> dict[str, object]:
    doc = (
        f"Every version that rows of {table.qualified} had, deletions included. One row per {', '.join(table.key)} and valid_from. "
        f"As of a moment: where valid_from <= moment and (valid_to is null or valid_to > moment). {table.doc}"
    )
    columns = [(column.name, column.comment) for column in (ACCOUNT, *table.record_columns, EXTRA)]
    identity = ["account", *table.key]
    return {
        "name": f"history_{table.name}",
        "description": doc,
        "config": {"alias": table.name, "meta": {"area": table.area}},
        "columns": [{"name": name, "description": text} for name, text in (*columns, *_VERSION_COLUMNS)],
        "data_tests": [
            _test("key", "A version is identified by its row and its beginning.", columns=[*identity, "valid_from"]),
            _test("key", "A row has one current version at most.", columns=identity, where="is_current"),
            _test("holds", "A version ends after it began.", condition="coalesce(valid_to >= valid_from, true)"),
        ],
    }


def _test(kind: str, description: str, *, where: str = "", **arguments: Any) -> dict[str, object]:
    test: dict[str, object] = {"description": description, "arguments": arguments}
    if where:
        test |= {"name": f"one_{'_'.join(arguments['columns'])}_{where}", "config": {"where": where}}
    return {kind: test}


def _sources() -> str:
    schemas = (
        ("source", "Typed mirror of the service.", TABLES.values()),
        ("sync", "What was requested, loaded, refused and is known to be read.", SYNC_TABLES),
    )
    sources = [
        {"name": name, "description": doc, "tables": [{"name": table.name, "description": table.doc} for table in tables]}
        for name, doc, tables in schemas
    ]
    return _yaml({"version": 2, "sources": sources})


def _yaml(content: object) -> str:
    return _BY + str(yaml.safe_dump(content, sort_keys=False, width=140, allow_unicode=True))


if __name__ == "__main__":
    files = render()
    for name in found().keys() - files.keys():  # of tables that are gone
        (MODELS / name).unlink()
    for name, text in files.items():
        (MODELS / name).write_text(text, encoding="utf-8")
