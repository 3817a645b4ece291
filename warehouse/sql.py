"""Helpers to compose and run SQL. Not here: queries (they are in `queries/`, or where they are
run)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from marketing_api.address import mask_addresses, normal_form

if TYPE_CHECKING:  # takes a fifth of a second to import
    import pyarrow as pa

Params = Sequence[Any] | Mapping[str, Any] | None


def quote_name(name: str) -> str:
    """An SQL identifier; names such as `key`, `type` and `fetch_rows` are columns here."""
    return '"' + name.replace('"', '""') + '"'


def quote_relation(relation: str) -> str:
    """The same for a table or view, from `schema.name`."""
    return ".".join(map(quote_name, relation.split(".", 1)))


def quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@cache
def load_query(name: str) -> str:
    """The text of `queries/NAME.sql`, for longer queries."""
    return (Path(__file__).parent / "queries" / f"{name}.sql").read_text(encoding="utf-8")


def load_statements(path: Path) -> Mapping[str, str]:
    """The statements of a file, by the names in the lines before them."""
    return dict(
        re.findall(
            r"^-- (\w+)\n(.*?);$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
    )


def fetch_rows(
    connection: duckdb.DuckDBPyConnection, sql: str, params: Params = None, **relations: "pa.Table"
) -> list[tuple[Any, ...]]:
    """Every row of the result, so that the connection is free for the next statement. SQL reads
    the Arrow tables in `relations` by their names."""
    for name, table in relations.items():
        connection.register(name, table)
    found: list[tuple[Any, ...]] = connection.execute(sql, params).fetchall()
    for name in relations:
        connection.unregister(name)
    return found


def fetch_records(
    connection: duckdb.DuckDBPyConnection, sql: str, params: Params = None
) -> list[dict[str, Any]]:
    """The same, each row as a mapping by column name."""
    found = connection.execute(sql, params)
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def fetch_value(connection: duckdb.DuckDBPyConnection, sql: str, params: Params = None) -> Any:
    """The first column of the first row; None without one."""
    found = fetch_rows(connection, sql, params)
    return found[0][0] if found else None


def not_one_select(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """Why the user's SQL is not one SELECT, as a text that follows "the query"; empty if it is.
    Raises ParserException."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        return f"has to be one SELECT, and this is {len(statements) or 'no'} statements"
    if statements[0].type != duckdb.StatementType.SELECT:
        kind = statements[0].type.name.replace("_", " ")
        if kind == "MULTI":
            return "has a PIVOT that names no values: add them, like ON status IN ('active')"
        return (
            f"has to be a SELECT, and this is {kind}: queries may read the tables and nothing else"
        )
    return (
        "has parameters like ? or $name: write their values instead"
        if statements[0].named_parameters
        else ""
    )


#: The normal form of a text that may be an address. Nearly all are plain; for these `lower` gives
#: the same in a fifth of the time.
NORMAL_FORM = "case when regexp_full_match({0}, '[!-~]*') then lower({0}) else normal_form({0}) end"


def add_normal_form(connection: duckdb.DuckDBPyConnection) -> None:
    """Make `normal_form(address)`, and so `NORMAL_FORM`, available in SQL, for tables without that
    column."""
    _add_function(connection, "normal_form", normal_form)


#: A text without addresses. Most texts have no character that every spelling of an @ needs.
MASKED = "case when regexp_matches({0}, '[@\uff20%&\\\\]') then mask_addresses({0}) else {0} end"


def add_mask_addresses(connection: duckdb.DuckDBPyConnection) -> None:
    """Make `mask_addresses(text)`, and so `MASKED`, available in SQL."""
    _add_function(
        connection, "mask_addresses", lru_cache(10_000)(lambda text: mask_addresses(text))
    )


def _add_function(
    connection: duckdb.DuckDBPyConnection, name: str, function: Callable[[str], str]
) -> None:
    with suppress(
        duckdb.CatalogException, duckdb.NotImplementedException
    ):  # the instance has it, or the connection itself
        connection.create_function(name, function, ["VARCHAR"], "VARCHAR")


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commit at the end; roll back if an error is raised."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        with suppress(duckdb.TransactionException):  # a commit that failed may have ended it
            connection.rollback()
        raise
