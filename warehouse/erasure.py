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
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import msgspec
from duckdb.func import FunctionNullHandling

from warehouse.forgetting import DOMAIN, LINK, Forgotten, details
from warehouse.mentions import digits_of
from warehouse.person import TEXTS, Person, about_of, may_be_named, personal_of, tables_of
from warehouse.sql import NORMAL_FORM, add_normal_form, literal, qualified, quoted, rows, value

_NUMBER = re.compile(r"(?<![\w.-])\d{1,18}(?![\w.])")
#: Titles of fields and columns that hold telephone numbers; a number with a country's is one wherever it
#: stands.
_TELEPHONE = re.compile(r"phone|mobil|cell|^tel|^fax|handy|whatsapp", re.IGNORECASE)
#: Where people's own numbers stand, in fields that are called so.
_WITH_NUMBERS = {"source.contacts": "custom_fields", "source.direct_reviews": "phone"}
_LABELS = "select field_id::varchar, label from source.list_fields"
#: Columns of rows about them of which a part stays: when and how often, and the link of a campaign, which was
#: sent to many.
_PARTS = {
    (
        "source.timeline_events",
        "details",
    ): "case when json_valid(details::varchar) then forget_details(details::varchar) end::json",
    (
        "source.timeline_automations",
        "details",
    ): "case when json_valid(details::varchar) then forget_details(details::varchar) end::json",
    ("source.campaign_clickers", "url"): "forget_text(account, url)",
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
        for column in map(
            quoted, (each for each in personal_of(connection, table, columns) if columns[each] == "VARCHAR")
        ):
            addresses.append(f"select {column} as text from {qualified(table)} where contains({column}, '@')")
        if columns.keys() >= {"account", "contact_id"}:
            contacts.append(f"select account, contact_id from {qualified(table)} where contact_id > 0")
    add_normal_form(connection)
    known = {
        address
        for (address,) in _distinct(connection, addresses, NORMAL_FORM.format("text"))
        if forgotten.is_address(address)
    }
    ids = {
        (account, number)
        for account, number in _distinct(connection, contacts, "*")
        if forgotten.is_contact(account, number)
    }
    return Person(tuple(sorted(known)), tuple(sorted(ids)))


def _distinct(
    connection: duckdb.DuckDBPyConnection, sources: Collection[str], shown: str
) -> Iterator[tuple[Any, ...]]:
    if sources:
        for batch in connection.sql(
            f"select distinct {shown} from ({' union '.join(sources)})"
        ).to_arrow_reader(50_000):
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
    theirs, others, tables = set[str](), set[str](), dict(tables_of(connection))
    add_normal_form(connection)
    for is_theirs in (True, False):
        like = "|".join(r"\D{0,4}".join(number) for number in sorted(theirs)) or r"[^\s\S]"
        for table, column in _WITH_NUMBERS.items():
            about = about_of(person, table, tables[table], personal_of(connection, table, tables[table]))
            which = (
                about if is_theirs else f"not {about} and regexp_matches({column}::varchar, {literal(like)})"
            )
            texts = rows(connection, f"select {column} from {table} as t where {which}")
            (theirs if is_theirs else others).update(
                each for (text,) in texts for each in _numbers(text, telephones)
            )
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
    with _functions(connection, forgotten):
        counts, rewritten = dict[str, int](), dict[str, str]()
        for table, columns in tables_of(connection):
            source, shown = _plan(connection, forgotten, person, table, columns)
            if count := int(value(connection, f"select count(*) from {source} where is_about or is_named")):
                counts[table], rewritten[table] = count, f"select {shown} from {source}"
        if target is not None:
            _write(connection, target, rewritten)
    return counts


def _plan(
    connection: duckdb.DuckDBPyConnection,
    forgotten: Forgotten,
    person: Person,
    table: str,
    columns: Mapping[str, str],
) -> tuple[str, str]:
    """SQL of the table's rows with `is_about` and `is_named`, and of its columns as they become."""
    personal = personal_of(connection, table, columns)
    account = "account" if "account" in columns else "null"
    is_about = about_of(person, table, columns, personal)
    is_named = (
        " or ".join(
            _named(quoted(column), account, forgotten) for column, kind in columns.items() if kind in TEXTS
        )
        or "false"
    )
    if (
        table == "sync.rejected_records"
    ):  # an entry that could not be read: which part of it is theirs nobody knows
        is_about = f"{is_about} or {is_named}"
    source = (
        f"(select *, {is_about} as is_about, not is_about and ({is_named}) as is_named from "
        f"{qualified(table)} as t)"
    )
    changes = []
    for column, kind in columns.items():
        about, text = (
            _about(table, column, kind, account, is_personal=column in personal),
            _text(quoted(column), kind, account),
        )
        if about != quoted(column):
            changes.append(
                f"case when is_about then {about} when is_named then {text} else {quoted(column)} end as "
                f"{quoted(column)}"
            )
    return source, "* exclude (is_about, is_named)" + (f" replace ({', '.join(changes)})" if changes else "")


def _named(column: str, account: str, forgotten: Forgotten) -> str:
    """The condition that the column has something of theirs."""
    text = f"{column}::varchar"
    return (
        f"case when {may_be_named(text, forgotten)} then forget_text({account}, {text}) is distinct from "
        f"{text} else false end"
    )


def _text(column: str, kind: str, account: str) -> str:
    """The column without what it names."""
    if kind == "VARCHAR[]":
        return f"list_transform({column}, lambda item: forget_text({account}, item))"
    return f"forget_text({account}, {column}::varchar)::{kind}" if kind in TEXTS else column


def _about(table: str, name: str, kind: str, account: str, *, is_personal: bool) -> str:
    """What becomes of the column in a row about them."""
    column = quoted(name)
    if name == "contact_id" and kind == "BIGINT":
        return f"forget_contact({account}, {column})"
    if (table, name) in _PARTS:
        return _PARTS[table, name]
    if is_personal:
        return f"forget_personal({column})" if kind == "VARCHAR" else f"null::{kind}"
    return f"forget_kept({account}, {column})" if kind == "VARCHAR" else _text(column, kind, account)


@contextmanager
def _functions(connection: duckdb.DuckDBPyConnection, forgotten: Forgotten) -> Iterator[None]:
    """What expressions of this module call, for rows that need it only. An account may be unknown, and
    nothing becomes of nothing."""
    text, number = "VARCHAR", "BIGINT"
    made: Mapping[str, tuple[Callable[..., Any], list[Any], str]] = {
        "forget_contact": (
            lambda of, each: each if each is None else _contact(forgotten, of, each),
            [text, number],
            number,
        ),
        "forget_text": (lambda of, each: each and forgotten.text(each, of), [text, text], text),
        "forget_kept": (lambda of, each: each and _kept(forgotten, of, each), [text, text], text),
        "forget_personal": (lambda each: None if each is None else _personal(forgotten, each), [text], text),
        "forget_details": (lambda each: each and _details(forgotten, each), [text], text),
    }
    for name, (work, takes, gives) in made.items():
        connection.create_function(name, work, takes, gives, null_handling=FunctionNullHandling.SPECIAL)
    try:
        yield
    finally:
        for name in made:
            connection.remove_function(name)


def _contact(forgotten: Forgotten, account: str | None, number: int) -> int:
    """The pseudonym of a contact of theirs; of others the same. Without an account that of any."""
    accounts = [account] if account else sorted(forgotten.accounts)
    return next(
        (forgotten.contact(each, number) for each in accounts if forgotten.is_contact(each, number)), number
    )


def _personal(forgotten: Forgotten, text: str) -> str | None:
    """What becomes of a personal text of theirs: the pseudonym of an address, nothing of others, unless it
    was sent to many."""
    if forgotten.is_address(text):
        return forgotten.address(text)
    return text if text.endswith(f"@{DOMAIN}") or forgotten.is_title(text) else None


def _kept(forgotten: Forgotten, account: str | None, text: str) -> str:
    """What becomes of a text of theirs that is not personal: of a link the page stays, a key has the
    contact's pseudonym."""
    link = LINK.match(text)
    text = forgotten.text("".join(link.groups()) if link else text, account)
    return _NUMBER.sub(lambda found: _digits(found[0], _contact(forgotten, account, int(found[0]))), text)


def _digits(digits: str, number: int) -> str:
    return digits if number == int(digits) else str(number)  # others as they are written


def _details(forgotten: Forgotten, text: str) -> str | None:
    """Those of a timeline's entry; without any a load has none."""
    kept = details(json.loads(text), forgotten)
    return msgspec.json.encode(kept).decode() if kept else None


def _write(connection: duckdb.DuckDBPyConnection, target: Path, rewritten: Mapping[str, str]) -> None:
    """The current database as the file `target`, with the rows of some tables `rewritten`."""
    own, here = (
        quoted(str(value(connection, "select current_database()"))),
        "database_name = current_database()",
    )
    version = str(
        value(connection, f"select tags['storage_version'] from duckdb_databases() where {here}")
    ).rstrip("+")
    rows(connection, f"attach {literal(str(target))} as rewritten (storage_version {literal(version)})")
    rows(connection, f"copy from database {own} to rewritten (schema)")
    for (table,) in rows(
        connection,
        f"select schema_name || '.' || table_name from duckdb_tables() where {here} and not temporary",
    ):
        rows(
            connection,
            f"insert into rewritten.{qualified(table)} {rewritten.get(table, f'from {qualified(table)}')}",
        )
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
