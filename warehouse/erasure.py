"""Takes people who asked to be forgotten out of a DuckDB file (the warehouse, a checkpoint of the archive)
and of texts in SQLite.

Rows about them stay, as totals hang on them, with pseudonyms and without what is personal, which each column
declares; texts of other rows lose what `Forgotten.found` finds. The file is then written anew, since DuckDB
keeps the bytes of what was changed in blocks that it does not use. Not here: which rows are about somebody
(`person`), what becomes of a text (`forgetting`)."""

import json
import mmap
import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
from duckdb.func import SPECIAL

from warehouse.forgetting import Forgotten
from warehouse.masking import personal_of
from warehouse.mentions import digits_of
from warehouse.person import TEXTS, Person, about_of, may_be_named, tables_of
from warehouse.sql import NORMAL_FORM, add_normal_form, literal, qualified, quoted, rows, value

#: Titles of fields and columns that hold telephone numbers; a number with a country's is one wherever it
#: stands.
_TELEPHONE = re.compile(r"phone|mobil|cell|^tel|^fax|handy|whatsapp", re.IGNORECASE)
#: Where people's own numbers stand, in fields that are called so.
_WITH_NUMBERS = {"source.contacts": "custom_fields", "source.direct_reviews": "phone"}
_LABELS = "select field_id::varchar, label from source.list_fields"
#: What becomes of columns of rows about them of which a part stays: when and how often, and the link of a
#: campaign, which was sent to many.
_PARTS = {
    ("source.timeline_events", "details"): "details",
    ("source.timeline_automations", "details"): "details",
    ("source.campaign_clickers", "url"): "text",
}
BUSY_S = 60
#: Of a file of SQLite.
_COLUMNS = """
    select t.name, c.name from pragma_table_list as t, pragma_table_info(t.name) as c
    where t.type = 'table' and t.schema = 'main' and t.name not like 'sqlite\\_%' escape '\\'
"""


def people_in(connection: duckdb.DuckDBPyConnection, forgotten: Forgotten) -> Person:
    """Those of the current database who are forgotten, by name: it is told by the fingerprints of addresses
    and ids."""
    addresses, contacts = list[str](), list[str]()
    for table, columns in tables_of(connection):
        for name in personal_of(table, columns):
            if columns[name] == "VARCHAR":
                column = quoted(name)
                addresses.append(
                    f"select {column} as text from {qualified(table)} where contains({column}, '@')"
                )
        if columns.keys() >= {"account", "contact_id"}:
            contacts.append(f"select account, contact_id from {qualified(table)} where contact_id > 0")
    add_normal_form(connection)
    texts = _distinct(connection, addresses, NORMAL_FORM.format("text"))
    ids = _distinct(connection, contacts, "account, contact_id")
    return Person(
        tuple(sorted({text for (text,) in texts if forgotten.is_address(text)})),
        tuple(sorted({each for each in ids if forgotten.is_contact(*each)})),
    )


def _distinct(
    connection: duckdb.DuckDBPyConnection, sources: Collection[str], shown: str
) -> Iterator[tuple[Any, ...]]:
    if sources:
        found = connection.sql(f"select distinct {shown} from ({' union '.join(sources)})")
        for batch in found.to_arrow_reader(50_000):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def titles_of(connection: duckdb.DuckDBPyConnection) -> Collection[str]:
    """What was sent to many, in lower case."""
    return {
        title
        for (title,) in rows(
            connection, "select distinct lower(trim(subject)) from source.campaigns where subject is not null"
        )
    }


def numbers_of(connection: duckdb.DuckDBPyConnection, person: Person) -> Collection[str]:
    """Their telephone numbers, as digits, in their own rows; one that others have too is not looked for."""
    telephones = {key for key, label in rows(connection, _LABELS) if _TELEPHONE.search(label or "")}
    tables = dict(tables_of(connection))
    add_normal_form(connection)
    about = {
        table: about_of(person, table, tables[table], personal_of(table, tables[table]))
        for table in _WITH_NUMBERS
    }

    def numbers(condition: str) -> set[str]:
        """Those of the rows for which `condition` is true."""
        found = set[str]()
        for table, column in _WITH_NUMBERS.items():
            where = condition.format(about=about[table], column=column)
            for (text,) in rows(connection, f"select {column} from {table} as t where {where}"):
                found.update(_numbers(text, telephones))
        return found

    theirs = numbers("{about}")
    like = literal("|".join(r"\D{{0,4}}".join(number) for number in sorted(theirs)))
    others = numbers(f"not {{about}} and regexp_matches({{column}}::varchar, {like})") if theirs else set()
    return theirs - others


def _numbers(text: str | None, telephones: Collection[str]) -> Iterator[str]:
    """The digits of the numbers in a column of telephone numbers, or in an object of fields of which some are
    `telephones`."""
    fields = json.loads(text) if text and text.startswith("{") else {"": text or ""}
    for key, each in fields.items():
        written = str(each).strip()
        is_number = not key or key in telephones or written.startswith(("+", "00"))
        if is_number and (digits := digits_of(written).removeprefix("00")):
            yield digits


