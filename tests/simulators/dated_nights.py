"""Nights over a sandbox whose clock is moved on by hand, as they would be on days to come.

The client stamps requests with the real time, and daily totals go by that day. So this asks the sandbox
directly and archives and loads the answers under the sandbox's own time. Not here: what is done with the
tables (`tests.attack.trends`)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import requests

from marketing_api.exchange import Exchange, Outcome, Response, new_request_id
from marketing_api.operation import Operation
from marketing_api.operations import account, campaigns, contacts, lists, reputation, social
from marketing_api.sandbox.options import DEFAULT_KEY
from warehouse import tables
from warehouse.archive import Archive
from warehouse.loads.load import Load
from warehouse.tables import Table
from warehouse.warehouse import Warehouse

_ALL = {"limit": 100_000, "page": 1}


class DatedNights:
    """`url` up to and including `/1`. Use as a context manager."""

    def __init__(self, home: Path, url: str, zone: ZoneInfo) -> None:
        self.path = home / "warehouse.duckdb"
        self._url = url
        self._zone = zone
        self._archive = Archive(home / "archive")
        self._warehouse = Warehouse(home, self._archive)
        self._http = requests.Session()
        self._at = dt.datetime.now(dt.UTC)
        self._is_first = True

    def __enter__(self) -> DatedNights:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        self._archive.close()

    def control(self, path: str, **values: object) -> Any:
        """What a control path of the sandbox answers."""
        reply = self._http.get(f"{self._url.removesuffix('/1')}/sandbox/{path}", params=values, timeout=60)  # type: ignore[arg-type]
        reply.raise_for_status()
        return reply.json()

    def night(self) -> dt.datetime:
        """Read everything but timelines and coupons, as of the sandbox's time, which is the answer."""
        self._at = dt.datetime.fromtimestamp(self.control("state")["now"], dt.UTC)
        self._load([self._ask(account.ME)], tables.BUSINESS)
        listing = self._ask(campaigns.CAMPAIGNS, filter="all", **_ALL)
        self._load([listing], tables.CAMPAIGNS)
        found = self._current("campaigns", "campaign_id, type")
        stats = [self._ask(campaigns.STATS, id=row["campaign_id"], type=row["type"]) for row in found]
        self._load(stats, tables.CAMPAIGN_STATS, tables.CAMPAIGN_LINKS, tables.CAMPAIGN_CLICKERS)
        self._load([self._ask(lists.GETLISTS, **_ALL)], tables.LISTS)
        for row in self._current("lists", "list_id"):
            self._load([self._ask(contacts.GETCONTACTS, listid=row["list_id"], **_ALL)], tables.CONTACTS)
        self._reputation()
        self._load([self._ask(social.STATS, channels="all")], tables.SOCIAL_LINKS, tables.SOCIAL_LINK_CLICKS)
        self._is_first = False
        return self._at

    def timelines(self) -> None:
        """Read every contact's timeline."""
        rows = self._current("contacts", "distinct contact_id")
        answers = [
            self._ask(contacts.TIMELINE, id=row["contact_id"], include="utm,automated") for row in rows
        ]
        self._load(answers, tables.TIMELINE_EVENTS, tables.TIMELINE_VISITS, tables.TIMELINE_AUTOMATIONS)

    def _current(self, table: str, columns: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._warehouse.run_query(
            f"select {columns} from source.{table} where _deleted_at is null"
        ).to_pylist()
        return found

    def _reputation(self) -> None:
        last = self._at.astimezone(self._zone).date()
        first = last - dt.timedelta(days=730 if self._is_first else 7)
        days = {"from": first, "to": last}
        scope = {"from_on": str(first), "to_on": str(last)}
        self._load([self._ask(reputation.DIRECT, filter="date", **days)], tables.DIRECT_REVIEWS, scope=scope)
        self._load(
            [self._ask(reputation.ONLINE, channels="all")],
            tables.ONLINE_REVIEWS,
            tables.ONLINE_REVIEW_CHANNELS,
        )
        mentions = self._ask(reputation.SENTIMENT, filter="all", channels="all", **days)
        self._load([mentions], tables.SENTIMENT_MENTIONS, tables.SENTIMENT_TOTALS, scope=scope)
        stats = (tables.REVIEW_STATS, tables.SOCIAL_MEDIA_STATS, tables.FEEDBACK_VIEWS)
        self._load([self._ask(reputation.STATS, filter="all", **days)], *stats, scope=scope)

    def _ask(self, operation: Operation, **params: Any) -> Response:
        question = operation.bind(**params)
        url = f"{self._url}/{operation.name}.json"
        reply = self._http.get(url, params={**question.params, "key": DEFAULT_KEY}, timeout=60)
        answer = Response(new_request_id(), "main", question, self._at, reply.content)
        self._archive.record_exchange(
            Exchange(
                answer.request_id,
                "main",
                question,
                self._at,
                0,
                1,
                reply.status_code,
                Outcome.OK,
                None,
                reply.content,
            )
        )
        return answer

    def _load(self, answers: Iterable[Response], *filled: Table, scope: dict[str, str] | None = None) -> None:
        ids = tuple(answer.request_id for answer in answers)
        names = tuple(table.name for table in filled)
        self._warehouse.apply_load(
            Load("main", names[0], names, ids, str(self._zone), scope=scope or {}, logged_at=self._at)
        )
