"""What the warehouse knows of one person: rows about them in every table, and texts of other rows that name them.

A person is their addresses and contacts. Rows are about them by a contact's id, an address in a personal column, or a call's parameters.
Not here: how it is shown (`pipelines.commands.person`).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from marketing_api.operations import ALL
from warehouse.dbt_project import OWN
from warehouse.forgetting import OF_CONTACTS
from warehouse.masking import is_personal
from warehouse.own_models import own_columns
from warehouse.schema import SCHEMAS, kinds_of
from warehouse.sql import literal, qualified, query, quoted, records, rows, value
from warehouse.tables import TABLES

#: Where contacts stand with their addresses: as they are now, as they were, and when they were requested.
_CONTACTS = ("source.contacts", "history.contacts", "sync.contact_coverage")
_ORIGINS = {
    "history": "kept from night to night by this program",
    "marts": "worked out by this program from the tables of the service",
    OWN: "worked out by a model of your own",
    "sync": "written down by this program while it read and sent",
}
#: What every address has, however it is escaped: much faster to look for than a pattern.
MAY_NAME = "(contains({0}, '@') or contains({0}, '40'))"
#: Letters and digits of an address before the @ that few texts have by chance.
_TELLING = 4
#: Characters of a text that are shown on each side of the address that stands in it.
_AROUND = 80


@dataclass(frozen=True)
class Person:
    """`addresses` in lower case; `contacts` as (account, id)."""

    addresses: tuple[str, ...]
    contacts: tuple[tuple[str, int], ...] = ()

    def likely(self, *, with_ids: bool = False) -> str:
        """A pattern (RE2) that every text fits which names them, and few others: by an address, escaped or not, or `with_ids` by a
        contact's id."""
        split = (address.rpartition("@") for address in self.addresses)
        parts = [(_plain_part(local), _plain_part(domain)) for local, at, domain in split if at]  # linear in a text, whoever wrote it
        addresses = [local if len(local) >= _TELLING else max(local, domain, key=len) for local, domain in parts]
        numbers = "|".join(str(number) for _, number in self.contacts)
        ids = [rf"contact.{{0,6}}\b(?:{numbers})\b"] if with_ids and numbers else []
        return f"(?i)(?:{'|'.join([*addresses, *ids])})" if addresses or ids else r"[^\s\S]"


@dataclass(frozen=True)
class Section:
    """Rows of one table. `origin`: where they come from; `is_about`: False for texts of other rows that name the person."""

    table: str
    description: str
    origin: str
    is_about: bool
    rows: list[dict[str, Any]] = field(repr=False)


def _plain_part(text: str) -> str:
    """The longest part of it that no escaping changes."""
    return str(max(re.findall(r"[a-z0-9]*", text, re.IGNORECASE), key=len))


def find_person(connection: duckdb.DuckDBPyConnection, account: str | None, address: str | None, contact_id: int | None) -> Person:
    """With all contacts that have or had the address (of a contact: one of its addresses), and all addresses that these have or had."""
    wanted = address.strip().lower() if address else None
    there = kinds_of(connection)
    tables = " union all ".join(f"select account, contact_id, email from {table}" for table in _CONTACTS if table in there)
    sql = query("person").format(tables=tables)
    found = rows(connection, sql, {"account": account, "contact_id": contact_id, "address": wanted})
    addresses = {email for *_, email in found if email} | ({wanted} if wanted else set())
    return Person(tuple(sorted(addresses)), tuple(sorted({(name, number) for name, number, _ in found})))