def forget_in_database(
    connection: duckdb.DuckDBPyConnection, forgotten: Forgotten, target: Path | None
) -> dict[str, int]:
    """Rows of each table of the current database that have something of theirs. `target`: where that database
    is written without it, with its comments and views, in the storage version that it has."""
    person = people_in(connection, forgotten)
    add_normal_form(connection)
    # for rows that need it only; an account may be unknown
    connection.create_function("forget", forgotten.becomes, ["VARCHAR"] * 3, "VARCHAR", null_handling=SPECIAL)
    try:
        counts, rewritten = dict[str, int](), dict[str, str]()
        for table, columns in tables_of(connection):
            source, shown = _plan(connection, forgotten, person, table, columns)
            if count := int(value(connection, f"select count(*) from {source} where is_about or is_named")):
                counts[table], rewritten[table] = count, f"select {shown} from {source}"
        if target is not None:
            _write(connection, target, rewritten)
    finally:
        connection.remove_function("forget")
    return counts


def _plan(
    connection: duckdb.DuckDBPyConnection,
    forgotten: Forgotten,
    person: Person,
    table: str,
    columns: Mapping[str, str],
) -> tuple[str, str]:
    """SQL of the table's rows with `is_about` and `is_named`, and of its columns as they become."""
    personal = personal_of(table, columns)
    account = "account" if "account" in columns else "null"
    is_about, named, changes = about_of(person, table, columns, personal), ["false"], list[str]()
    for name, kind in columns.items():
        column, text = quoted(name), f"{quoted(name)}::varchar"
        if kind in TEXTS:
            may = may_be_named(text, forgotten)
            is_other = f"forget('text', {account}, {text}) is distinct from {text}"
            named.append(f"case when {may} then {is_other} else false end")
        if rule := _rule(table, name, kind, is_personal=name in personal):
            about = _becomes(rule, column, kind, account)
            other = _becomes("text", column, kind, account) if kind in TEXTS else column
            changes.append(
                f"case when is_about then {about} when is_named then {other} else {column} end as {column}"
            )
    is_named = " or ".join(named)
    if table == "sync.rejected_records":
        # an entry that could not be read: which part of it is theirs nobody knows
        is_about = f"{is_about} or {is_named}"
    source = (
        f"(select *, {is_about} as is_about, not is_about and ({is_named}) as is_named "
        f"from {qualified(table)} as t)"
    )
    replaced = f" replace ({', '.join(changes)})" if changes else ""
    return source, f"* exclude (is_about, is_named){replaced}"


def _rule(table: str, name: str, kind: str, *, is_personal: bool) -> str:
    """What becomes of the column in a row about them, as `forgetting.RULES` calls it, or `nothing`; empty: it
    stays."""
    if name == "contact_id" and kind == "BIGINT":
        return "contact"
    if (table, name) in _PARTS:
        return _PARTS[table, name]
    if is_personal:
        return "personal" if kind == "VARCHAR" else "nothing"
    return "kept" if kind == "VARCHAR" else "text" if kind in TEXTS else ""


def _becomes(rule: str, column: str, kind: str, account: str) -> str:
    if rule == "nothing":
        return f"null::{kind}"
    if kind == "VARCHAR[]":
        return f"list_transform({column}, lambda item: forget('{rule}', {account}, item))"
    return f"forget('{rule}', {account}, {column}::varchar)::{kind}"


def _write(connection: duckdb.DuckDBPyConnection, target: Path, rewritten: Mapping[str, str]) -> None:
    """The current database as the file `target`, with the rows of some tables `rewritten`."""
    here = "database_name = current_database()"
    sql = f"select database_name, rtrim(tags['storage_version'], '+') from duckdb_databases() where {here}"
    ((own, version),) = rows(connection, sql)
    rows(connection, f"attach {literal(str(target))} as rewritten (storage_version {literal(version)})")
    rows(connection, f"copy from database {quoted(own)} to rewritten (schema)")
    sql = f"select schema_name || '.' || table_name from duckdb_tables() where {here} and not temporary"
    for (table,) in rows(connection, sql):
        source = rewritten.get(table, f"from {qualified(table)}")
        rows(connection, f"insert into rewritten.{qualified(table)} {source}")
    rows(connection, "detach rewritten")


def forget_in_sqlite(path: Path, forgotten: Forgotten, *, apply: bool) -> int:
    """How many values of a database that no table of ours describes name somebody; with `apply` none does any
    more, nor does a free page. Raises sqlite3.Error."""
    with closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as connection:
        connection.create_function("clean", 1, forgotten.text, deterministic=True)
        count = 0
        for table, column in connection.execute(_COLUMNS).fetchall():
            found = f"typeof({quoted(column)}) = 'text' and clean({quoted(column)}) <> {quoted(column)}"
            named = connection.execute(f"select count(*) from {quoted(table)} where {found}").fetchone()[0]
            if named and apply:
                connection.execute(
                    f"update or replace {quoted(table)} set {quoted(column)} = clean({quoted(column)}) "
                    f"where {found}"
                )
            count += named
        if apply:
            connection.execute("vacuum")
            connection.execute("pragma wal_checkpoint(truncate)")
    return int(count)


def found_in(path: Path, forgotten: Forgotten) -> int:
    """How often a file names somebody, as it is."""
    if not path.stat().st_size:
        return 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return sum(1 for _ in forgotten.found(data))
