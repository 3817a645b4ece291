"""What must hold of reading any answer: only declared errors, every entry a record or set aside, nothing
invented, in bounded time.

`judge` says what does not hold, None for nothing. What an answer really holds is read by `proof`, not by the
program."""

from __future__ import annotations

import datetime as dt
import json
import re
import time
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from marketing_api import parsing, validation
from marketing_api.envelope import read_envelope
from marketing_api.errors import MarketingApiError
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.rate_limit import rate_report
from tests.attack.corpus import corpus
from tests.attack.proof import Seen, leaves, leniently, look
from tests.marketing_api.samples import SAMPLES
from warehouse.tables import TABLES

ZONE = ZoneInfo("America/New_York")
DAY = dt.date(2026, 11, 20)
#: Seconds that reading one small answer may take.
BOUND_S = 2.0
_TABLE = {table.record: name for name, table in TABLES.items()}
#: Tables whose rows are the answer's entries, one for one. (Others have a row per network, per channel of a
#: post, per clicker and so on.)
_ONE_FOR_ONE = {
    "business", "direct_reviews", "online_reviews", "sentiment_mentions", "review_stats", "feedback_views", "social_profiles",
    "social_post_details", "social_links", "campaigns", "lists", "audiences", "contacts", "timeline_events", "timeline_visits",
    "timeline_automations", "coupons",
    "users", "managers", "user_groups", "goals", "webhooks",
}  # fmt: skip
#: Fields that are worked out from several values, or from none that stands in the answer.
_DERIVED = {
    "click_count",
    "clicker_count",
    "review_count",
    "delay_seconds",
    "status_code",
    "event_key",
    "visit_key",
    "automation_key",
}
_DERIVED |= {"mention_key", "review_key", "observed_on"}


def parse_rows(answer: Response, zone: dt.tzinfo | None, observed_on: dt.date) -> Iterator[parsing.Rows]:
    """The program's rows; RuntimeError where a parser failed and only its last net caught it."""
    for rows in parsing.parse_rows(answer, zone, observed_on):
        for rejected in rows.rejected:
            if rejected.reason.startswith("the rest of the response cannot be read"):
                raise RuntimeError(rejected.reason)
        yield rows


class Reading:
    """What the program makes of an answer: its error, or its rows."""

    def __init__(self, question: Call, body: bytes, status: int = 200) -> None:
        self.rows: list[parsing.Rows] = []
        self.refusal = self.unexpected = ""
        answer = Response(1, "main", question, dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC), body)
        began = time.perf_counter()
        try:
            rate_report(read_envelope(body), {})
            validation.check_response(question, status, {}, read_envelope(body))
            self.rows = list(parse_rows(answer, ZONE, DAY))
            parsing.service_count(answer)
            parsing.item_keys(answer)
            if question.operation.name == "emailmarketing/getcontacttimeline":
                parsing.timeline_extent(answer)
        except MarketingApiError as error:
            self.refusal = type(error).__name__
            if self.rows:
                self.unexpected = f"{type(error).__name__} after it was accepted"
        except Exception as error:
            self.unexpected = f"{type(error).__name__}: {error}"[:200]
        self.took_s = time.perf_counter() - began


def judge(question: Call, body: bytes, reading: Reading) -> str | None:
    """The first thing that does not hold."""
    if reading.unexpected:
        return f"not a declared error: {reading.unexpected}"
    if reading.took_s > BOUND_S:
        return f"took {reading.took_s:.1f} s"
    if reading.refusal:
        return None
    try:
        whole = leniently(body)
    except (ValueError, RecursionError) as error:
        return f"accepted what is no JSON: {type(error).__name__}"
    try:
        seen = look(question, whole)
        return (
            _uncounted(seen, reading)
            or _dropped(question, seen, reading)
            or _invented(question, whole, reading)
        )
    except Exception as error:  # an attack goes on, and its own mistakes are shown like the program's
        return f"the oracle fails: {type(error).__name__}: {error}"[:200]


