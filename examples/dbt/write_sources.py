"""Writes models/sources.yml from the comments of the published file: python write_sources.py
FILE"""

import json
import sys
from pathlib import Path

import duckdb

TABLES = """
select schema_name, table_name, comment from duckdb_tables() where not internal
union all
select schema_name, view_name, comment from duckdb_views() where not internal
order by all"""
COLUMNS = """
select schema_name, table_name, column_name, comment from duckdb_columns() where not internal
order by schema_name, table_name, column_index"""


def describe(name: str, comment: str | None) -> dict[str, object]:
    """dbt fills braces in, so that none may be left."""
    return {"name": name, "description": (comment or "").replace("{", "(").replace("}", ")")}


def read_sources(path: str) -> list[dict[str, object]]:
    """One source per schema."""
    with duckdb.connect(path, read_only=True) as connection:
        tables = connection.execute(TABLES).fetchall()
        columns: dict[tuple[str, str], list[object]] = {}
        for schema, table, name, comment in connection.execute(COLUMNS).fetchall():
            columns.setdefault((schema, table), []).append(describe(name, comment))
    sources: dict[str, list[object]] = {}
    for schema, table, comment in tables:
        entry = describe(table, comment) | {"columns": columns[schema, table]}
        sources.setdefault(schema, []).append(entry)
    return [
        {"name": name, "database": "marketing", "tables": entries}
        for name, entries in sources.items()
    ]


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    if len(arguments) != 1:
        print("usage: python write_sources.py HOME/published/marketing.duckdb", file=sys.stderr)
        return 2
    (path,) = arguments
    try:
        sources = read_sources(path)
    except duckdb.Error as error:
        print(f"error: {path} can't be read: {error}", file=sys.stderr)
        return 1
    file = Path(__file__).with_name("models") / "sources.yml"
    # JSON is YAML
    text = json.dumps({"version": 2, "sources": sources}, indent=1)
    file.write_text(text, encoding="utf-8")
    print(f"{file}: {len(sources)} sources")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