def known_of(connection: duckdb.DuckDBPyConnection, person: Person) -> Iterator[Section]:
    """What every table has of them: first rows that are about them, then texts that name them."""
    own = own_columns(connection)
    mentions = []
    for schema, name, columns in tables_of(connection):
        if schema == "staging":  # on its way to the marts
            continue
        table = f"{schema}.{name}"
        personal = {column for column in columns if is_personal(schema, name, column, own)}
        about = about_of(person, table, columns, personal)
        if found := records(connection, f"select * from {qualified(table)} as t where {about}"):
            yield Section(table, _comment(connection, schema, name), _origin(schema, name), is_about=True, rows=list(map(_filled, found)))
        texts = [column for column, sql_type in columns.items() if sql_type in ("VARCHAR", "JSON", "VARCHAR[]")]
        if quotes := _mentions(connection, person, table, columns, texts, about):
            mentions.append(Section(table, _comment(connection, schema, name), _origin(schema, name), is_about=False, rows=quotes))
    yield from mentions


def tables_of(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Of all schemas, in their order, contacts first. Views hold nothing that the tables do not."""
    for schema, name, columns in rows(connection, query("tables"), {"schemas": [*SCHEMAS, OWN]}):
        yield schema, name, dict(columns)


def about_of(person: Person, table: str, columns: Mapping[str, str], personal: Collection[str]) -> str:
    """The condition that a row `t` of the table is about the person. `columns`: their types by name."""
    addresses = f"({', '.join(map(literal, person.addresses)) or 'null'})"
    terms = [
        f"lower(trim(t.{quoted(column)})) in {addresses}" for column, kind in columns.items() if kind == "VARCHAR" and column in personal
    ]
    if "contact_id" in columns:
        terms += [
            f"(t.contact_id = {number}" + (f" and t.account = {literal(account)})" if "account" in columns else ")")
            for account, number in person.contacts
        ]
    if table == "sync.requests":
        ids = ", ".join(f"({literal(account)}, '{number}')" for account, number in person.contacts) or "(null, null)"
        names = ", ".join(map(literal, sorted(OF_CONTACTS)))
        params = "(case when json_valid(t.params) then t.params end)"  # a published copy may have its hash
        contact_id = f"coalesce({', '.join(f'{params} ->> {literal(name)}' for name in ('id', 'contactid', 'contact_id'))})"
        terms.append(f"lower({params} ->> 'email') in {addresses}")
        terms.append(f"(t.operation in ({names}) and (t.account, {contact_id}) in ({ids}))")
    return f"coalesce({' or '.join(terms) or 'false'}, false)"


def _mentions(
    connection: duckdb.DuckDBPyConnection, person: Person, table: str, columns: dict[str, str], texts: Sequence[str], about: str
) -> list[dict[str, Any]]:
    """Where other rows name them: the column, when the row changed last, and what stands around the address. The rest of such a row
    may be about others, and is not shown."""
    if not person.addresses:
        return []
    found = []
    pattern = "|".join(re.escape(address).replace("@", "(?:@|%40|%2540)") for address in person.addresses)
    whole = rf"(?is)(^|[^\w.+-])(?:{pattern})($|[^\w.-]|\.($|\W))"
    shown = rf"(?is)(?:^|.{{0,{_AROUND}}}[^\w.+-])(?:{pattern})(?:$|[^\w-].{{0,{_AROUND}}})"
    when = next((quoted(name) for name in ("_changed_at", "requested_at", "planned_at", "started_at") if name in columns), "null")
    account = "account" if "account" in columns else "null"
    for column in texts:
        text = f"{quoted(column)}::varchar"
        terms = {"account": account, "column": literal(column), "when": when, "text": text, "table": qualified(table), "about": about}
        sql = query("mentions").format(**terms, may_name=MAY_NAME.format(text))
        found += list(map(_filled, records(connection, sql, {"likely": person.likely(), "shown": shown, "whole": whole})))
    return found


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in row.items() if each is not None}


def _comment(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> str:
    """What the table says of itself."""
    sql = "select comment from duckdb_tables() where database_name = current_database() and schema_name = ? and table_name = ?"
    return value(connection, sql, [schema, name]) or ""


def _origin(schema: str, name: str) -> str:
    if schema == "source" and name in TABLES:
        operations = [operation.name for operation in ALL.values() if TABLES[name].record in operation.records]
        return f"responses of the service to {' and '.join(operations)}"
    return _ORIGINS.get(schema, "")
