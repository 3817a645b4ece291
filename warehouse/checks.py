"""What can be checked about a table, as values. Not here: what a finding means (`assets.table_checks`)."""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from marketing_api.redaction import markdown_table
from warehouse.sql import Params, literal, quoted
from warehouse.table import EXTRA, Column, Table

_PREVIEW_ROWS, _PREVIEW_WIDTH = 5, 40
_MASK = "•••"
_ADDRESS = r"\S+(@|%40)\S+"  # also in columns that are not personal: links with addresses in them, say


class Checks(ABC):
    """Questions about one table over all accounts."""

    @abstractmethod
    def read(self, sql: str, params: Params = None) -> pa.Table:
        """The rows of one query as an Arrow table."""

    def row_count(self, table: Table) -> int:
        """Rows that exist (not those marked as deleted)."""
        return int(self._value(f"select count(*) from {table.qualified} where {_live(table)}"))

    def duplicate_keys(self, table: Table) -> int:
        """Keys that more than one row has: uniqueness is checked, not enforced."""
        key = ", ".join(["account", *map(quoted, table.key)])
        return int(self._value(f"select count(*) from (select 1 from {table.qualified} group by {key} having count(*) > 1)"))

    def rejected_count(self, table: Table) -> int:
        """Entries set aside because they could not be read."""
        return int(self._value("select count(*) from sync.rejected_records where table_name = $table", table))

    def new_fields(self, table: Table, since: dt.datetime | None = None) -> list[str]:
        """Fields without a column that first came at or after `since` (by default in the day before the table's last reading)."""
        last = "(select max(as_of) - interval 1 day from sync.coverage where table_name = $table)"
        rows = self.read(
            f"select distinct field from sync.unknown_fields "
            f"where table_name = $table and first_seen_at >= coalesce($since, {last}) order by 1",
            {"table": table.name, "since": since},
        )
        found: list[str] = rows.column(0).to_pylist()
        return found

    def incomplete(self, table: Table) -> list[str]:
        """Scopes that were not read completely, or have fewer rows than the service counts: one line each.

        A range of days that a later complete reading holds as well is not mentioned.
        """
        rows = self.read(
            """
            select account || ', ' || scope || ': ' || case
                when not is_complete then coalesce(reason, 'not read completely')
                else rows || ' rows, the service counts ' || service_count end as line
            from sync.coverage c
            where table_name = $table and (not is_complete or rows < service_count) and not exists (
                from sync.coverage o
                where o.account = c.account and o.table_name = c.table_name and o.is_complete
                    and (coalesce(o.last_request, 0), o.as_of) > (coalesce(c.last_request, 0), c.as_of)
                    and contains(c.scope, '..') and contains(o.scope, '..')
                    and split_part(o.scope, '..', 1) <= split_part(c.scope, '..', 1)
                    and split_part(o.scope, '..', 2) >= split_part(c.scope, '..', 2)
            )
            order by account, scope
            """,
            {"table": table.name},
        )
        found: list[str] = rows.column(0).to_pylist()
        return found

    def preview(self, table: Table) -> str:
        """The rows that changed last, as a Markdown table. Personal data is masked: this ends in Dagster's event log, which
        has other readers and is kept longer than the warehouse's rows."""
        columns = [column for column in table.columns if not column.name.startswith("_") and column is not EXTRA]
        shown = ", ".join(f"{_shown(column)} as {quoted(column.name)}" for column in columns)
        rows = self.read(f"select {shown} from {table.qualified} where {_live(table)} order by _changed_at desc limit {_PREVIEW_ROWS}")
        names = [column.name for column in columns]
        return markdown_table(names, (row.values() for row in rows.to_pylist()))

    def _value(self, sql: str, table: Table | None = None) -> Any:
        return self.read(sql, {"table": table.name} if table else None).column(0)[0].as_py()


def _live(table: Table) -> str:
    return "_deleted_at is null" if table.marks_deleted else "true"


def _shown(column: Column) -> str:
    name = quoted(column.name)
    if column.is_personal:
        return f"case when {name} is not null then {literal(_MASK)} end"
    return f"left(regexp_replace({name}::varchar, {literal(_ADDRESS)}, {literal(_MASK)}, 'g'), {_PREVIEW_WIDTH})"
