"""Writes the published file: a new copy of everything that analysts may see, which is checked and
swapped in atomically.

The warehouse is only locked while its file is copied (about a GB per second); slow work uses that
copy. Readers may keep the published file open as long as they like: it never changes, and the next
one takes its name. Not here: masking of personal data (`masking`), uploading
(`marketing_sync.uploading`)."""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any, Unpack

import duckdb

from marketing_api.clock import utc_now
from warehouse import duckdb_errors
from warehouse.connection import MEMORY_LIMIT, Waits, open_database, open_private
from warehouse.custom_tables import SCHEMA, CustomFile, build_tables, read_files
from warehouse.dbt_project import load_models
from warehouse.disk import (
    copy_locked,
    hold_lock,
    make_folder,
    move_into_place,
    no_folder,
    open_scratch,
)
from warehouse.disk import published_path as published_path
from warehouse.errors import NothingPublished, NotPublished, NoWarehouse, PublishedLocked
from warehouse.masking import Masking, published_columns
from warehouse.policies import PersonalData
from warehouse.schema import SCHEMAS, comment_statements, kinds_of, row_counts, table_statements
from warehouse.sealed_query import QueryLimits
from warehouse.sql import (
    fetch_records,
    fetch_rows,
    fetch_value,
    quote_name,
    quote_relation,
    quote_text,
    transaction,
)
from warehouse.tables import (
    CUSTOM_TABLES,
    FACTS,
    IN_WORDS,
    QUESTIONS,
    SCHEMA_CHANGES,
    TABLES_OF_COPY,
)

