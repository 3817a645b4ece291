"""Window tables: the days that were asked for are replaced, no other day is touched except by rows that were received.

Not here: new and changed rows (`upsert`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from warehouse.loads.result import ScopeResult
from warehouse.loads.scopes import ALL
from warehouse.loads.target import Target
from warehouse.loads.upsert import upsert
from warehouse.sql import literal, quoted
from warehouse.table import Window


def load_window(target: Target, load: Window, scope: Mapping[str, Any], *, is_complete: bool, zone: ZoneInfo) -> list[ScopeResult]:
    """Apply the staged rows. Rows of the range that were not received are removed, when all of the range was read and understood."""
    days = days_of(scope)
    target.merge_parts()
    upsert(target)
    has_unread = bool(target.rejects)
    if load.column and days and is_complete and not has_unread and not target.is_first:
        _remove_missing(target, load.column, days, zone)
    else:
        target.make("missing", f"select {', '.join(target.key)} from {target.table.qualified} limit 0")
    unread = f"{target.report.rejected} entries could not be read: nothing was removed" if has_unread else None
    incomplete = None if is_complete else str(scope.get("reason", "not every page could be had"))
    return [
        ScopeResult(label_of(days), is_complete, target.report.new + target.report.changed + target.report.unchanged, unread or incomplete)
    ]


def days_of(scope: Mapping[str, Any]) -> tuple[dt.date, dt.date] | None:
    """First and last day of the load's scope; None when it names no range."""
    if "from_on" not in scope or "to_on" not in scope:
        return None
    return _date(scope["from_on"]), _date(scope["to_on"])


def label_of(days: tuple[dt.date, dt.date] | None) -> str:
    """How `sync.coverage` calls the range."""
    return f"{days[0]}..{days[1]}" if days else ALL


def _remove_missing(target: Target, column: str, days: tuple[dt.date, dt.date], zone: ZoneInfo) -> None:
    name = f"t.{quoted(column)}"
    if target.table.column(column).sql_type == "TIMESTAMPTZ":
        name = f"({name} at time zone {literal(str(zone))})::date"
    target.report.deleted += target.make(
        "missing",
        f"""
        select rowid as rid, {", ".join(target.key)} from {target.table.qualified} t
        where account = {target.account} and {name} between date '{days[0]}' and date '{days[1]}'
            and not exists (from {target.staged} s where {target.on("s", "t")})
        """,
    )
    target.run(f"delete from {target.table.qualified} where rowid in (select rid from {target.temp('missing')})")


def _date(value: Any) -> dt.date:
    return value if isinstance(value, dt.date) else dt.date.fromisoformat(str(value))
