"""The user's own tables: each `models/NAME.sql` of the home is one SELECT, and its result is the
table `custom.NAME`, in the published copy and for the query of a push.

They are made in the order in which they read one another, each sealed and within a limit of time
and memory (`sealed_query`). If one fails, only it and the tables that read it are missing. Not
here: what the copy does with them (`publish`)."""

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path

import duckdb
import msgspec

from marketing_api.address import mask_addresses
from warehouse.connection import open_private
from warehouse.sealed_query import QueryFailed, QueryLimits, limit_query, seal_connection
from warehouse.sql import fetch_rows, quote_name, quote_text

#: The folder in a home, and the schema.
FOLDER = "models"
SCHEMA = "custom"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
#: The tables of the schema that a query reads, from its parse tree, and that do not exist.
#: `get_table_names` does not accept every query: for it, tables have no columns to join on.
_MISSING = """
select distinct lower(value ->> 'table_name') as name from json_tree(json_serialize_sql($sql))
where type = 'OBJECT' and value ->> 'type' = 'BASE_TABLE'
  and lower(value ->> 'schema_name') = $schema
except
select lower(table_name) from duckdb_tables() where $schema in (database_name, schema_name)
order by name"""
#: Longest file, and longest description.
_MOST_BYTES = 1_000_000
_MOST_LETTERS = 600


class CustomFile(msgspec.Struct, frozen=True):
    """`reason`: why the file cannot be used; empty if it can."""

    name: str
    sql: str = ""
    reason: str = ""

    @property
    def table(self) -> str:
        return f"{SCHEMA}.{self.name}"

    @property
    def description(self) -> str:
        """The `--` lines at the top."""
        lines = takewhile(lambda line: line.startswith("--"), self.sql.strip().splitlines())
        words = " ".join(line.lstrip("-").strip() for line in lines)
        return words or f"Made of {FOLDER}/{self.name}.sql."


def read_files(home: Path) -> dict[str, CustomFile]:
    """The files of the home, by name in lower case. Links are not followed."""
    files: dict[str, CustomFile] = {}
    for path in sorted((home / FOLDER).glob("*.sql")):
        if path.name.startswith("."):  # hidden files of editors and file managers
            continue
        file = _read_file(path)
        key = file.name.lower()
        if key in files:
            both = f"{files[key].name}.sql and {path.name}"
            file = CustomFile(
                files[key].name, reason=f"{both} are one name in SQL: rename one of them"
            )
        files[key] = file
    return files


def _read_file(path: Path) -> CustomFile:
    name = path.stem.encode(errors="replace").decode()
    place = f"{FOLDER}/{name}.sql"
    reason = ""
    sql = ""
    try:
        if path.parent.is_symlink():
            reason = f"{FOLDER} is a link, which is not followed: make it a folder"
        elif path.is_symlink():
            reason = f"{place} is a link, which is not followed: put the file itself there"
        elif not _NAME.fullmatch(name):
            reason = (
                f"{place} cannot name a table: use up to 63 letters, digits and _, with a letter "
                "first"
            )
        elif not path.is_file() or path.stat().st_size > _MOST_BYTES:
            reason = f"{place} is not a file of at most {_MOST_BYTES:,} bytes"
        else:
            sql = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = f"{place} cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        reason = f"{place} is not text in UTF-8: save it so"
    return CustomFile(name, sql, reason)


class CustomBuild:
    """Makes tables on a sealed connection, in the order in which they read one another."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        files: Mapping[str, CustomFile],
        limits: QueryLimits,
    ) -> None:
        self._connection = connection
        self._files = files
        self._limits = limits
        self._reasons: dict[str, str] = {}

    def build_table(self, name: str, path: tuple[str, ...] = ()) -> str:
        """Make the table and those that it reads; returns why it could not be made, or "". `path`:
        the tables that wait for it."""
        if name not in self._reasons:
            self._reasons[name] = self._build_table(name, (*path, name))
        return self._reasons[name]

    def _build_table(self, name: str, path: tuple[str, ...]) -> str:
        file = self._files.get(name)
        if file is None:
            return f"there is no {FOLDER}/{name}.sql"
        if file.reason:
            return file.reason
        try:
            with limit_query(self._connection, file.sql, self._limits):
                missing = find_missing(self._connection, file.sql)
            for other in missing:
                if other in path:
                    circle = " → ".join(
                        f"{SCHEMA}.{step}" for step in (*path[path.index(other) :], other)
                    )
                    return f"these tables read one another: {circle}; change one of them"
                reason = self.build_table(other, path)
                if reason:
                    return f"it reads {SCHEMA}.{other}, which could not be made: {reason}"
            self._make_table(file)
        except QueryFailed as failure:
            return str(failure)
        return ""

    def _make_table(self, file: CustomFile) -> None:
        """`query` accepts a SELECT only: after `as`, a CTE could change or delete rows."""
        select = f"from query({quote_text(file.sql)})"
        with limit_query(self._connection, file.sql, self._limits):
            fetch_rows(
                self._connection,
                f"create or replace table {SCHEMA}.{quote_name(file.name)} as {select}",
            )


def find_missing(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """The tables of the schema that a query reads and that do not exist, in lower case."""
    return [name for (name,) in fetch_rows(connection, _MISSING, {"sql": sql, "schema": SCHEMA})]


def build_tables(
    files: Mapping[str, CustomFile], copy: Path, limits: QueryLimits
) -> Iterator[tuple[CustomFile, str]]:
    """Make the tables in the copy, which no other process has open; yields each file with why its
    table could not be made, or ""."""
    with open_private(copy, spill=copy.with_suffix(".tmp")) as connection:
        seal_connection(connection, limits)
        build = CustomBuild(connection, files, limits)
        for name, file in files.items():
            yield file, mask_addresses(build.build_table(name))[:_MOST_LETTERS]


def make_needed(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    files: Mapping[str, CustomFile],
    limits: QueryLimits,
) -> None:
    """Make the tables that the query of a push reads, on its sealed connection. Raises
    QueryFailed."""
    with limit_query(connection, sql, limits):
        missing = find_missing(connection, sql)
        if missing:
            fetch_rows(connection, f"attach ':memory:' as {SCHEMA}")
    build = CustomBuild(connection, files, limits)
    for name in missing:
        reason = build.build_table(name)
        if reason:
            raise QueryFailed(f"the query reads {SCHEMA}.{name}, which cannot be made: {reason}")
