"""Mutated answers through asking and loading, after a good one: is anything deleted that nobody proved to be
gone?

Each answer goes the way of a night: asked for page by page, refused or staged, applied in one transaction;
then comes the true one. Every try is a transaction that is rolled back, so that each begins with the same
tables."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb

from assets.days import ChosenDays
from assets.fetch import Fetcher, FetchSettings
from assets.result import AccountResult, Batch
from marketing_api import validation
from marketing_api.client import Failure
from marketing_api.envelope import read_envelope
from marketing_api.errors import MarketingApiError
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import ALL
from tests.attack.corpus import Sample
from tests.attack.oracle import DAY, ZONE, parse_rows
from tests.attack.proof import Seen, leniently, look, number
from tests.marketing_api.responses import enveloped
from tests.marketing_api.samples import SAMPLES
from warehouse.loads.apply import apply_tables
from warehouse.loads.load import Load
from warehouse.loads.scopes import known_keys
from warehouse.loads.staging import stage_responses
from warehouse.schema import ensure_schema
from warehouse.sql import add_mask_addresses, add_normal_form, fetch_rows
from warehouse.tables import TABLES, Accumulate, Daily, Snapshot, Table

#: operation → (how it is asked for, the tables it fills).
_WAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "app/me": ("once", ("business",)),
    "reputation/direct": ("days", ("direct_reviews",)),
    "reputation/online": ("once", ("online_reviews", "online_review_channels")),
    "reputation/sentiment": ("days", ("sentiment_mentions", "sentiment_totals")),
    "reputation/stats": ("series", ("review_stats", "social_media_stats", "feedback_views")),
    "socialmedia/channels": ("once", ("social_profiles",)),
    "socialmedia/calendar": ("days", ("social_posts",)),
    "socialmedia/getpost": ("each", ("social_post_details",)),
    "socialmedia/stats": ("once", ("social_links", "social_link_clicks")),
    "emailmarketing/campaigns": ("pages", ("campaigns",)),
    "emailmarketing/getcampaign": ("each", ("campaigns",)),
    "emailmarketing/stats": ("each", ("campaign_stats", "campaign_links", "campaign_clickers")),
    "emailmarketing/getcontacts": ("pages", ("contacts",)),
    "emailmarketing/getcontacttimeline": (
        "each",
        ("timeline_events", "timeline_visits", "timeline_automations"),
    ),
    "emailmarketing/getcoupon": ("each", ("coupons",)),
    "emailmarketing/getlists": ("pages", ("lists", "list_fields")),
    "emailmarketing/getlist": ("each", ("lists", "list_fields")),
    "emailmarketing/getaudiences": ("once", ("audiences",)),
    "user/lists": ("once", ("users",)),
    "user/managers": ("once", ("managers",)),
    "user/groups": ("once", ("user_groups",)),
    "goal/lists": ("once", ("goals",)),
    "goal/show": ("each", ("goals",)),
    "webhook/lists": ("once", ("webhooks",)),
    "webhook/show": ("each", ("webhooks",)),
}
#: A detail's row exists because a listing has it.
_LISTED = {
    "emailmarketing/getcampaign": ("emailmarketing/campaigns", "campaigns"),
    "emailmarketing/getlist": ("emailmarketing/getlists", "lists"),
    "goal/show": ("goal/lists", "goals"),
    "webhook/show": ("webhook/lists", "webhooks"),
}
_START = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
_ids = itertools.count(1)
#: As `MARKETING_SHRINK_LIMIT` is without a setting.
SHRINK_LIMIT = 0.5
Live = dict[str, dict[tuple[Any, ...], tuple[Any, ...]]]  # table → (account, *key) → values


def _is_empty(question: Call, body: bytes) -> bool:
    """Whether the declared member is there, and an empty collection."""
    try:
        return all(
            isinstance(root, dict | list) and not root for root in look(question, leniently(body)).roots
        )
    except Exception:  # what cannot be walked is no empty answer
        return False


def loadable(samples: Iterable[Sample], each: int) -> list[Sample]:
    """So many true answers of every operation that fills tables, of different sources."""
    found: dict[str, list[Sample]] = {}
    for sample in sorted(samples, key=lambda sample: sample.source[:1] != "o"):
        if sample.operation in _WAYS:
            found.setdefault(sample.operation, []).append(sample)
    return [sample for many in found.values() for sample in many[:: max(1, len(many) // each)][:each]]


@dataclass
class _Service:
    """Answers every request with the same body, as a client hands it on."""

    body: bytes
    minute: int
    account: str
    answers: dict[int, Response] = field(default_factory=dict)

    def fetch(self, question: Call) -> Response:
        validation.check_response(question, 200, {}, read_envelope(self.body))
        answer = Response(
            next(_ids), self.account, question, _START + dt.timedelta(minutes=self.minute), self.body
        )
        return self.answers.setdefault(answer.request_id, answer)

    def fetch_many(
        self, questions: Iterable[Call], *, known: Any, urgency: int
    ) -> Iterator[Response | Failure]:
        for question in questions:
            try:
                yield self.fetch(question)
            except MarketingApiError as error:
                yield Failure(question, error)


class Ground:
    """Tables with a true answer in them, and rows of another account and other scopes beside it."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.shrink_limit: float | None = None
        self.has_shrunk = False
        self.connection = duckdb.connect()
        fetch_rows(self.connection, "set timezone = 'UTC'")
        fetch_rows(self.connection, "set threads = 1")
        add_normal_form(self.connection)
        add_mask_addresses(self.connection)
        self.way, names = _WAYS[sample.operation]
        self.tables = tuple(TABLES[name] for name in names)
        self.watched = {
            table.name: table for table in TABLES.values() if table in self.tables or self._hangs_on(table)
        }
        ensure_schema(self.connection)
        self.connection.begin()
        self._lay()
        self.connection.commit()
        self.before = self._live()
        self.scope = self._scope()
        self.restored = self._after_the_true_answer()

    def _hangs_on(self, table: Table) -> bool:
        return isinstance(table.load, Snapshot) and table.load.within in {one.name for one in self.tables}

    def _lay(self) -> None:
        for account in ("main", "other"):
            if (listed := _LISTED.get(self.sample.operation)) is not None:
                entry = {"id": self.sample.call.params["id"], "name": "listed"}
                at = ALL[listed[0]].at
                body = enveloped({at: {"count": 1, "items": [entry]}})
                self._load(
                    self._asked(ALL[listed[0]].bind(), body, -9, account, "once"),
                    (TABLES[listed[1]],),
                    account,
                )
            self._fill(self.sample.call, self.sample.body, -5, account)
        params = dict(self.sample.call.params)
        if self.sample.operation in ("emailmarketing/getcontacts", "emailmarketing/stats"):
            self._fill(
                Call(self.sample.call.operation, params | {next(iter(params)): "987654"}),
                self.sample.body,
                -4,
                "main",
            )
        elif (
            self.way in ("days", "series")
            and self.sample.source != "samples"
            and "from_" in SAMPLES[self.sample.operation][1]
        ):
            data, asked = SAMPLES[self.sample.operation]
            self._fill(ALL[self.sample.operation].bind(**asked), enveloped(data), -4, "main")

    def try_out(self, body: bytes) -> tuple[str, str | None]:
        """(what became of it: refused, loaded; what does not hold or None). Loaded as every night does; what
        the shrink check stops, once more without it, unless the answer is an empty one: these are what it is
        for."""
        became, problem = self._rolled_back(body, SHRINK_LIMIT)
        if problem is None and self.has_shrunk and not _is_empty(self.sample.call, body):
            return self._rolled_back(body, None)
        return became, problem

    def _rolled_back(self, body: bytes, shrink_limit: float | None) -> tuple[str, str | None]:
        self.shrink_limit, self.has_shrunk = shrink_limit, False
        self.connection.begin()
        try:
            return self._try_out(body)
        finally:
            self.shrink_limit = None
            self.connection.rollback()

    def _try_out(self, body: bytes) -> tuple[str, str | None]:
        try:
            became = "loaded" if self._fill(self.sample.call, body, 1, "main") else "refused"
            # the true answer may be less than half of what a mutated one added: as with --accept-shrink
            self.shrink_limit = None
        except MarketingApiError:
            became = "refused"
        except Exception as error:
            return "failed", f"not a declared error: {type(error).__name__}: {error}"[:200]
        after = self._live()
        if (problem := self._unproven(body, after)) is not None or after == self.before:
            return became, problem
        try:
            if not self._fill(self.sample.call, self.sample.body, 2, "main"):
                return became, "the true answer is refused afterwards"
        except Exception as error:
            return became, f"the true answer fails afterwards: {type(error).__name__}: {error}"[:200]
        return became, self._unequal()

    def _after_the_true_answer(self) -> Live:
        """It may prove rows gone that were asked for in another range or came from a sample."""
        self.connection.begin()
        try:
            self._fill(self.sample.call, self.sample.body, 2, "main")
            return self._live()
        finally:
            self.connection.rollback()

    def _fill(self, question: Call, body: bytes, minute: int, account: str) -> bool:
        """Ask and load; whether anything was loaded."""
        asked = list(self._asked(question, body, minute, account, self.way))
        self._load(asked, self.tables, account)
        return any(part.request_ids for _, part in asked)

    def _asked(
        self, question: Call, body: bytes, minute: int, account: str, way: str
    ) -> Iterator[tuple[_Service, Batch]]:
        service = _Service(body, minute, account)
        warehouse = SimpleNamespace(
            covered_days=lambda *a, **o: [],
            listed_days=lambda *a: [],
            known_keys=self._known_keys,
            archive=SimpleNamespace(responses=lambda ids: []),
        )
        session: Any = SimpleNamespace(
            account=account,
            warehouse=warehouse,
            planner=None,
            today=lambda: DAY,
            client=service,
            listings_at_once=1,
            accepts_shrinking=False,
            zone=ZONE,
            refused={},
            unavailable={},
            reuse=lambda asset, call: None,
        )
        params: dict[str, Any] = dict(question.params)
        first, last = params.pop("from", None), params.pop("to", None)
        days = (
            ChosenDays(dt.date.fromisoformat(first), dt.date.fromisoformat(last)) if first and last else None
        )
        ask = Fetcher(
            session,
            "attack",
            self.tables,
            AccountResult(account),
            FetchSettings(dt.date(2015, 1, 1)),
            chosen_days=days,
        )
        operation = question.operation
        parts: Iterable[Batch] = (
            ask.fetch_batches(operation, [params]) if way == "each" else ask.fetch_days(operation, **params) if way == "days" and days
            else ask.fetch_series(operation, **params) if way == "series" else [ask.fetch_pages(operation, **params)] if operation.is_paged
            else [ask.fetch_one(operation, **question.params)]
        )  # fmt: skip
        return ((service, part) for part in parts)

    def _known_keys(self, table: Table, account: str, params: Mapping[str, Any], zone: str) -> list[str]:
        return [
            key
            for (key,) in fetch_rows(self.connection, known_keys(table, params, zone), {"account": account})
        ]

    def _load(self, asked: Iterable[tuple[_Service, Batch]], tables: tuple[Table, ...], account: str) -> None:
        for service, part in asked:
            if not part.request_ids:
                continue
            scope = (
                part.scope
                if part.days is None
                else {"from_on": str(part.days.first), "to_on": str(part.days.last), **part.scope}
            )
            names = tuple(table.name for table in tables)
            load = Load(
                account,
                "attack",
                names,
                part.request_ids,
                str(ZONE),
                scope,
                part.is_complete,
                self.shrink_limit,
                part.service_count,
            )
            answers = [service.answers[number] for number in part.request_ids]
            staged = stage_responses(answers, tables, ZONE, parse_rows, Path)
            reports = apply_tables(self.connection, load, staged)
            self.has_shrunk |= any(report.refused for report in reports)

    # -- what must hold

    def _live(self) -> Live:
        found: Live = {}
        for name, table in self.watched.items():
            live = (
                "_deleted_at is null"
                if any(column.name == "_deleted_at" for column in table.columns)
                else "true"
            )
            columns = ", ".join(f'"{column.name}"' for column in table.values)
            keys = ", ".join(f'"{key}"' for key in ("account", *table.key))
            width = 1 + len(table.key)
            many = fetch_rows(
                self.connection,
                f"select {keys}{', ' + columns if columns else ''} from {table.qualified} where {live}",
            )
            found[name] = {row[:width]: row[width:] for row in many}
        return found

    def _scope(self) -> dict[str, Any]:
        """The columns that every row in the scope of the question shares."""
        params = self.sample.call.params
        load = self.tables[-1].load
        if not isinstance(load, Snapshot):
            return {}
        return {
            column: value
            for column, name in load.scope.items()
            if (value := number(params.get(name))) is not None
        }

    def _unproven(self, body: bytes, after: Live) -> str | None:
        gone = {name: self.before[name].keys() - after[name].keys() for name in self.before}
        if any(
            after[name].get(key) != values
            for name, known in self.before.items()
            for key, values in known.items()
            if key[0] == "other"
        ):
            return "a row of another account was touched"
        if not any(gone.values()):
            return None
        try:
            seen = look(self.sample.call, leniently(body))
        except Exception as error:
            return f"deleted by what is no JSON, or none that can be walked: {type(error).__name__}"
        return next(
            (
                problem
                for name, keys in gone.items()
                for key in keys
                if (problem := self._why(seen, name, key, gone))
            ),
            None,
        )

    def _why(
        self, seen: Seen, name: str, key: tuple[Any, ...], gone: dict[str, set[tuple[Any, ...]]]
    ) -> str | None:
        """Why the row's deletion is not proven, None when it is."""
        table = self.watched[name]
        if isinstance(table.load, Accumulate | Daily):
            return f"{name}: a row of what is never deleted"
        values = dict(zip(table.key, key[1:], strict=True))
        if isinstance(table.load, Snapshot) and table.load.within in gone:
            parent = self.watched[table.load.within]
            if any(
                all(values.get(part) == other for part, other in zip(parent.key, one[1:], strict=True))
                for one in gone[parent.name]
            ):
                return None
        if any(name in values and values[name] != value for name, value in self.scope.items()):
            return f"{name}: a row of another scope"
        if not seen.proves(name):
            return (
                f"{name}: "
                f"{seen.problems[0] if seen.problems else 'unread entries' if name in seen.unread else 'not spoken of'}"
            )
        ids = {number(entry.get("id")) for entry in seen.entries[name] if isinstance(entry, dict)}
        if len(table.key) == 1 and values[table.key[0]] in ids:
            return f"{name}: the answer has it"
        return None

    def _unequal(self) -> str | None:
        """What the next true answer does not restore."""
        after = self._live()
        for table in self.tables:
            name, known = table.name, self.restored[table.name]
            if isinstance(table.load, Accumulate):
                if lost := {json.dumps(v, default=str) for v in known.values()} - {
                    json.dumps(v, default=str) for v in after[name].values()
                }:
                    return f"{name}: content not there again ({len(lost)})"
                continue
            for key, values in known.items():
                now = after[name].get(key)
                if now is None or any(
                    new != old and not (table.is_partial and old is None)
                    for new, old in zip(now, values, strict=True)
                ):
                    return (
                        f"{name}: a row is {'missing' if now is None else 'different'} after the "
                        "next true answer"
                    )
            more = after[name].keys() - known.keys()
            if more and isinstance(table.load, Snapshot) and self._is_listing() and not self.scope:
                return f"{name}: rows too many after the next true answer"
        return None

    def _is_listing(self) -> bool:
        return self.way != "each"
