"""Which scopes of a snapshot table a load has read, and whether all of each: only then may missing rows count as deleted.

Belongs here: values. Not here: what is done with a scope (`snapshot`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from warehouse.loads.target import Target
from warehouse.table import Snapshot, Table

#: The scope of a table that is listed for the whole account.
ALL = "all"


@dataclass
class Scope:
    """The rows whose scope columns have these `values`. `is_read`: every page came; `unread` entries could not be understood."""

    number: int
    values: tuple[Any, ...]
    label: str
    is_read: bool
    unread: int = 0
    reason: str | None = None

    @property
    def proves_absence(self) -> bool:
        """Whether a row that was not received is gone. An entry that could not be understood may be any row."""
        return self.is_read and not self.unread


def scopes_of(target: Target, load: Snapshot, asked_scope: Mapping[str, Any], is_complete: bool) -> list[Scope]:
    """The scopes that the load's listing answers are about; of a load without answers, those that it names."""
    columns = tuple(load.scope)
    unread: dict[int, int] = {}
    for reject in target.rejects:
        unread[reject.answer] = unread.get(reject.answer, 0) + 1
    found: dict[tuple[Any, ...], Scope] = {}
    for asked in target.asked:
        if not target.is_listing(asked):
            continue
        values = _from_params(target.table, load, asked.params)
        for each in [values] if values is not None else _from_rows(target, columns, asked.index):
            scope = found.setdefault(each, Scope(len(found), each, label_of(columns, each), is_complete or load.is_whole))
            scope.unread += unread.get(asked.index, 0)
    if not target.asked:
        for each in _named(target.table, columns, asked_scope):
            found[each] = Scope(len(found), each, label_of(columns, each), is_complete)
    return list(found.values())


def label_of(columns: Iterable[str], values: Iterable[Any]) -> str:
    """How `sync.coverage` calls the scope."""
    return ", ".join(f"{column}={value}" for column, value in zip(columns, values, strict=True)) or ALL


def _from_params(table: Table, load: Snapshot, params: Mapping[str, str]) -> tuple[Any, ...] | None:
    if not all(name in params for name in load.scope.values()):
        return None
    return _typed(table, tuple(load.scope), [params[name] for name in load.scope.values()])


def _from_rows(target: Target, columns: tuple[str, ...], answer: int) -> Iterator[tuple[Any, ...]]:
    """An answer to a wider question that shows a row of a scope shows all of that scope (lists with their fields)."""
    names = ", ".join(columns)
    for row in target.rows(f"select distinct {names} from {target.source} where _answer = {answer} order by all"):
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
