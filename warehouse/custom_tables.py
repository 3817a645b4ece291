"""Tables of the user's: each `models/NAME.sql` of the home is one SELECT, and its result is the table
`custom.NAME`, of the published copy and for the query of a push.

A sealed process makes them in the order in which they read one another, each within a limit of time and
memory. What fails costs its own table and those that read it. Not here: what becomes of them in the copy
(`publish`)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import duckdb
import msgspec

from marketing_api.address import mask_addresses
from warehouse.sealed_connection import check_select, in_words, serve_queries
from warehouse.sealed_query import QueryFailed, SealedProcess, SealedQuery
from warehouse.sql import fetch_rows, quote_name, quote_text

#: The folder in a home, and the schema.
FOLDER, SCHEMA = "models", "custom"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
#: The tables of the schema that a query reads, as it is parsed, and that are not there. `get_table_names`
#: does not take every query: to it, tables have no columns to join on.
_MISSING = """
select distinct lower(value ->> 'table_name') as name from json_tree(json_serialize_sql($sql))
where type = 'OBJECT' and value ->> 'type' = 'BASE_TABLE' and lower(value ->> 'schema_name') = $schema
except
select lower(table_name) from duckdb_tables() where $schema in (database_name, schema_name)
order by name"""
#: Of a file, and of what is said of it.
_MOST_BYTES, _MOST_LETTERS = 1_000_000, 600


class CustomFile(msgspec.Struct, frozen=True):
    """`problem`: why the file cannot be used; empty when it can."""

    name: str
    sql: str = ""
    problem: str = ""

    @property
    def table(self) -> str:
        return f"{SCHEMA}.{self.name}"

    @property
    def description(self) -> str:
        """The `--` lines at the top."""
        lines = takewhile(lambda line: line.startswith("--"), self.sql.strip().splitlines())
        words = " ".join(line.lstrip("-").strip() for line in lines)
        return words or f"Made of {FOLDER}/{self.name}.sql."


@dataclass(frozen=True, slots=True)
class CustomLimits:
    """How long a table may take, in what memory, and the zones of its times (see `SealedQuery`)."""

    seconds: float = 600.0
    memory_bytes: int = 2_000_000_000
    zone: str = "UTC"
    zones: Mapping[str, str] = field(default_factory=dict)


def read_files(home: Path) -> dict[str, CustomFile]:
    """The files of the home, by name in lower case. Links are not followed."""
    files: dict[str, CustomFile] = {}
    for path in sorted((home / FOLDER).glob("*.sql")):
        if path.name.startswith("."):  # of editors and file managers
            continue
        file = _read_file(path)
        key = file.name.lower()
        if key in files:
            both = f"{files[key].name}.sql and {path.name}"
            file = CustomFile(files[key].name, problem=f"{both} are one name in SQL: rename one of them")
        files[key] = file
    return files


def _read_file(path: Path) -> CustomFile:
    name = path.stem.encode(errors="replace").decode()
    place = f"{FOLDER}/{name}.sql"
    problem, sql = "", ""
    try:
        if path.parent.is_symlink():
            problem = f"{FOLDER} is a link, which is not followed: make it a folder"
        elif path.is_symlink():
            problem = f"{place} is a link, which is not followed: put the file itself there"
        elif not _NAME.fullmatch(name):
            problem = f"{place} cannot name a table: use up to 63 letters, digits and _, with a letter first"
        elif not path.is_file() or path.stat().st_size > _MOST_BYTES:
            problem = f"{place} is not a file of at most {_MOST_BYTES:,} bytes"
        else:
            sql = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        problem = f"{place} cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        problem = f"{place} is not text in UTF-8: save it so"
    return CustomFile(name, sql, problem)


#: Makes a table; returns the tables of the schema that it reads and that are not there, in lower case: then
#: nothing was made. Raises QueryFailed.
MakeTable = Callable[[CustomFile], Sequence[str]]


class CustomBuild:
    """Makes tables in the order in which they read one another."""

    def __init__(self, files: Mapping[str, CustomFile], make: MakeTable) -> None:
        self._files, self._make = files, make
        self._problems: dict[str, str] = {}

    def build_table(self, name: str, path: tuple[str, ...] = ()) -> str:
        """Make the table and those that it reads; returns why it is not there, empty when it is. `path`: the
        tables that wait for it."""
        if name not in self._problems:
            self._problems[name] = self._build_table(name, (*path, name))
        return self._problems[name]

    def _build_table(self, name: str, path: tuple[str, ...]) -> str:
        file = self._files.get(name)
        if file is None:
            return f"there is no {FOLDER}/{name}.sql"
        if file.problem:
            return file.problem
        try:
            missing = self._make(file)
            for other in missing:
                if other in path:
                    circle = " → ".join(f"{SCHEMA}.{step}" for step in (*path[path.index(other) :], other))
                    return f"these tables read one another: {circle}; let one of them read something else"
                if problem := self.build_table(other, path):
                    return f"it reads {SCHEMA}.{other}, which could not be made: {problem}"
            if missing:
                self._make(file)
        except QueryFailed as failure:
            return str(failure)
        return ""


# ---- for the published copy


class TableQuery(SealedQuery, frozen=True, kw_only=True):
    """Makes the table `name`."""

    name: str
    is_writable: bool = True


def build_tables(
    files: Mapping[str, CustomFile], copy: Path, limits: CustomLimits
) -> Iterator[tuple[CustomFile, str]]:
    """Make the tables in the copy, which nobody has open; yields each file with why its table could not be
    made, empty when it was."""
    with closing(SealedProcess(__name__, copy.parent)) as process:

        def make_from_file(file: CustomFile) -> list[str]:
            query = TableQuery(
                database=str(copy),
                sql=file.sql,
                result=str(copy),
                memory_bytes=limits.memory_bytes,
                zone=limits.zone,
                zones=dict(limits.zones),
                memory_setting="MARKETING_MODELS_MEMORY",
                name=file.name,
            )
            return msgspec.json.decode(process.run_query(query, limits.seconds), type=list[str])

        build = CustomBuild(files, make_from_file)
        for name, file in files.items():
            yield file, mask_addresses(build.build_table(name))[:_MOST_LETTERS]


def write_table(connection: duckdb.DuckDBPyConnection, query: TableQuery) -> str:
    """Make the table; returns the tables that it needs first, as JSON."""
    return msgspec.json.encode(make_table(connection, query.name, query.sql)).decode()


def make_table(connection: duckdb.DuckDBPyConnection, name: str, sql: str) -> list[str]:
    """See `MakeTable`. `query` takes a SELECT only: after `as`, a CTE may change or delete rows."""
    missing = find_missing(connection, sql)
    if not missing:
        fetch_rows(
            connection,
            f"create or replace table {SCHEMA}.{quote_name(name)} as from query({quote_text(sql)})",
        )
    return missing


def find_missing(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """The tables of the schema that a query reads and that are not there, in lower case."""
    return [name for (name,) in fetch_rows(connection, _MISSING, {"sql": sql, "schema": SCHEMA})]


# ---- for the query of a push


def make_needed(
    connection: duckdb.DuckDBPyConnection, query: SealedQuery, files: Mapping[str, CustomFile]
) -> None:
    """Make the tables that the query reads, in its process. Raises QueryFailed."""

    def make_from_file(file: CustomFile) -> list[str]:
        with in_words(query):
            check_select(connection, file.sql)
            return make_table(connection, file.name, file.sql)

    if missing := find_missing(connection, query.sql):
        fetch_rows(connection, f"attach ':memory:' as {SCHEMA}")
    build = CustomBuild(files, make_from_file)
    for name in missing:
        if problem := build.build_table(name):
            raise QueryFailed(f"the query reads {SCHEMA}.{name}, which cannot be made: {problem}")


if __name__ == "__main__":
    serve_queries(TableQuery, write_table)