#: The time of the newest read, without dates from a clock that was ahead.
NEWEST_READING = (
    "select coalesce(max(as_of) filter (as_of <= now() + interval 5 minute), max(as_of)) from "
    "sync.coverage"
)
#: The publish check: what blocks publishing this warehouse, one line each; empty if it is fit.
PublishCheck = Callable[[duckdb.DuckDBPyConnection], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Published:
    """What a copy says about itself; the comments of the columns of `sync.published` explain the
    fields."""

    published_at: dt.datetime
    data_as_of: dt.datetime | None
    personal_data: PersonalData
    table_count: int = 0
    row_count: int = 0


def publish_copy(
    home: Path,
    masking: Masking | None = None,
    *,
    check: PublishCheck = lambda connection: (),
    limits: QueryLimits | None = None,
    **waits: Unpack[Waits],
) -> Published:
    """Write the published file of `home` again; returns what it says about itself.

    `limits`: for the user's tables. Raises NotPublished if `check` finds a blocker (the present
    file stays), and what `connection.open_database` raises."""
    masking = masking or Masking(PersonalData.KEEP)
    path = home / "warehouse.duckdb"
    target = published_path(home)
    with _take_turn(home), open_scratch(home, "publish") as workspace:
        if not path.exists():
            raise NoWarehouse(
                f"there is no {path} yet: nothing has been synced; run `marketing-sync sync`"
            )
        workspace.sweep_dead()
        snapshot = workspace.place_file("warehouse.duckdb")
        temporary = workspace.place_file("published.duckdb")
        # a copy with its log, between two transactions
        with open_database(path, memory_limit=MEMORY_LIMIT, **waits):
            copy_locked(path, snapshot)
        with open_private(spill=snapshot.with_suffix(".tmp")) as connection:
            fetch_rows(connection, f"attach {quote_text(str(snapshot))} as warehouse")
            fetch_rows(connection, "use warehouse")
            found = list(check(connection))
            if found:
                raise NotPublished(f"nothing was published: {'; '.join(found)}")
            _write_relations(connection, masking, temporary)
            custom = list(build_tables(read_files(home), temporary, limits or QueryLimits()))
            counts = _finish(connection, temporary, custom)
        published = _check_file(temporary, counts)
        temporary.chmod(0o600)
        move_into_place(temporary, no_folder(target))
    return published


def _write_relations(connection: duckdb.DuckDBPyConnection, masking: Masking, path: Path) -> None:
    """Write everything from the attached `warehouse` into a new file, except the user's tables,
    then detach the warehouse.

    A view that uses the clock stays a view of the published tables; others become tables."""
    masking.prepare_connection(connection)
    relations = published_columns(connection)
    views = _clock_views(connection, relations)
    commented = comment_statements(connection, relations, views)
    as_of = fetch_value(connection, NEWEST_READING)
    fetch_rows(connection, f"attach {quote_text(str(path))} as published")
    with transaction(connection):  # one flush to disk instead of a thousand
        for schema in (*SCHEMAS, SCHEMA):
            fetch_rows(connection, f"create schema published.{quote_name(schema)}")
        for relation in relations.keys() - views.keys():
            rows = masking.select_rows("warehouse", relation, relations[relation])
            fetch_rows(connection, f"create table published.{quote_relation(relation)} as {rows}")
        fetch_rows(connection, "use published")
        for statement in chain(
            views.values(), *map(table_statements, TABLES_OF_COPY), *commented.values()
        ):
            fetch_rows(connection, statement)
        said = asdict(Published(utc_now(), as_of, masking.personal_data))
        fetch_rows(
            connection, f"insert into {FACTS.qualified} by name select unnest($row)", {"row": said}
        )
        _write_questions(connection)
    fetch_rows(connection, "use warehouse")
    fetch_rows(connection, "detach published")


def _finish(
    connection: duckdb.DuckDBPyConnection, path: Path, custom: Iterable[tuple[CustomFile, str]]
) -> dict[str, int]:
    """Write what follows from all tables, including the user's; returns the number of rows of
    each."""
    fetch_rows(connection, f"attach {quote_text(str(path))} as published")
    fetch_rows(connection, "use published")
    for file, failure in custom:
        _note_custom_table(connection, file, failure)
    with transaction(connection):
        counts = _count_rows(connection)
        totals = [len(counts), sum(counts.values())]
        fetch_rows(
            connection, f"update {FACTS.qualified} set table_count = ?, row_count = ?", totals
        )
    fetch_rows(connection, "use warehouse")
    fetch_rows(connection, "checkpoint published")
    fetch_rows(connection, "detach published")
    return counts


def _clock_views(
    connection: duckdb.DuckDBPyConnection, relations: Collection[str]
) -> dict[str, str]:
    """The relations that are views which use the clock, with their SQL."""
    sql = (
        "select schema_name || '.' || view_name, sql from duckdb_views() "
        "where database_name = 'warehouse' and contains(sql, 'now()')"
    )
    return {view: made for view, made in fetch_rows(connection, sql) if view in relations}


def _count_rows(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Rows of each relation of the published file."""
    return row_counts(connection, kinds_of(connection).keys() - {FACTS.qualified})


def _note_custom_table(
    connection: duckdb.DuckDBPyConnection, file: CustomFile, failure: str
) -> None:
    """Note the outcome of one of the user's tables."""
    built_at = None
    if not failure:
        built_at = fetch_value(connection, f"select published_at from {FACTS.qualified}")
        table = f"{SCHEMA}.{quote_name(file.name)}"
        fetch_rows(connection, f"comment on table {table} is {quote_text(file.description)}")
    row = [file.table, built_at, failure or None]
    fetch_rows(connection, f"insert into {CUSTOM_TABLES.qualified} values (?, ?, ?)", row)


def _write_questions(connection: duckdb.DuckDBPyConnection) -> None:
    for mart, node in load_models().items():
        asked = node.meta.get("questions", ())
        questions = [("question", question["ask"], question["sql"]) for question in asked]
        metrics = [("metric", name, sql) for name, sql in node.meta.get("metrics", {}).items()]
        for entry in [*questions, *metrics]:
            fetch_rows(
                connection, f"insert into {QUESTIONS.qualified} values (?, ?, ?, ?)", [mart, *entry]
            )


def _check_file(path: Path, counts: dict[str, int]) -> Published:
    """Open the new file as analysts will. Raises NotPublished if it differs from what was
    written."""
    with open_published(path) as connection:
        published = read_facts(connection)
        found = _count_rows(connection)
    if found != counts:
        wrong = sorted(name for name in counts if found.get(name) != counts[name])
        raise NotPublished(
            "nothing was published: the copy does not read back as it was written "
            f"({', '.join(wrong) or FACTS.qualified})"
        )
    return published


def schema_changes(path: Path, since: dt.date) -> list[tuple[str, dt.datetime, str]]:
    """The schema changes in a published file since that day, oldest first: account, time, and
    change in words."""
    where = f"noticed_at >= date '{since}'"
    sql = (
        f"select account, noticed_at, {IN_WORDS} from {SCHEMA_CHANGES.qualified} where {where} "
        "order by all"
    )
    return _rows_if_any(path, sql)


def list_custom_failures(path: Path) -> list[str]:
    """The user's tables that a published file lacks, with the reasons."""
    sql = (
        f"select table_name, error from {CUSTOM_TABLES.qualified} where error is not null order by "
        "all"
    )
    return [f"{table} was not made: {error}" for table, error in _rows_if_any(path, sql)]


def _rows_if_any(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """No rows if the file does not exist, or does not have the table yet."""
    with (
        suppress(NothingPublished, PublishedLocked, duckdb.CatalogException, duckdb.IOException),
        open_published(path) as connection,
    ):
        return fetch_rows(connection, sql)
    return []


@contextmanager
def open_published(path: Path, scratch: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """The copy at `path`. `scratch`: a folder for queries that don't fit into memory. Raises
    NothingPublished, PublishedLocked."""
    if not path.exists():
        raise NothingPublished(path)
    try:
        with open_private(path, read_only=True, spill=scratch) as connection:
            yield connection
    except duckdb.Error as error:
        if duckdb_errors.is_locked(error):
            raise PublishedLocked(path) from None
        raise


def read_published_facts(path: Path) -> Published | None:
    """What the copy at `path` says about itself; None if there is none, or if it is not one of
    ours. Raises PublishedLocked."""
    try:
        with open_published(path) as connection:
            return read_facts(connection)
    except (NothingPublished, duckdb.Error):
        return None


def read_facts(connection: duckdb.DuckDBPyConnection) -> Published:
    """What the open copy says about itself."""
    names = ", ".join(field.name for field in fields(Published))
    found = fetch_records(connection, f"select {names} from {FACTS.qualified}")[0]
    return Published(**found | {"personal_data": PersonalData(found["personal_data"])})


@contextmanager
def _take_turn(home: Path) -> Iterator[None]:
    """The folder of the published file, for one process at a time."""
    folder = make_folder(published_path(home).parent)
    folder.chmod(0o700)
    with hold_lock(folder / ".turn"):
        yield