def _uncounted(seen: Seen, reading: Reading) -> str | None:
    """Entries in, against records and rejected entries out."""
    if seen.problems:
        return None
    for name, entries in seen.entries.items():
        if name in _ONE_FOR_ONE:
            rows = [rows for rows in reading.rows if _TABLE[rows.record] == name]
            records, rejected = sum(len(one.records) for one in rows), sum(len(one.rejected) for one in rows)
            if not records <= len(entries) <= records + rejected:
                return f"{name}: {len(entries)} entries became {records} records and {rejected} rejected"
    return None


_WORD = re.compile(r"[^\W\d_]{4,}|\d{5,}")
#: Said of a clicker, of nothing, of a yes or no.
_READ_AWAY = {"click", "clicks", "data", "items", "none", "null", "mailto", "false", "true"}


def _words(texts: Iterable[Any]) -> set[str]:
    joined = "\n".join(
        str(text)
        for text in texts
        if isinstance(text, str) or (type(text) in (int, float) and abs(text) > 9999)
    )
    return {word.lstrip("0") for word in _WORD.findall(_plain(joined).lower())}


def _plain(text: str) -> str:
    """Halves of surrogate pairs are no characters."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@cache
def _names_of_members(operation: str) -> frozenset[str]:
    """Words that are lost in reading true answers, and names of members there: those became columns."""
    found = _words(_names(SAMPLES[operation][0]))
    for sample in corpus():
        if sample.operation == operation:
            seen = look(sample.call, leniently(sample.body))
            found |= _lost(seen, Reading(sample.call, sample.body))
    return frozenset(found)


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        yield from value if isinstance(value, dict) else ()
        for part in value.values() if isinstance(value, dict) else value:
            yield from _names(part)


def _dropped(question: Call, seen: Seen, reading: Reading) -> str | None:
    """Words of the declared members that stand in no record and in no rejected entry."""
    missing = _lost(seen, reading)
    if missing and (missing := missing - _names_of_members(question.operation.name) - _decided(seen)):
        return f"dropped: {sorted(missing)[:3]}"
    return None


def _decided(seen: Seen) -> set[str]:
    """Words that the tables leave out by design: a campaign's own `type`, its `status` beside its group's,
    the text of a link that is listed again, the local time beside a timestamp, the second spelling of a
    message, the names of what wraps a list's fields, a webhook's delay (worked out as a whole)."""
    found: list[Any] = [
        entry.get("type") for entry in seen.entries.get("campaigns", []) if isinstance(entry, dict)
    ]
    for table, *names in _TOLD_TWICE:
        found += [
            entry.get(name)
            for entry in seen.entries.get(table, [])
            if isinstance(entry, dict)
            for name in names
        ]
    for table, *way in _NAMES_ALONE:
        found += [
            leaf
            for entry in seen.entries.get(table, [])
            for leaf in (_names if way == ("fields",) else leaves)(_within(entry, *way))
        ]
    for entry in seen.entries.get("campaign_stats", []):
        links = entry.get("clicks") if isinstance(entry, dict) else None
        found += [
            link.get("message")
            for link in (links.values() if isinstance(links, dict) else links or [])
            if isinstance(link, dict)
        ]
    return _words(leaf for part in found for leaf in leaves(part))


_TOLD_TWICE = (
    *(
        (table, "datetime", "timestamp")
        for table in ("timeline_events", "timeline_visits", "timeline_automations")
    ),
    ("campaigns", "status"),
    ("campaign_stats", "id"),
    ("lists", "confimation_email", "confimation_message", "confirmation_email", "confirmation_message"),
)
_NAMES_ALONE = (("lists", "fields"), ("webhooks", "delay"), ("webhooks", "action_rules", "delay"))


def _within(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _lost(seen: Seen, reading: Reading) -> set[str]:
    wanted = _words(leaf for root in seen.roots for leaf in leaves(root, seen.wrappers))
    wanted = {
        word for word in wanted if word not in _READ_AWAY and not (word.isdigit() and len(word) in (9, 10))
    }
    shown = _shown(reading) if wanted else ""
    return {word for word in wanted if (word[:15] if word.isdigit() else word) not in shown}


def _shown(reading: Reading) -> str:
    """Everything that came of the answer, as one text in lower case; floats beyond their precision with the
    digits that they have."""
    found: list[str] = []
    for rows in reading.rows:
        for record in rows.records:
            values = dict(iter(record))  # one may have a `keys`
            found.append(repr(values))
            found += [
                f"{value:.0f}"
                for value in values.values()
                if isinstance(value, float) and 1e15 < abs(value) < 1e30
            ]
        found += [repr(unread.raw) for unread in rows.rejected + rows.flawed]
    return "\n".join(found).lower()


def _invented(question: Call, whole: Any, reading: Reading) -> str | None:
    """Values of records that stand nowhere in the answer, nor in what was asked."""
    told = _Told([*leaves(whole), *question.params.values()])
    for rows in reading.rows:
        for record in rows.records:
            for name, value in record:
                if name not in _DERIVED and value is not None and not told.has(name, value):
                    return f"invented: {type(record).__name__}.{name} = {value!r}"[:200]
    return None


def _is_around(value: dt.date, group: set[int]) -> bool:
    """Of a moment with an offset it is the day in the account's zone."""
    days = [
        dt.date.fromordinal(number)
        for number in range(max(1, value.toordinal() - 1), min(value.toordinal() + 2, 3652060))
    ]
    return any({day.year, day.month, day.day} <= group for day in days)


