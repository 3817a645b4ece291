"""One account during one run: its client, its time zone, and which archived answers it need not ask again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from zoneinfo import ZoneInfo

from marketing_api.client import Client

from assets.known import Known
from marketing_api.errors import MarketingApiError
from marketing_api.exchange import Answer
from marketing_api.operation import Question
from marketing_api.operations import account as operations
from marketing_api.records.account import Business
from marketing_api.wire import read_rows
from warehouse.archive import Archive
from warehouse.warehouse import Warehouse

Reuse = Callable[[Question], Answer | None]


class Session:
    """`open` makes the first request; it must succeed before anything else is asked."""

    def __init__(
        self,
        client: Client,
        archive: Archive,
        warehouse: Warehouse,
        *,
        fallback_zone: str,
        resume_hours: float,
        now: Callable[[], dt.datetime],
    ) -> None:
        self.client = client
        self.account = client.connection.account
        self.zone = ZoneInfo(client.connection.timezone or fallback_zone)
        self.business: Business | None = None
        self.problem: MarketingApiError | None = None
        self.known = Known(warehouse, self.account)
        self._archive = archive
        self._now = now
        self._not_before = now() - dt.timedelta(hours=resume_hours)
        self._me: Answer | None = None

    def today(self) -> dt.date:
        """The account's local date."""
        return self._now().astimezone(self.zone).date()

    def open(self) -> None:
        """Ask who the account is. Raises MarketingApiError: without this answer nothing else is worth asking."""
        try:
            self._me = self.client.ask(operations.ME.bind())
        except MarketingApiError as problem:
            self.problem = problem
            raise
        self.business = next((record for rows in read_rows(self._me, self.zone, self.today()) for record in rows.records), None)  # type: ignore[assignment]
        if self.business and self.business.timezone and not self.client.connection.timezone:
            self.zone = ZoneInfo(self.business.timezone)

    def reuse(self, asset: str) -> Reuse:
        """Finds whole answers that came after `asset` was last read to the end: a run that died left them.

        The account's own answer of this run is among them, so that it is asked once.
        """
        since = max(self._not_before, self.known.finished_at(asset) or self._not_before)
        archived = self._archive.reusable(self.account, since)

        def find(question: Question) -> Answer | None:
            if self._me is not None and question.key == self._me.question.key:
                return self._me
            return archived.get(question.key)

        return find
