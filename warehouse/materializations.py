"""How a compiled model becomes a view or a table of the open warehouse, and how a test is asked. Not here: which, and when (`models`)."""

from collections.abc import Iterator

import duckdb

from warehouse.dbt_project import Node
from warehouse.sql import literal, quoted, rows, value


def existing(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Relation (`schema.table`) → table or view, of all that the file has."""
    kinds = " union all ".join(
        f"select schema_name || '.' || {kind}_name, '{kind}' from duckdb_{kind}s() where database_name = current_database()"
        for kind in ("table", "view")
    )
    return dict(rows(connection, kinds))


def content_hash(connection: duckdb.DuckDBPyConnection, relation: str) -> str:
    """Of the rows of a table, whatever their order."""
    schema, _, table = relation.partition(".")
    found = rows(connection, f"select count(*), sum(hash(each)) from {quoted(schema)}.{quoted(table)} as each")
    return "/".join(map(str, found[0]))


def count_failures(connection: duckdb.DuckDBPyConnection, test: Node) -> int:
    """Rows that break it."""
    return int(value(connection, f"select count(*) from ({test.sql})"))


def materialize(connection: duckdb.DuckDBPyConnection, node: Node, present: str | None, *, is_full: bool) -> None:
    """Make the model, with its descriptions as COMMENTs, within the caller's transaction. `present`: what has its name now (table, view).

    `is_full`: an incremental one is made anew, too, but for what cannot be had again.
    """
    made = "view" if node.kind == "view" else "table"
    is_grown = node.kind == "incremental" and present == made and (node.is_kept or not is_full)
    if not (is_grown and _merge(connection, node)):
        rows(connection, f"create schema if not exists {quoted(node.schema)}")
        if present not in (made, None):
            rows(connection, f"drop {present} {_qualified(node)}")
        rows(connection, f"create or replace {made} {_qualified(node)} as (\n{node.sql}\n)")  # one query, and no second statement behind it
    if is_full or not is_grown:
        connection.execute("; ".join(_comments(node, made)))


def _merge(connection: duckdb.DuckDBPyConnection, node: Node) -> bool:
    """Write what is new into its table, in place of the rows with the same key. False when its columns are others than they were, and
    nothing speaks against making it anew."""
    rows(connection, f"create or replace temp table fresh as (\n{node.later_sql}\n)")
    there, fresh = _columns(connection, _qualified(node)), _columns(connection, "fresh")
    if there != fresh and not node.is_kept:
        return False
    for name in fresh.keys() - there.keys():
        rows(connection, f"alter table {_qualified(node)} add column {quoted(name)} {fresh[name]}")
    if node.key:  # else it only grows
        same = " and ".join(f"fresh.{quoted(name)} = there.{quoted(name)}" for name in node.key)
        rows(connection, f"delete from {_qualified(node)} as there using fresh where {same}")
    rows(connection, f"insert into {_qualified(node)} by name from fresh")
    rows(connection, "drop table fresh")
    return True


def _columns(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    return {name: sql_type for name, sql_type, *_ in rows(connection, f"describe {relation}")}


def _comments(node: Node, made: str) -> Iterator[str]:
    yield f"comment on {made} {_qualified(node)} is {literal(node.description)}"
    for name, description in node.columns.items():
        yield f"comment on column {_qualified(node)}.{quoted(name)} is {literal(description)}"


def _qualified(node: Node) -> str:
    return f"{quoted(node.schema)}.{quoted(node.table)}"
