"""Scopes: which rows a listing or a range of days is about, in Python, in SQL, and by name in the
coverage.

Not here: what is done with them (`listing`)."""

import contextlib
import datetime as dt
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from marketing_api.address import normal_form
from warehouse.arrow_types import arrow_type
from warehouse.loads.load import Load
from warehouse.loads.staging import ResponseHead
from warehouse.loads.target import Target
from warehouse.sql import quote_name, quote_text
from warehouse.tables import EMAIL, EMAIL_NORMALIZED, Snapshot, Table, Window

#: The scope of a table that is listed for the whole account.
ALL = "all"


@dataclass
class Scope:
    """The rows whose scope columns have these `values`, or whose day lies between them. None:
    nothing is ever removed from it.

    `is_read`: every page came, and no response contradicts itself. `unreadable`: entries that could
    not be read, or were left open. `counts_nothing`: the service states a count of 0. `absent`:
    existing rows that its listing does not have; `absent_within`: rows of other tables that would
    be deleted with them."""

    number: int
    values: tuple[Any, ...] | None
    label: str
    is_read: bool
    reason: str | None = None
    responses: set[int] = field(default_factory=set)
    unreadable: int = 0
    is_flawed: bool = False
    counts_nothing: bool = False
    is_refused: bool = False
    absent: int = 0
    absent_within: int = 0
    live: int = 0
    received: int = 0

    @property
    def proves_absence(self) -> bool:
        """Whether a row that was not received is gone. An unreadable entry may be any row."""
        return self.values is not None and self.is_read and not self.unreadable

    def take_response(self, head: ResponseHead, unreadable: int) -> None:
        """Add one of its responses, with the reason if it is not believed."""
        self.responses.add(head.index)
        self.unreadable += unreadable
        self.counts_nothing |= head.counts_nothing
        if head.flaw:
            self.is_read = False
            self.is_flawed = True
            self.reason = head.flaw


def scopes_of(target: Target, load: Load) -> list[Scope]:
    """The scopes of the load's listing responses; for a load without responses, the scopes that it
    names. The temporary relation `scopes` has them, for `scopes_condition` and `in_scope`."""
    found = (
        _of_range(target, load)
        if isinstance(target.table.load, Window)
        else _of_listing(target, load)
    )
    _make_table(target, found)
    return found


def _of_range(target: Target, load: Load) -> list[Scope]:
    days = days_of(load.scope)
    reason = None if load.is_complete else str(load.scope.get("reason", "pages are missing"))
    values = days if target.table.load.column else None
    scope = Scope(0, values, label_of_days(days), load.is_complete, reason)
    for head in target.responses:
        scope.take_response(head, target.unreadable[head.index])
    return [scope]


def _of_listing(target: Target, load: Load) -> list[Scope]:
    named = target.table.load.scope
    is_read = load.is_complete or target.table.load.is_whole
    reason = None if is_read else load.scope.get("reason")
    found: dict[tuple[Any, ...], Scope] = {}
    for head in filter(target.is_listing, target.responses):
        for values in _listed_by(target, head):
            label = label_of(named, values)
            scope = found.setdefault(values, Scope(len(found), values, label, is_read, reason))
            scope.take_response(head, target.unreadable[head.index])
    if target.responses or not named.keys() <= load.scope.keys():
        return list(found.values())
    many = [load.scope[column] for column in named]
    every = itertools.product(
        *([value] if isinstance(value, str | int) else value for value in many)
    )
    gone = dict.fromkeys(_type_rows(target.table, every))
    return [
        Scope(number, values, label_of(named, values), load.is_complete)
        for number, values in enumerate(gone)
    ]


def _listed_by(target: Target, head: ResponseHead) -> list[tuple[Any, ...]]:
    """The scope values of a response: its parameters. If a response to a wider call shows a row of
    a scope, it shows all of that scope (lists with their fields)."""
    load = target.table.load
    requested = [head.params[wire] for wire in load.scope.values() if wire in head.params]
    if len(requested) == len(load.scope) and (typed := list(_type_rows(target.table, [requested]))):
        return typed
    columns = ", ".join(load.scope)
    sql = (
        f"select distinct {columns} from {target.source} where _response = {head.index} order by "
        "all"
    )
    return list(_type_rows(target.table, target.run_sql(sql)))


