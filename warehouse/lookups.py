"""What the tables say that decides what is requested next, and what can be checked about a table.

The longer queries are in `queries/`. Not here: deciding what is requested (`assets.planning`), what a finding means (`assets.materialize`).
"""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from marketing_api.redaction import MASK, markdown_table
from warehouse.loads.listing import Key, row_hash
from warehouse.sql import Params, literal, query, quoted, statements
from warehouse.tables import EXTRA, SOCIAL_POSTS, Column, Table, Window

_SHORT = statements(Path(__file__).parent / "queries" / "lookups.sql")
_LIVE = "account = $account and _deleted_at is null"
#: A service may refuse every address without coupons: so many different ones have to be refused alike, and be such a part of all
#: refusals, to be taken for that.
FEWEST, SHARE = 20, 0.9
#: The part of them that may have coupons: more says that the refusal means something else.
CONTRADICTING = 0.01
#: Of a row of sync.requests: the errorCode that a refusal named, NULL when it named none.
REFUSAL_CODE = r"try_cast(nullif(regexp_extract(error, 'refused with errorCode (-?\d{1,18})', 1), '') as bigint)"
#: Days of a contact's dated history that tell how active it is.
HISTORY_DAYS = 90
_PREVIEW_ROWS, _PREVIEW_WIDTH = 5, 40
_ADDRESS = r"\S+(@|%40)\S+"  # also in columns that are not personal: links with addresses in them, say


