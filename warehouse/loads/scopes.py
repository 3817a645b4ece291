"""Which scopes a load has read (a list's contacts, a range of days), and what each proves: only then may missing rows count as deleted.

Not here: what is done with a scope (`listing`).
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from warehouse.loads.target import Target
from warehouse.sql import literal, quoted
from warehouse.table import Snapshot, Table, Window

#: The scope of a table that is listed for the whole account.
ALL = "all"


@dataclass
class Scope:
    """The rows whose scope columns have these `values` (or whose day lies between them; None: of which nothing is ever removed).

    `is_read`: every page came, and no answer contradicts itself. `doubts`: entries that could not be understood, or were not told.
    """

    number: int
    values: tuple[Any, ...] | None
    label: str
    is_read: bool
    responses: set[int] = field(default_factory=set)
    doubts: int = 0
    reason: str | None = None

    @property
    def proves_absence(self) -> bool:
        """Whether a row that was not received is gone. An entry that could not be understood may be any row."""
        return self.values is not None and self.is_read and not self.doubts

    def take(self, target: Target, response: int) -> None:
        """One of its answers, and what speaks against it."""
        self.responses.add(response)
        self.doubts += target.doubts[response]
        if flaw := target.flaws.get(response):
            self.is_read, self.reason = False, flaw


def scopes_of(target: Target, asked_scope: Mapping[str, Any], is_complete: bool) -> list[Scope]:
    """The scopes that the load's listing answers are about; of a load without answers, those that it names."""
    load = target.table.load
    if not isinstance(load, Snapshot):
        return [_range_of(target, load.column if isinstance(load, Window) else "", asked_scope, is_complete)]
    columns = tuple(load.scope)
    found: dict[tuple[Any, ...], Scope] = {}
    for asked in target.asked:
        if not target.is_listing(asked):
            continue
        values = _from_params(target.table, load, asked.params)
        for each in [values] if values is not None else _from_rows(target, columns, asked.index):
            scope = found.setdefault(each, Scope(len(found), each, label_of(columns, each), is_complete or load.is_whole))
            scope.take(target, asked.index)
    if not target.asked:
        for each in _named(target.table, columns, asked_scope):
            found[each] = Scope(len(found), each, label_of(columns, each), is_complete)
    return list(found.values())


def _range_of(target: Target, column: str, asked_scope: Mapping[str, Any], is_complete: bool) -> Scope:
    days = days_of(asked_scope)
    reason = None if is_complete else str(asked_scope.get("reason", "not every page could be had"))
    scope = Scope(0, days if column else None, label_of_days(days), is_complete, reason=reason)
    for asked in target.asked:
        scope.take(target, asked.index)
    return scope


def days_of(scope: Mapping[str, Any]) -> tuple[dt.date, dt.date] | None:
    """First and last day of the load's scope; None when it names no range."""
    if "from_on" not in scope or "to_on" not in scope:
        return None
    return dt.date.fromisoformat(str(scope["from_on"])), dt.date.fromisoformat(str(scope["to_on"]))


def label_of_days(days: tuple[dt.date, dt.date] | None) -> str:
    """How `sync.coverage` calls the range."""
    return f"{days[0]}..{days[1]}" if days else ALL


def label_of(columns: Iterable[str], values: Iterable[Any]) -> str:
    """How `sync.coverage` calls the scope."""
    return ", ".join(f"{column}={value}" for column, value in zip(columns, values, strict=True)) or ALL


def make_scopes(target: Target, scopes: Sequence[Scope]) -> None:
    """Keep the scopes that rows may be in as the relation `scopes`, for `these` and `in_scope`."""
    scopes = [scope for scope in scopes if scope.values is not None]
    load = target.table.load
    types = [target.table.column(name).arrow_type for name in load.scope] if isinstance(load, Snapshot) else [pa.date32(), pa.date32()]
    names = list(load.scope) if isinstance(load, Snapshot) else ["first", "last"]
    arrays = [pa.array([scope.values[index] for scope in scopes if scope.values], type_) for index, type_ in enumerate(types)]
    target.connection.register(
        "arrow_scopes", pa.table([*arrays, pa.array([s.number for s in scopes], pa.int64())], names=[*names, "_scope"])
    )
    target.make("scopes", "from arrow_scopes")
    target.connection.unregister("arrow_scopes")


def these(target: Target, scopes: Sequence[Scope]) -> str:
    """The relation of these scopes."""
    numbers = ", ".join(str(scope.number) for scope in scopes)
    return f"(from {target.temp('scopes')} where _scope in ({numbers or 'null'}))"


def in_scope(target: Target, alias: str) -> str:
    """The condition that a row of `alias` is in scope `x`; text is compared as addresses are, days are those of the account."""
    load = target.table.load
    if isinstance(load, Window):
        day = f"{alias}.{quoted(load.column)}"
        if target.table.column(load.column).sql_type == "TIMESTAMPTZ":
            day = f"({day} at time zone {literal(target.zone)})::date"
        return f"{day} between x.first and x.last"
    terms = [f"{_comparable(target, alias, name)} = x.{quoted(name)}" for name in load.scope] if isinstance(load, Snapshot) else []
    return " and ".join(terms) or "true"


def _comparable(target: Target, alias: str, name: str) -> str:
    column = f"{alias}.{quoted(name)}"
    return f"lower(trim({column}))" if target.table.column(name).sql_type == "VARCHAR" else column


def _from_params(table: Table, load: Snapshot, params: Mapping[str, str]) -> tuple[Any, ...] | None:
    if not all(name in params for name in load.scope.values()):
        return None
    return _typed(table, tuple(load.scope), [params[name] for name in load.scope.values()])


def _from_rows(target: Target, columns: tuple[str, ...], response: int) -> Iterator[tuple[Any, ...]]:
    """An answer to a wider question that shows a row of a scope shows all of that scope (lists with their fields)."""
    names = ", ".join(columns)
    for row in target.rows(f"select distinct {names} from {target.source} where _answer = {response} order by all"):
        if (values := _typed(target.table, columns, row)) is not None:
            yield values


def _named(table: Table, columns: tuple[str, ...], scope: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    if not all(column in scope for column in columns):
        return
    many = [value if isinstance(value, list | tuple) else [value] for value in (scope[column] for column in columns)]
    for values in itertools.product(*many):
        if (typed := _typed(table, columns, values)) is not None:
            yield typed


def _typed(table: Table, columns: tuple[str, ...], values: Iterable[Any]) -> tuple[Any, ...] | None:
    """As the columns hold them; text in lower case, since addresses are compared so. None when a value is no number."""
    try:
        return tuple(
            int(value) if table.column(column).sql_type == "BIGINT" else str(value).strip().lower()
            for column, value in zip(columns, values, strict=True)
        )
    except ValueError:
        return None