def _type_rows(table: Table, rows: Iterable[Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    """As rows of the scope hold them: addresses in normal form. Values that are not numbers, in
    columns of numbers, are left out."""
    is_number = [table.find_column(column).sql_type == "BIGINT" for column in table.load.scope]
    for row in rows:
        with contextlib.suppress(ValueError):
            yield tuple(
                int(value) if number else normal_form(str(value))
                for number, value in zip(is_number, row, strict=True)
            )


def days_of(scope: Mapping[str, Any]) -> tuple[dt.date, dt.date] | None:
    """First and last day of the load's scope; None if it names no range."""
    if "from_on" not in scope or "to_on" not in scope:
        return None
    return dt.date.fromisoformat(str(scope["from_on"])), dt.date.fromisoformat(str(scope["to_on"]))


def label_of_days(days: tuple[dt.date, dt.date] | None) -> str:
    return f"{days[0]}..{days[1]}" if days else ALL


def label_of(columns: Iterable[str], values: Iterable[Any]) -> str:
    """The scope's name in `sync.coverage`."""
    return (
        ", ".join(f"{column}={value}" for column, value in zip(columns, values, strict=True)) or ALL
    )


def _make_table(target: Target, scopes: Sequence[Scope]) -> None:
    types = {"first": pa.date32(), "last": pa.date32()}
    if isinstance(target.table.load, Snapshot):
        types = {
            name: arrow_type(target.table.find_column(name)) for name in target.table.load.scope
        }
    schema = pa.schema([*types.items(), ("_scope", pa.int64())])
    named = [
        dict(zip(schema.names, (*scope.values, scope.number), strict=True))
        for scope in scopes
        if scope.values is not None
    ]
    target.run_sql(
        f"create or replace temp table scopes_{target.table.name} as from arrow_scopes",
        arrow_scopes=pa.Table.from_pylist(named, schema),
    )


def scopes_condition(target: Target, scopes: Sequence[Scope]) -> str:
    numbers = ", ".join(str(scope.number) for scope in scopes)
    return f"(from {target.temporary_name('scopes')} where _scope in ({numbers or 'null'}))"


def in_scope(table: Table, alias: str, zone: str = "getvariable('zone')") -> str:
    """The condition that a row of `alias` is in scope `x`. Addresses are compared by their normal
    forms; days are the account's: `zone` is SQL."""
    load = table.load
    if isinstance(load, Window):
        day = f"{alias}.{quote_name(load.column)}"
        if table.find_column(load.column).sql_type == "TIMESTAMPTZ":
            day = f"({day} at time zone {zone})::date"
        return f"{day} between x.first and x.last"
    columns = {name: EMAIL_NORMALIZED if name == EMAIL else name for name in load.scope}
    terms = [
        f"{alias}.{quote_name(column)} = x.{quote_name(name)}" for name, column in columns.items()
    ]
    return " and ".join(terms) or "true"


def known_keys(table: Table, params: Mapping[str, Any], zone: str) -> str:
    """SQL of the rows of `$account` that a listing with these parameters should show: keys as in
    `parsing.item_keys`."""
    if isinstance(table.load, Window):
        terms = {"first": ("from", "date"), "last": ("to", "date")}
    else:
        terms = {
            name: (wire, table.find_column(name).sql_type)
            for name, wire in table.load.scope.items()
        }
    scope = [
        f"{quote_text(str(params[wire]))}::{type_} as {quote_name(name)}"
        for name, (wire, type_) in terms.items()
    ]
    key = ", ".join(quote_name(name) for name in table.key if name not in table.load.scope)
    there = f"account = $account and {table.is_there} and {in_scope(table, 't', quote_text(zone))}"
    return (
        f"select concat_ws('/', {key}) from {table.qualified} t, (select "
        f"{', '.join(scope) or '1'}) x where {there}"
    )
