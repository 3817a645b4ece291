"""Finds, counts and deletes the rows about a person: rows of every table with one of their contact
ids or addresses.

Not here: who the command asks for (`marketing_sync.commands.person`), the other places of a home
(`upkeep.erasing`)."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import duckdb

from marketing_api.address import normal_form
from marketing_api.records.contacts import CONTACT_ID_NAMES, CONTACT_OPERATIONS
from warehouse.forgetting import Person
from warehouse.masking import personal_of
from warehouse.schema import SCHEMAS, kinds_of
from warehouse.sql import (
    NORMAL_FORM,
    add_normal_form,
    fetch_records,
    fetch_rows,
    fetch_value,
    load_query,
    quote_name,
    quote_relation,
    quote_text,
    transaction,
)
from warehouse.tables import EMAIL, EMAIL_NORMALIZED

#: Tables with addresses of contacts: current ones, earlier ones, and those in requests.
_CONTACTS = ("source.contacts", "history.contacts", "sync.contact_coverage")
#: Columns that say which person a row is about; other personal columns may name another person.
_ADDRESSES = (EMAIL, EMAIL_NORMALIZED)


def find_person(
    connection: duckdb.DuckDBPyConnection,
    account: str | None,
    address: str | None,
    contact_id: int | None,
) -> Person:
    """The person with this address or contact id: all contacts that have or had one of their
    addresses, and all addresses of these contacts. `account`: search only this one."""
    email = normal_form(address) if address else None
    there = kinds_of(connection)
    add_normal_form(connection)
    columns = f"account, contact_id, {NORMAL_FORM.format('email')} as email"
    tables = " union all ".join(
        f"select {columns} from {table}" for table in _CONTACTS if table in there
    )
    found = fetch_rows(
        connection,
        load_query("person").format(tables=tables),
        {"account": account, "contact_id": contact_id, "address": email},
    )
    addresses = {email for *_, email in found if email} | ({email} if email else set())
    return Person(
        tuple(sorted(addresses)), tuple(sorted({(name, number) for name, number, _ in found}))
    )


def rows_about(
    connection: duckdb.DuckDBPyConnection, person: Person, account: str | None = None
) -> dict[str, list[dict[str, Any]]]:
    """The rows about the person by table, without columns that are empty. `account`: only its
    rows."""
    add_normal_form(connection)
    found = {}
    for table, columns in tables_of(connection):
        if table.startswith("staging."):  # staging views only pass rows on
            continue
        about = condition_about([person], table, columns)
        if account and "account" in columns:
            about += f" and t.account = {quote_text(account)}"
        listed = fetch_records(
            connection, f"select * from {quote_relation(table)} as t where {about}"
        )
        if listed:
            found[table] = [
                {name: value for name, value in row.items() if value is not None} for row in listed
            ]
    return found


def count_rows_about(
    connection: duckdb.DuckDBPyConnection, people: Collection[Person]
) -> dict[str, int]:
    """The number of rows about these people in each table; tables without any are left out."""
    add_normal_form(connection)
    counts = {}
    for table, columns in tables_of(connection):
        about = condition_about(people, table, columns)
        count = fetch_value(
            connection, f"select count(*) from {quote_relation(table)} as t where {about}"
        )
        if count:
            counts[table] = int(count)
    return counts


def delete_rows_about(
    connection: duckdb.DuckDBPyConnection, people: Collection[Person]
) -> dict[str, int]:
    """Delete the rows about these people, and remove their addresses from rows about others.
    Returns what `count_rows_about` returned before."""
    counts = count_rows_about(connection, people)
    for table, columns in tables_of(connection):
        name = quote_relation(table)
        with transaction(connection):
            if table in counts:
                fetch_rows(
                    connection,
                    f"delete from {name} as t where {condition_about(people, table, columns)}",
                )
            for column, is_named in columns_beside(people, table, columns):
                fetch_rows(
                    connection,
                    f"update {name} as t set {quote_name(column)} = null where {is_named}",
                )
    return counts


def tables_of(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, dict[str, str]]]:
    """The tables of all schemas with the types of their columns, contacts first. Views hold nothing
    that tables don't."""
    for schema, name, columns in fetch_rows(
        connection, load_query("tables"), {"schemas": list(SCHEMAS)}
    ):
        yield f"{schema}.{name}", dict(columns)


def condition_about(people: Collection[Person], table: str, columns: Mapping[str, str]) -> str:
    """The SQL condition that a row `t` of the table is about one of these people. `columns`: their
    types by name. Takes `add_normal_form`."""
    addresses = _addresses_of(people)
    numbers = sorted({id_ for person in people for _, id_ in person.contacts})
    terms = [_has_address(name, addresses) for name in _ADDRESSES if columns.get(name) == "VARCHAR"]
    if "contact_id" in columns:
        terms.append(
            f"(t.account, t.contact_id) in ({_contacts_of(people)})"
            if "account" in columns
            else f"t.contact_id in ({_sql_list(numbers)})"
        )
    if table == "sync.requests":
        terms += _terms_of_requests(people)
    if table == "sync.rejected_records":
        terms += _terms_of_rejected_records(people)
    return f"coalesce({' or '.join(terms) or 'false'}, false)"


def _terms_of_requests(people: Collection[Person]) -> Iterator[str]:
    """SQL conditions that the parameters of a request name one of these people."""
    # a published copy may have its hash
    params = "(case when json_valid(t.params) then t.params end)"
    email = NORMAL_FORM.format(f"({params} ->> 'email')")
    yield f"{email} in ({_sql_list(_addresses_of(people))})"
    spelled = ", ".join(f"{params} ->> {quote_text(name)}" for name in CONTACT_ID_NAMES)
    ids = f"(t.account, try_cast(coalesce({spelled}) as bigint)) in ({_contacts_of(people)})"
    yield f"(t.operation in ({_sql_list(sorted(CONTACT_OPERATIONS))}) and {ids})"


def _terms_of_rejected_records(people: Collection[Person]) -> Iterator[str]:
    """SQL conditions that an entry that could not be read, whose members are unknown, has one of
    their addresses or ids."""
    for address in _addresses_of(people):
        yield f"contains(lower(t.raw::varchar), {quote_text(address)})"
    for account, number in {contact for person in people for contact in person.contacts}:
        word = quote_text(rf"\b{number}\b")
        yield f"(t.account = {quote_text(account)} and regexp_matches(t.raw::varchar, {word}))"


def columns_beside(
    people: Collection[Person], table: str, columns: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Personal columns that may hold one of their addresses in a row about another person, like the
    sender of a campaign; each with the SQL condition for that."""
    for name in personal_of(table, columns):
        if columns[name] == "VARCHAR" and name not in _ADDRESSES:
            yield name, _has_address(name, _addresses_of(people))


def _has_address(column: str, addresses: Collection[str]) -> str:
    text = f"t.{quote_name(column)}"
    return f"(contains({text}, '@') and {NORMAL_FORM.format(text)} in ({_sql_list(addresses)}))"


def _addresses_of(people: Collection[Person]) -> list[str]:
    return sorted({address for person in people for address in person.addresses})


def _contacts_of(people: Collection[Person]) -> str:
    """Their contacts as an SQL list."""
    contacts = [contact for person in people for contact in person.contacts]
    return (
        ", ".join(f"({quote_text(account)}, {number})" for account, number in contacts)
        or "(null, null)"
    )


def _sql_list(values: Collection[str | int]) -> str:
    """As a list of SQL."""
    return (
        ", ".join(quote_text(value) if isinstance(value, str) else str(value) for value in values)
        or "null"
    )
