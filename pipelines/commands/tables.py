"""List the tables that can be queried, or the columns of one."""

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import msgspec
from rich.console import Console

from home import exits, interrupts
from home.options import JSON, Option
from home.output import TableColumns, Tables, emit
from home.settings import Settings
from home.texts import grid
from pipelines.commands import Arguments, command
from pipelines.commands.query import readable
from warehouse.dbt_project import Node
from warehouse.models import ModelSettings
from warehouse.published_query import MESSAGE_LIMIT, NoAnswer
from warehouse.sql import literal, quoted, records, rows, statements, value
from warehouse.tables import ALL_TABLES

_QUERIES = statements(Path(__file__).with_suffix(".sql"))
_COUNT = "select count(*) from {}.{}"
_WIDTH = 200  # where nothing says how wide the terminal is


@command(
    Option("table", "one of them, with or without its schema", str, metavar="[TABLE]", is_positional=True),
    JSON,
)
def tables(arguments: Arguments, settings: Settings) -> int:
    """With the rows of each and what it holds; of one table the columns, their types and what they mean. `*`
    marks the columns that identify a row."""
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _WIDTH)
    with interrupts.end_quietly(), readable(settings) as (connection, _):
        if arguments.json:
            columns = arguments.table and described(connection, arguments.table)
            emit(
                msgspec.convert(columns, TableColumns)
                if columns
                else msgspec.convert({"tables": listed(connection)}, Tables)
            )
        elif arguments.table:
            found = described(connection, arguments.table)
            console.print(f"{found['table']}: {found['comment'] or ''}\n")
            cells = (
                (
                    f"{each['name']}{' *' if each['name'] in found['key'] else ''}",
                    each["type"],
                    each["comment"] or "",
                )
                for each in found["columns"]
            )
            console.print(grid("", "column, type, what it is", cells))
        else:
            for schema, members in groupby(listed(connection), lambda each: each["table"].partition(".")[0]):
                cells = (
                    (each["table"], f"{each['rows']:,}", _first_sentence(each["comment"])) for each in members
                )
                console.print(grid(f"\n{schema}", "table, >rows, what it is", cells))
    return exits.DONE


def _first_sentence(comment: str | None) -> str:
    first, point, _ = (comment or "").partition(". ")
    return first + point.strip()


def listed(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """All tables and views, marts first: rows, and what is in them."""
    return [
        {
            "table": f"{schema}.{name}",
            "rows": value(connection, _COUNT.format(quoted(schema), quoted(name))),
            "comment": comment,
        }
        for schema, name, comment in rows(connection, _QUERIES["tables"])
    ]


def described(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, Any]:
    """What is in the table, named with or without its schema, its columns, and those that identify a row.
    Raises NoAnswer."""
    found = {
        f"{schema}.{name}": (schema, name, comment)
        for schema, name, comment in rows(connection, _QUERIES["tables"])
    }
    qualified = _find(table, list(found))
    schema, name, comment = found[qualified]
    columns = records(connection, _QUERIES["columns"], (schema, name))
    return {"table": qualified, "comment": comment, "key": _keys().get(qualified, ()), "columns": columns}


@cache
def declared() -> Mapping[str, Node]:
    """Model → what this version declares of it; in `meta` the `questions` that it answers (`ask`) with a
    query for each (`sql`), and the SQL of the `metrics` over it."""
    return {node.relation: node for node in ModelSettings().nodes() if not node.is_test}


@cache
def _keys() -> Mapping[str, Sequence[str]]:
    of_tables = {table.qualified: ("account", *table.key) for table in ALL_TABLES}
    return of_tables | {
        node.relation: node.key for node in ModelSettings().nodes() if node.is_test and node.key
    }


def _find(table: str, names: Sequence[str]) -> str:
    """The table that is meant, with or without its schema: the first of that name."""
    wanted = table.strip().lower().replace('"', "")
    for name in names:
        if wanted in (name, name.partition(".")[2]):
            return name
    meant = get_close_matches(wanted, names, 3)
    hint = f"did you mean {' or '.join(meant)}?" if meant else "the list of tables names them all"
    raise NoAnswer(f"there is no table {literal(table[:MESSAGE_LIMIT])}; {hint}")
