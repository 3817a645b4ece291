"""What the warehouse already knows of one account: the look-ups that decide what is asked next."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TypeVar
from zoneinfo import ZoneInfo

from assets.days import DateRange
from assets.refusals import CONTRADICTING, FEWEST
from marketing_api.exchange import Response
from marketing_api.operations.contacts import GETCOUPON
from marketing_api.parsing import parse_rows
from marketing_api.records.fields import Record
from warehouse.loads.listing import needs_detail
from warehouse.tables import TABLES, Table
from warehouse.warehouse import Warehouse

R = TypeVar("R", bound=Record)


class Known:
    """The warehouse as one account's assets see it. Empty tables give empty answers."""

    def __init__(self, warehouse: Warehouse, account: str) -> None:
        self._warehouse = warehouse
        self._account = account

    def list_ids(self) -> list[int]:
        """Lists that exist."""
        return self._warehouse.list_ids(self._account)

    def vanished_list_ids(self) -> list[int]:
        """Lists that are gone while contacts of theirs still count as existing."""
        return self._warehouse.vanished_list_ids(self._account)

    def taken_away(self) -> dict[int, float]:
        """List id → share of its contacts that our own pushes took away since it was last read."""
        return self._warehouse.taken_away(self._account)

    @cached_property
    def refused_as_nothing(self) -> set[int]:
        """The errorCodes of earlier runs by which the service says that an address has no coupons (`assets.refusals`)."""
        return self._warehouse.refused_as_nothing(self._account, GETCOUPON.name, FEWEST, CONTRADICTING)

    def with_coupons(self) -> set[str]:
        """The addresses that have coupons, in lower case."""
        return self._warehouse.with_coupons(self._account)

    def domain_ids(self) -> list[int]:
        """Tracked domains that webhooks name."""
        return self._warehouse.domain_ids(self._account)

    def posts_needing_detail(self, networks: Sequence[str]) -> list[tuple[int, str]]:
        """(post_id, network) of posts that are new or changed since their detail was asked."""
        return self._warehouse.posts_needing_detail(self._account, networks)

    def covered(self, table: Table, zone: ZoneInfo, *, is_complete: bool = True) -> list[DateRange]:
        """Ranges of days that were read completely, after they had ended in the account's zone; or that were not."""
        found = self._warehouse.covered_days(table, self._account, str(zone), is_complete=is_complete)
        return [DateRange(first, last) for first, last in found]

    def listed(self, tables: Sequence[Table], days: DateRange) -> list[set[dt.date]]:
        """The days that each table has rows of, in the range and the weeks before it."""
        since = days.first - dt.timedelta(days=28)
        return [set(self._warehouse.listed_days(table, self._account, since, days.last)) for table in tables]

    def finished(self) -> dict[str, int]:
        """The request id behind which each asset was last read to the end."""
        return self._warehouse.finished(self._account)

    def responses(self, request_ids: Sequence[int]) -> Iterable[Response]:
        """From the archive."""
        return self._warehouse.archive.responses(request_ids)

    def new_or_changed(self, request_ids: Sequence[int], record: type[R], zone: ZoneInfo) -> list[R]:
        """Entries of the listing in these answers that are new, or differ from when their detail was last asked."""
        table = next(table for table in TABLES.values() if table.record is record)
        hashes = self._warehouse.listing_hashes(table, self._account)
        stale = needs_detail(table, self.responses(request_ids), hashes, zone, parse_rows)
        return [entry for entry in stale if isinstance(entry, record)]
