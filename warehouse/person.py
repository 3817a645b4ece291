"""What the warehouse knows of one person: rows about them in every table, and texts of other rows that name
them.

A person is their addresses and contacts. Rows are about them by a contact's id, an address in a personal
column, or a call's parameters. Not here: how it is shown (`pipelines.commands.person`)."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import duckdb

from marketing_api.address import normal_form
from marketing_api.operations import ALL
from warehouse.forgetting import IDS, OF_CONTACTS, Forgotten
from warehouse.masking import personal_of
from warehouse.mentions import LEAST_DIGITS, MAY_NAME
from warehouse.schema import SCHEMAS, kinds_of
from warehouse.sql import (
    NORMAL_FORM,
    add_normal_form,
    literal,
    qualified,
    query,
    quoted,
    records,
    rows,
    value,
)
from warehouse.tables import TABLES

#: Where contacts stand with their addresses: as they are now, as they were, and when they were requested.
_CONTACTS = ("source.contacts", "history.contacts", "sync.contact_coverage")
_ORIGINS = {
    "history": "kept from night to night by this program",
    "marts": "worked out by this program from the tables of the service",
    "sync": "written down by this program while it read and sent",
}
#: Columns that say when a row changed last.
_CHANGED = ("_changed_at", "requested_at", "planned_at", "started_at")
#: Types that hold texts.
TEXTS = ("VARCHAR", "JSON", "VARCHAR[]")
#: Characters of a text that are shown on each side of the address that stands in it.
_AROUND = 80


@dataclass(frozen=True)
class Person:
    """`addresses` in normal form; `contacts` as (account, id)."""

    addresses: tuple[str, ...]
    contacts: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Section:
    """Rows of one table. `origin`: where they come from; `is_about`: False for texts of other rows that name
    the person."""

    table: str
    description: str
    origin: str
    is_about: bool
    rows: list[dict[str, Any]] = field(repr=False)


def find_person(
    connection: duckdb.DuckDBPyConnection, account: str | None, address: str | None, contact_id: int | None
) -> Person:
    """With all contacts that have or had the address (of a contact: one of its addresses), and all addresses
    that these have or had."""
    wanted, there = normal_form(address) if address else None, kinds_of(connection)
    add_normal_form(connection)
    shown = f"account, contact_id, {NORMAL_FORM.format('email')} as email"
    tables = " union all ".join(f"select {shown} from {table}" for table in _CONTACTS if table in there)
    found = rows(
        connection,
        query("person").format(tables=tables),
        {"account": account, "contact_id": contact_id, "address": wanted},
    )
    addresses = {email for *_, email in found if email} | ({wanted} if wanted else set())
    return Person(tuple(sorted(addresses)), tuple(sorted({(name, number) for name, number, _ in found})))


def known_of(connection: duckdb.DuckDBPyConnection, person: Person) -> Iterator[Section]:
    """What every table has of them: first rows that are about them, then texts that name them."""
    mentions = []
    named = Forgotten(b"of this page").including(person.addresses, person.contacts)
    add_normal_form(connection)
    for table, columns in tables_of(connection):
        if table.startswith("staging."):  # on its way to the marts
            continue
        about = about_of(person, table, columns, personal_of(table, columns))
        section = partial(Section, table, _comment(connection, table), _origin(table))
        if found := records(connection, f"select * from {qualified(table)} as t where {about}"):
            yield section(is_about=True, rows=list(map(_filled, found)))
        if quotes := list(_mentions(connection, named, table, columns, about)):
            mentions.append(section(is_about=False, rows=quotes))
    yield from mentions


def tables_of(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, dict[str, str]]]:
    """Of all schemas, in their order, contacts first, with the types of their columns. Views hold nothing
    that the tables do not."""
    for schema, name, columns in rows(connection, query("tables"), {"schemas": list(SCHEMAS)}):
        yield f"{schema}.{name}", dict(columns)


def about_of(person: Person, table: str, columns: Mapping[str, str], personal: Collection[str]) -> str:
    """The condition that a row `t` of the table is about the person. `columns`: their types by name. Takes
    `add_normal_form`."""
    addresses = f"({', '.join(map(literal, person.addresses)) or 'null'})"
    terms = []
    for column, kind in columns.items():
        if kind == "VARCHAR" and column in personal:
            text = f"t.{quoted(column)}"
            terms.append(f"(contains({text}, '@') and {NORMAL_FORM.format(text)} in {addresses})")
    if "contact_id" in columns:
        for account, number in person.contacts:
            of_account = f" and t.account = {literal(account)}" if "account" in columns else ""
            terms.append(f"(t.contact_id = {number}{of_account})")
    terms += _about_calls(person, addresses) if table == "sync.requests" else ()
    return f"coalesce({' or '.join(terms) or 'false'}, false)"


def _about_calls(person: Person, addresses: str) -> Iterator[str]:
    """Conditions that a call's parameters name them."""
    ids = ", ".join(f"({literal(account)}, '{number}')" for account, number in person.contacts)
    names = ", ".join(map(literal, sorted(OF_CONTACTS)))
    params = "(case when json_valid(t.params) then t.params end)"  # a published copy may have its hash
    spelled = ", ".join(f"{params} ->> {literal(name)}" for name in IDS)
    email = NORMAL_FORM.format(f"({params} ->> 'email')")
    yield f"{email} in {addresses}"
    yield f"(t.operation in ({names}) and (t.account, coalesce({spelled})) in ({ids or '(null, null)'}))"


def may_be_named(text: str, forgotten: Forgotten) -> str:
    """The condition that a text may have something that `Forgotten.found` finds: what is faster to find out
    comes first."""
    may = " or ".join(f"contains({text}, {literal(each)})" for each in MAY_NAME)
    if forgotten.numbers:
        may += f" or regexp_matches({text}, '{'[0-9].*' * LEAST_DIGITS}')"
    likely = f" and regexp_matches({text}, {literal(forgotten.likely)})" if forgotten.likely else ""
    return f"({may}){likely}"


def _mentions(
    connection: duckdb.DuckDBPyConnection,
    named: Forgotten,
    table: str,
    columns: Mapping[str, str],
    about: str,
) -> Iterator[dict[str, Any]]:
    """Where other rows name them: the column, when the row changed last, and what stands around the first
    such place. The rest of such a row may be about others, and is not shown."""
    terms = {
        "account": "account" if "account" in columns else "null",
        "when": next((quoted(name) for name in _CHANGED if name in columns), "null"),
        "table": qualified(table),
        "about": about,
    }
    for column in (column for column, kind in columns.items() if kind in TEXTS):
        text = f"{quoted(column)}::varchar"
        likely = may_be_named(text, named)
        sql = query("mentions").format(column=literal(column), text=text, likely=likely, **terms)
        for row in records(connection, sql):
            raw = row["text"].encode()
            for begin, end, _ in islice(named.found(raw, row["account"]), 1):
                around = raw[max(0, begin - _AROUND) : end + _AROUND].decode("utf-8", "ignore")
                yield _filled(row | {"text": around})


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in row.items() if each is not None}


def _comment(connection: duckdb.DuckDBPyConnection, table: str) -> str:
    """What the table says of itself."""
    where = "database_name = current_database() and schema_name || '.' || table_name = ?"
    return value(connection, f"select comment from duckdb_tables() where {where}", [table]) or ""


def _origin(table: str) -> str:
    schema, name = table.split(".", 1)
    if schema == "source" and name in TABLES:
        record = TABLES[name].record
        operations = [operation.name for operation in ALL.values() if record in operation.records]
        return f"responses of the service to {' and '.join(operations)}"
    return _ORIGINS.get(schema, "")