_GIVEN = {
    "standard",
    "automated",
    "automation",
    "active",
    "unconfirmed",
    "unsubscribed",
    "bounced",
    "true",
    "false",
}


class _Told:
    """The values of an answer, in every form that a value may have."""

    def __init__(self, found: list[Any]) -> None:
        self.texts = {_plain(leaf if isinstance(leaf, str) else json.dumps(leaf)) for leaf in found}
        self.folded = {text.strip().lower() for text in self.texts}
        self.all = "\n".join(self.folded)
        self._groups: list[set[int]] | None = None
        self._numbers: set[float] | None = None

    def has(self, name: str, value: Any) -> bool:
        if isinstance(value, bool):
            return True
        if isinstance(value, str):
            return self._has_text(_plain(value))
        if isinstance(value, int | float | Decimal):
            return str(value) in self.texts or (
                (abs(value) < 2**1000 or isinstance(value, float)) and float(value) in self.numbers
            )
        if isinstance(value, dt.datetime):
            return self._has_moment(value)
        if isinstance(value, dt.date):
            return any(_is_around(value, group) for group in self.groups) or self._has_unix(value)
        return all(self.has(name, leaf) for leaf in leaves(value) if leaf is not None)

    def _has_text(self, text: str) -> bool:
        if text in self.texts or (folded := text.strip().lower()) in self.folded or folded in _GIVEN:
            return True
        if folded[:1] in "[{" or "\ufffd" in folded:
            return True
        return folded in self.all or any(
            folded[:-1] and known.startswith(folded[:-1]) for known in self.folded
        )

    @property
    def numbers(self) -> set[float]:
        if self._numbers is None:
            plain = self.all.replace(",", "")
            self._numbers = {
                float(text)
                for text in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?|-?\.\d+", plain)
                if len(text) < 400
            }
            self._numbers |= {
                float(text) for text in re.findall(r"\d+(?:\.\d+)?|\.\d+", plain) if len(text) < 400
            }
            self._numbers |= {1.0, 0.0} if "true" in plain or "false" in plain else set()
        return self._numbers

    @property
    def groups(self) -> list[set[int]]:
        """The numbers of each text that may be a date or a time."""
        if self._groups is None:
            short = (text for text in self.folded if len(text) <= 60)
            self._groups = [set(map(int, re.findall(r"\d{1,6}", text))) for text in short]
        return self._groups

    def _has_moment(self, value: dt.datetime) -> bool:
        if value.timestamp() in self.numbers:
            return True
        for zone in (ZONE, dt.UTC, dt.timezone(dt.timedelta(hours=14))):
            local = value.astimezone(zone)
            if any({local.year, local.month, local.day} <= group for group in self.groups):
                return local.minute == 0 or any(local.minute in group for group in self.groups)
        return False

    def _has_unix(self, day: dt.date) -> bool:
        return any(
            1e8 <= number < 5e9 and dt.datetime.fromtimestamp(number, ZONE).date() == day
            for number in self.numbers
        )
