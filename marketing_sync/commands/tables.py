"""List the tables, or the columns of one table."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import duckdb
from rich.console import Console

from home import exits, interrupts
from home.exits import WrongUse
from home.options import JSON, Option
from home.output import Column, ListedTable, TableColumns, Tables, print_json
from home.settings import Settings
from home.values import did_you_mean
from marketing_sync.commands import declare_command
from marketing_sync.commands.query import open_unpublished
from marketing_sync.grids import make_grid, open_console
from warehouse.publish import open_published, published_path
from warehouse.sql import fetch_rows, fetch_value, load_statements, quote_name, quote_text

_QUERIES = load_statements(Path(__file__).with_suffix(".sql"))
_COUNT = "select count(*) from {}.{}"


@declare_command(
    Option(
        "table",
        "name of a table, with or without its schema",
        str,
        metavar="[TABLE]",
        is_positional=True,
    ),
    JSON,
    needs_keys=False,
)
def tables(settings: Settings, table: str | None, json: bool) -> int:
    """Each table has its row count and description, each column its type and description."""
    console = open_console()
    path = published_path(settings.home)
    opened = open_published(path) if path.exists() else open_unpublished(settings)
    with interrupts.end_quietly(), opened as connection:
        if json and table:
            print_json(describe_table(connection, table))
        elif json:
            print_json(Tables(list_tables(connection)))
        elif table:
            _print_columns(console, describe_table(connection, table))
        else:
            _print_tables(console, list_tables(connection))
    return exits.DONE


def _print_columns(console: Console, table: TableColumns) -> None:
    console.print(f"{table.table}: {table.comment or ''}\n")
    cells = ((column.name, column.type, column.comment or "") for column in table.columns)
    console.print(make_grid("", "column, type, what it is", cells))


def _print_tables(console: Console, tables: Iterable[ListedTable]) -> None:
    for schema, members in groupby(tables, lambda table: table.table.partition(".")[0]):
        cells = (
            (table.table, f"{table.rows:,}", _first_sentence(table.comment)) for table in members
        )
        console.print(make_grid(f"\n{schema}", "table, >rows, what it is", cells))


def _first_sentence(comment: str | None) -> str:
    first, point, _ = (comment or "").partition(". ")
    return first + point.strip()


def list_tables(connection: duckdb.DuckDBPyConnection) -> list[ListedTable]:
    """All tables and views with their row counts and comments, marts first."""
    return [
        ListedTable(
            f"{schema}.{name}",
            fetch_value(connection, _COUNT.format(quote_name(schema), quote_name(name))),
            comment,
        )
        for schema, name, comment in fetch_rows(connection, _QUERIES["tables"])
    ]


def describe_table(connection: duckdb.DuckDBPyConnection, table: str) -> TableColumns:
    """Comment and columns of a table, named with or without its schema. Raises WrongUse."""
    found = {
        f"{schema}.{name}": (schema, name, comment)
        for schema, name, comment in fetch_rows(connection, _QUERIES["tables"])
    }
    qualified = _find_table(table, list(found))
    schema, name, comment = found[qualified]
    columns = [Column(*row) for row in fetch_rows(connection, _QUERIES["columns"], (schema, name))]
    return TableColumns(qualified, comment, columns)


def _find_table(table: str, names: Sequence[str]) -> str:
    """The qualified name of a table that is named with or without its schema. Raises WrongUse."""
    requested = table.strip().lower().replace('"', "")
    for name in names:
        if requested in (name, name.partition(".")[2]):
            return name
    raise WrongUse(
        f"there is no table {quote_text(table)}{did_you_mean(requested, names)}; "
        "`marketing-sync tables` lists them"
    )
