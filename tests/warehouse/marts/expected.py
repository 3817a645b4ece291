"""What every mart must hold, worked out in pandas and plain Python from the source tables: no SQL, nothing of
the models.

Belongs here: the pieces that the calculations share, and their list. Not here: the calculations
(`expected_*`), the comparing (`comparing`)."""

import datetime as dt
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd

Found = list[dict[str, Any]]


@dataclass(frozen=True)
class Source:
    """The `source` and `sync` tables, the time zones of the accounts, and the queries' fixed clock."""

    source: Mapping[str, pd.DataFrame]
    sync: Mapping[str, pd.DataFrame]
    zones: Mapping[str, ZoneInfo]
    now: dt.datetime

    def rows(self, table: str, *, deleted: bool = False) -> Found:
        """Rows as dictionaries with None for NULL; without deleted ones unless they are wanted."""
        name, frames = (table[5:], self.sync) if table.startswith("sync.") else (table, self.source)
        if table not in self._rows:
            self._rows[table] = plain(frames[name])
        return [row for row in self._rows[table] if deleted or row.get("_deleted_at") is None]

    def of(self, account: str, table: str, *, deleted: bool = False) -> Found:
        """The rows of one account."""
        return [row for row in self.rows(table, deleted=deleted) if row["account"] == account]

    def by(self, table: str, *names: str, deleted: bool = True) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Rows by the values of these columns."""
        return {tuple(row[name] for name in names): row for row in self.rows(table, deleted=deleted)}

    @cached_property
    def _rows(self) -> dict[str, Found]:
        return {}

    @cached_property
    def results(self) -> dict[str, Found]:
        """What `once` remembers."""
        return {}

    def local(self, account: str, moment: dt.datetime | None) -> dt.datetime | None:
        """The moment on the account's clock."""
        return moment.astimezone(self.zones[account]) if moment else None

    def local_date(self, account: str, moment: dt.datetime | None) -> dt.date | None:
        local = self.local(account, moment)
        return local.date() if local else None

    def as_of(self, account: str) -> dt.datetime:
        """When the newest answer of the account was asked."""
        return max(known(self.of(account, "sync.coverage"), "as_of"))

    def today(self, account: str) -> dt.date:
        """The local day of the newest answer."""
        return self.as_of(account).astimezone(self.zones[account]).date()

    def is_plausible(self, account: str, day: dt.date | None) -> bool:
        """Whether something that the service dates so can have happened."""
        return day is not None and dt.date(2000, 1, 1) <= day <= self.today(account)

    def plausible(self, account: str, moments: Iterable[dt.datetime | None]) -> list[dt.datetime]:
        """Those that can have been."""
        return [one for one in moments if one and self.is_plausible(account, self.local_date(account, one))]


def plain(frame: pd.DataFrame) -> Found:
    """Rows with Python's own values."""
    columns = {name: [_value(value) for value in frame[name].astype(object)] for name in frame.columns}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _value(value: Any) -> Any:
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime()
    return value.tolist() if hasattr(value, "tolist") else value


def grouped(rows: Found, *names: str) -> dict[tuple[Any, ...], Found]:
    """Rows by the values of these columns, in their order."""
    found: dict[tuple[Any, ...], Found] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def row_of(columns: str, *values: Any) -> dict[str, Any]:
    return dict(zip(columns.split(), values, strict=True))


def unknown(columns: str) -> dict[str, Any]:
    return dict.fromkeys(columns.split())


def pick(row: dict[str, Any], columns: str) -> dict[str, Any]:
    return {name: row[name] for name in columns.split()}


def known(rows: Found, name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def share(part: float | None, whole: float | None) -> float | None:
    """None where there is nothing to divide by or the part is more than the whole."""
    if part is None or whole is None or whole <= 0 or not 0 <= part <= whole:
        return None
    return part / whole


def added(*values: float | None) -> float | None:
    """The sum, unknown when any part is."""
    return None if None in values else sum(value for value in values if value is not None)


def less(value: float | None, before: float | None) -> float | None:
    return None if value is None or before is None else value - before


def mean(values: list[Any]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


Calculation = Callable[[Source], Found]


def once(calculate: Calculation) -> Calculation:
    """The calculation, made once per source; everybody gets rows of his own."""

    @functools.wraps(calculate)
    def remembered(source: Source) -> Found:
        if calculate.__qualname__ not in source.results:
            source.results[calculate.__qualname__] = calculate(source)
        return [dict(row) for row in source.results[calculate.__qualname__]]

    return remembered
