"""What the tables say that decides what is requested next, and what can be checked about a table.

Not here: contacts and campaigns (`candidates`), what a finding means (`assets.table_checks`).
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from marketing_api.redaction import markdown_table
from warehouse.loads.listing import Key, row_hash
from warehouse.sql import Params, literal, quoted
from warehouse.tables import EXTRA, SOCIAL_POSTS, Column, Table, Window

_LIVE = "account = $account and _deleted_at is null"
#: For so long after its time a post may still lack the network's id, and is requested every night.
_PUBLISHED_WITHIN = "14 days"
#: A service may refuse every address without coupons: so many different ones have to be refused alike, and be such a part of all
#: refusals, to be taken for that.
FEWEST, SHARE = 20, 0.9
#: The part of them that may have coupons: more says that the refusal means something else.
CONTRADICTING = 0.01
#: Of a row of sync.requests: the errorCode that a refusal named, NULL when it named none.
REFUSAL_CODE = r"try_cast(nullif(regexp_extract(error, 'refused with errorCode (-?\d{1,18})', 1), '') as bigint)"
_PREVIEW_ROWS, _PREVIEW_WIDTH = 5, 40
_MASK = "•••"
_ADDRESS = r"\S+(@|%40)\S+"  # also in columns that are not personal: links with addresses in them, say


class Lookups(ABC):
    """Queries over the tables of one account, and checks of one table over all accounts. Nothing loaded yet means empty results."""

    @abstractmethod
    def read(self, sql: str, params: Params = None) -> pa.Table:
        """The rows of one query as an Arrow table."""

    def list_ids(self, account: str) -> list[int]:
        """The lists that exist."""
        return self._column(f"select list_id from source.lists where {_LIVE} order by list_id", account)

    def vanished_list_ids(self, account: str) -> list[int]:
        """Lists that are gone or unknown while contacts of theirs still count as existing (loading lists prevents it)."""
        live = f"select list_id from source.lists where {_LIVE}"
        return self._column(
            f"select distinct list_id from source.contacts where {_LIVE} and list_id not in ({live}) order by list_id", account
        )

    def taken_away(self, account: str) -> dict[int, float]:
        """List id → share of its contacts (0 to 1) that our own moves and deletions took away since the list was last read."""
        rows = self._read(
            """
            with ours as (
                select account, (params ->> 'id')::bigint as contact_id, request_id, done_at,
                    (case kind when 'moves' then params ->> 'sourceid' else params ->> 'listid' end)::bigint as list_id
                from sync.writebacks
                where account = $account and kind in ('moves', 'deletions') and state in ('applied', 'verified')
            ),
            taken as (
                select distinct contact_id, list_id
                from ours join sync.coverage c on c.account = ours.account and table_name = 'contacts' and scope = 'list_id=' || list_id
                where coalesce(request_id > last_request, done_at > as_of)
            )
            select list_id, count(t.contact_id) / count(*) as share
            from source.contacts left join taken t using (contact_id, list_id)
            where account = $account and _deleted_at is null group by list_id having count(t.contact_id) > 0
            """,
            account,
        )
        return dict(zip(*rows.to_pydict().values(), strict=True))

    def refused_as_nothing(self, account: str, operation: str) -> set[int]:
        """The errorCodes of refusals that mean "nothing there": of at least FEWEST addresses and SHARE of all refusals so far,
        of an operation that has answered others, and of (nearly) no address that has coupons."""
        return set(
            self._column(
                f"""
                with refused as (
                    select {REFUSAL_CODE} as code, lower(trim(params ->> 'email')) as email
                    from sync.requests where account = $account and operation = {literal(operation)} and outcome = 'refused'
                ),
                codes as (select code, count(distinct email) as addresses from refused where code is not null group by code),
                contradicted as (
                    select code, count(distinct email) as addresses from refused
                    where email in (select lower(trim(email)) from source.coupons where {_LIVE}) group by code
                )
                select code from codes c left join contradicted k using (code)
                where c.addresses >= {FEWEST} and coalesce(k.addresses, 0) <= {CONTRADICTING} * c.addresses
                    and c.addresses >= {SHARE} * (select count(distinct email) from refused)
                    and exists (from sync.requests
                        where account = $account and operation = {literal(operation)} and outcome = 'ok')
                """,
                account,
            )
        )

    def with_coupons(self, account: str) -> set[str]:
        """The addresses that have coupons, in lower case."""
        return set(self._column(f"select distinct lower(trim(email)) from source.coupons where {_LIVE} and email is not null", account))

    def domain_ids(self, account: str) -> list[int]:
        """Tracked domains that webhooks name."""
        return self._column(f"select distinct domain_id from source.webhooks where {_LIVE} and domain_id is not null order by 1", account)

    def listing_hashes(self, table: Table, account: str) -> dict[Key, str]:
        """Key of each existing row → hash of its listing entry when its detail was requested (`loads.listing.needs_detail`)."""
        key = ", ".join(table.key)
        rows = self._read(f"select {key}, _listing_hash from {table.qualified} where {_LIVE} and _listing_hash is not null", account)
        return {tuple(parts): hash_ for *parts, hash_ in zip(*rows.to_pydict().values(), strict=True)}

    def posts_needing_detail(self, account: str, networks: Sequence[str]) -> list[tuple[int, str]]:
        """(post_id, network) of posts on these networks that are new or changed since their detail was requested; newest first.

        The calendar shows no change when a post is published; its detail does: the network's id, which is requested until it is there.
        """
        among = ", ".join(literal(network) for network in networks) or "null"
        rows = self._read(
            f"""
            select p.post_id, p.network from source.social_posts p
            cross join (select max(as_of) as last from sync.coverage where account = $account and table_name = 'social_posts') listed
            left join source.social_post_details d
                on d.account = p.account and d.post_id = p.post_id and d.network = p.network and d._deleted_at is null
            where p.account = $account and p._deleted_at is null and p.network in ({among})
                and (d._listing_hash is distinct from {row_hash(SOCIAL_POSTS, "p")}
                    or (coalesce(d.uid, '') = '' and p.scheduled_at between listed.last - interval {_PUBLISHED_WITHIN} and listed.last))
            order by p.scheduled_at desc nulls last, p.post_id desc
            """,
            account,
        )
        return list(zip(*rows.to_pydict().values(), strict=True))

    def covered_days(self, table: Table, account: str, zone: str = "UTC", *, is_complete: bool = True) -> list[tuple[dt.date, dt.date]]:
        """The ranges of days that were read completely (or not), both ends included, in order. A day was read when it was over in the
        account's zone before it was requested: at the latest when anything was that was requested later, whatever the clock showed."""
        over = f"(read_by at time zone {literal(zone)})::date - 1"
        rows = self._read(
            f"""
            with readings as (
                select *, min(as_of) over (order by coalesce(last_request, 0) rows between current row and unbounded following) as read_by
                from sync.coverage where account = $account
            )
            select split_part(scope, '..', 1)::date as first, least(split_part(scope, '..', 2)::date, {over}) as last
            from readings
            where table_name = {literal(table.name)} and is_complete = {is_complete} and contains(scope, '..') and first <= last
            order by all
            """,
            account,
        )
        return list(zip(*rows.to_pydict().values(), strict=True))

    def listed_days(self, table: Table, account: str, first: dt.date, last: dt.date) -> list[dt.date]:
        """The days from `first` to `last` that a table of daily entries has rows of."""
        assert isinstance(table.load, Window)
        day = quoted(table.load.column)
        return self._column(f"select distinct {day} from {table.qualified} where {_LIVE} and {day} between '{first}' and '{last}'", account)

    def finished(self, account: str) -> dict[str, int]:
        """The request id behind which all of each asset was last read (`Warehouse.finish_assets`)."""
        last = "max(coalesce(last_request, epoch_us(logged_at) * 1024))"  # NULL: from before ids were noted
        rows = self._read(f"select asset, {last} from sync.loads where account = $account and len(tables) = 0 group by asset", account)
        return dict(zip(*rows.to_pydict().values(), strict=True))

    def _read(self, sql: str, account: str) -> pa.Table:
        return self.read(sql, {"account": account})

    def _column(self, sql: str, account: str) -> list[Any]:
        found: list[Any] = self._read(sql, account).column(0).to_pylist()
        return found

    # -- checks of one table

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
