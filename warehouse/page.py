"""The reference page `docs/tables.md`, written from the declarations: `python -m warehouse.page`.

Not here: any fact about a table. A test fails when the page is stale.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from marketing_api.operations import ALL
from warehouse.sync_tables import SYNC_TABLES, SyncTable
from warehouse.tables import TABLES, Accumulate, Column, Daily, LoadKind, Snapshot, Table, Window

PAGE = Path(__file__).parents[1] / "docs" / "tables.md"

_INTRO = """\
# Tables

Written by `python -m warehouse.page` from `warehouse/tables.py`, `warehouse/sync_tables.py` and the records in
`marketing_api/records/`; change it there.

`source` holds what the service holds, as typed tables: {source} of them. `sync` tells what was asked, loaded, refused and is known
to be read. The same texts are COMMENTs in the file: `select table_name, comment from duckdb_tables()`.

How the tables are filled:

- **snapshot**: a complete listing of its scope. Rows that are missing from it are marked as deleted (`_deleted_at`) and kept; current
  rows are those `where _deleted_at is null`. Absence is proven or it is not believed: where a page lacks, an entry cannot be read, or
  the service counts more rows than it lists, nothing is marked. A listing that lost more than half of its rows (a setting) is not
  applied. `sync.coverage` says so, and the run ends with exit code 1.
- **window**: a range of days. The same holds for the rows of the range that was asked for; other days are left alone.
- **accumulate**: the service shows only part of the entries. Rows are added and updated, none is ever removed.
- **daily**: totals that the service shows only as of now, kept for each day on which they were asked (`observed_on`).

Rows are identified by `account` and the columns marked as key. Entries that the service gives no id have a key of hash and
number, so that two that are equal stay two. Times (`_at`) are in UTC, dates (`_on`) in the account's time zone. Columns that
begin with `_` are written by the loading. *Personal* marks columns that name, reach or quote a person; they are masked in previews.
*Not published* is what only the loading needs (`docs/publishing.md`).
"""


def render() -> str:
    """The whole page."""
    lines = [_INTRO.format(source=len(TABLES))]
    for area, tables in groupby(TABLES.values(), key=lambda table: table.area):
        lines.append(f"## source: {area}\n")
        for table in tables:
            lines += _source_table(table)
    lines.append("## sync\n")
    for sync_table in SYNC_TABLES:
        lines += _sync_table(sync_table)
    return "\n".join(lines).rstrip() + "\n"


def _source_table(table: Table) -> Iterator[str]:
    yield f"### {table.qualified}\n"
    yield f"{table.doc}\n"
    sources = [f"`{name}`" for name, operation in ALL.items() if table.record in operation.records]
    yield f"*{_load(table.load)}*, from {', '.join(sources)}.\n"
    yield from _columns(table.columns, table.key)


def _sync_table(table: SyncTable) -> Iterator[str]:
    yield f"### {table.qualified}\n"
    yield f"{table.doc}{' *Not published.*' if table.is_internal else ''}\n"
    yield from _columns(table.columns, table.key)


def _columns(columns: tuple[Column, ...], key: tuple[str, ...]) -> Iterator[str]:
    yield "| column | type | |"
    yield "|---|---|---|"
    for column in columns:
        name = f"**{column.name}** (key)" if column.name in key else column.name
        marks = (" *Personal.*" if column.is_personal else "") + (" *Not published.*" if column.is_internal else "")
        yield f"| {name} | {column.sql_type} | {column.comment}{marks} |"
    yield ""


def _load(kind: LoadKind) -> str:
    match kind:
        case Snapshot(scope=scope) if scope:
            return f"snapshot per {' and '.join(f'`{name}`' for name in scope)}"
        case Snapshot():
            return "snapshot"
        case Window(column=column) if column:
            return f"window by `{column}`"
        case Window():
            return "window: one row per range that was asked for"
        case Accumulate():
            return "accumulate"
        case Daily():
            return "daily"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