class Lookups(ABC):
    """Queries over the tables of one account, and checks of one table over all accounts. Nothing loaded yet means empty results."""

    @abstractmethod
    def read(self, sql: str, params: Params = None) -> pa.Table:
        """The rows of one query as an Arrow table."""

    def list_ids(self, account: str) -> list[int]:
        """The lists that exist."""
        return self._column(_SHORT["list_ids"], account=account)

    def vanished_list_ids(self, account: str) -> list[int]:
        """Lists that are gone or unknown while contacts of theirs still count as existing (loading lists prevents it)."""
        return self._column(_SHORT["vanished_list_ids"], account=account)

    def taken_away(self, account: str) -> dict[int, float]:
        """List id → share of its contacts (0 to 1) that our own moves and deletions took away since the list was last read."""
        return dict(self._rows(query("taken_away"), account=account))

    def refused_as_nothing(self, account: str, operation: str) -> set[int]:
        """The errorCodes of refusals that mean "nothing there": of at least FEWEST addresses and SHARE of all refusals so far,
        of an operation that had responses for others, and of (nearly) no address that has coupons."""
        limits = {"fewest": FEWEST, "share": SHARE, "contradicting": CONTRADICTING}
        sql = query("refused_as_nothing").format(refusal_code=REFUSAL_CODE)
        return set(self._column(sql, account=account, operation=operation, **limits))

    def domain_ids(self, account: str) -> list[int]:
        """Tracked domains that webhooks name."""
        return self._column(_SHORT["domain_ids"], account=account)

    def listing_hashes(self, table: Table, account: str) -> dict[Key, str]:
        """Key of each existing row → hash of its listing entry when its detail was requested (`loads.listing.needs_detail`)."""
        sql = f"select {', '.join(table.key)}, _listing_hash from {table.qualified} where {_LIVE} and _listing_hash is not null"
        return {tuple(key): hash_ for *key, hash_ in self._rows(sql, account=account)}

    def posts_needing_detail(self, account: str, networks: Sequence[str]) -> list[tuple[int, str]]:
        """(post_id, network) of posts on these networks that are new or changed since their detail was requested; newest first.

        The calendar shows no change when a post is published; its detail does: the network's id, which is requested until it is there.
        """
        sql = query("posts_needing_detail").format(row_hash=row_hash(SOCIAL_POSTS, "p"))
        return self._rows(sql, account=account, networks=list(networks))

    def covered_days(self, table: Table, account: str, zone: str = "UTC", *, is_complete: bool = True) -> list[tuple[dt.date, dt.date]]:
        """The ranges of days that were read completely (or not), both ends included, in order. A day was read when it was over in the
        account's zone before it was requested: at the latest when anything was that was requested later, whatever the clock showed."""
        return self._rows(query("covered_days"), account=account, table=table.name, zone=zone, is_complete=is_complete)

    def listed_days(self, table: Table, account: str, first: dt.date, last: dt.date) -> list[dt.date]:
        """The days from `first` to `last` that a table of daily entries has rows of."""
        assert isinstance(table.load, Window)
        day = quoted(table.load.column)
        sql = f"select distinct {day} from {table.qualified} where {_LIVE} and {day} between $first and $last"
        return self._column(sql, account=account, first=first, last=last)

    def finished(self, account: str) -> dict[str, int]:
        """The request id behind which all of each asset was last read (`Warehouse.finish_assets`)."""
        return dict(self._rows(_SHORT["finished"], account=account))

    # -- what is known of each call that could be requested next: a row per call, cheap for a million contacts

    def found(self, name: str, account: str, **params: Any) -> pa.Table:
        """The rows of `queries/NAME.sql`, which says what its columns are, over one account."""
        return self.read(query(name), {"account": account, **params})

    def timeline_candidates(self, account: str, now: dt.datetime) -> pa.Table:
        """One row per contact that exists."""
        today = int(now.timestamp() // 86_400)
        return self.found("timeline_candidates", account, today=today, days=HISTORY_DAYS)

    def coupon_candidates(self, account: str, nothing: Collection[int] = ()) -> pa.Table:
        """One row per e-mail address of contacts that exist. A refusal with an errorCode among `nothing` counts as requested."""
        sql = query("coupon_candidates").format(refusal_code=REFUSAL_CODE)
        return self.read(sql, {"account": account, "nothing": list(nothing)})

    # -- checks of one table

    def row_count(self, table: Table) -> int:
        """Rows that exist (not those marked as deleted)."""
        return int(self._column(f"select count(*) from {table.qualified} where {table.is_there}")[0])

    def duplicate_keys(self, table: Table) -> int:
        """Keys that more than one row has: uniqueness is checked, not enforced."""
        key = ", ".join(["account", *map(quoted, table.key)])
        return int(self._column(f"select count(*) from (select 1 from {table.qualified} group by {key} having count(*) > 1)")[0])

    def rejected_count(self, table: Table) -> int:
        """Entries set aside because they could not be read."""
        return int(self._column("select count(*) from sync.rejected_records where table_name = $table", table=table.name)[0])

    def incomplete(self, table: Table) -> list[str]:
        """Scopes that were not read completely, or have fewer rows than the service counts: one line each.

        A range of days that a later complete reading holds as well is not mentioned.
        """
        return self._column(query("incomplete"), table=table.name)

    def preview(self, table: Table) -> str:
        """The rows that changed last, as a Markdown table. Personal data is masked: this ends in Dagster's event log, which
        has other readers and is kept longer than the warehouse's rows."""
        columns = [column for column in table.columns if not column.name.startswith("_") and column is not EXTRA]
        shown = ", ".join(f"{_shown(column)} as {quoted(column.name)}" for column in columns)
        found = self._rows(f"select {shown} from {table.qualified} where {table.is_there} order by _changed_at desc limit {_PREVIEW_ROWS}")
        return markdown_table([column.name for column in columns], found)

    def _rows(self, sql: str, **params: Any) -> list[Any]:
        return list(zip(*self.read(sql, params or None).to_pydict().values(), strict=True))

    def _column(self, sql: str, **params: Any) -> list[Any]:
        found: list[Any] = self.read(sql, params or None).column(0).to_pylist()
        return found


def _shown(column: Column) -> str:
    name = quoted(column.name)
    if column.is_personal:
        return f"case when {name} is not null then {literal(MASK)} end"
    return f"left(regexp_replace({name}::varchar, {literal(_ADDRESS)}, {literal(MASK)}, 'g'), {_PREVIEW_WIDTH})"
