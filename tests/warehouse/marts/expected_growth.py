"""How lists grow, and the headline numbers by day, worked out without SQL."""

import datetime as dt
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from tests.warehouse.marts.expected import Found, Source, added, grouped, known, once, row_of
from tests.warehouse.marts.expected_campaigns import campaign_daily, can_tell_openings
from tests.warehouse.marts.expected_reputation import days_read, review_daily
from tests.warehouse.marts.expected_social import social_daily

_FLOWS = ("joined_count", "moved_in_count", "left_count", "moved_out_count")
#: Who is the same person, from the surest on: the same id, the same address on the same list, the same
#: address.
_PERSONS: tuple[Callable[["Crossing"], tuple[Any, ...]], ...] = (
    lambda one: (one.row["contact_id"],),
    lambda one: (one.list_id, one.address),
    lambda one: (one.address,),
)


@dataclass(frozen=True, eq=False)
class Crossing:
    """Somebody who was seen to come to a list, or to be gone from it."""

    row: dict[str, Any]
    moment: dt.datetime

    @property
    def list_id(self) -> int:
        return int(self.row["list_id"])

    @property
    def address(self) -> str:
        return (self.row["email"] or "").strip().lower()


@dataclass(frozen=True)
class Readings:
    """When the lists of one account were read, and in which time zone its days were counted."""

    source: Source
    account: str

    @cached_property
    def all(self) -> Found:
        readings = self.source.of(self.account, "sync.readings")
        rows = [row for row in readings if row["table_name"] == "contacts"]
        return sorted(rows, key=lambda row: (row["as_of"], row["timezone"]))

    def zone(self, moment: dt.datetime) -> ZoneInfo:
        """That of the last reading by then; before the first one, its."""
        if not self.all:
            return self.source.zones[self.account]
        earlier = [row for row in self.all if row["as_of"] <= moment]
        return ZoneInfo((earlier or self.all)[-1 if earlier else 0]["timezone"])

    def day(self, moment: dt.datetime) -> dt.date:
        return moment.astimezone(self.zone(moment)).date()

    def of(self, list_id: int) -> Found:
        return [row for row in self.all if row["scope"] == f"list_id={list_id}"]

    @cached_property
    def new_lists(self) -> dict[int, dt.datetime]:
        """Lists that were not in the first listing of lists, and when they were seen."""
        lists = self.source.of(self.account, "lists", deleted=True)
        began = min(row["_first_seen_at"] for row in lists)
        return {row["list_id"]: row["_first_seen_at"] for row in lists if row["_first_seen_at"] > began}

    def first(self, list_id: int, rows: Found) -> dt.datetime:
        """When the list was first read; where that was not written down, when its first contacts came."""
        if list_id in self.new_lists:
            return self.new_lists[list_id]
        seen, tried = min(row["_first_seen_at"] for row in rows), self.of(list_id)
        if not tried or seen < tried[0]["as_of"]:
            return seen
        complete: list[dt.datetime] = [row["as_of"] for row in tried if row["is_complete"]]
        return complete[0]

    def days_covered(self, list_id: int) -> dict[dt.date, int | None]:
        whole = [row for row in self.of(list_id) if row["is_complete"]]
        days = sorted({row["as_of"].astimezone(ZoneInfo(row["timezone"])).date() for row in whole})
        pairs = zip([None, *days], days, strict=False)
        return {day: (day - before).days if before else None for before, day in pairs}


@once
def list_growth_daily(source: Source) -> Found:
    """Of models that are built for the first time: only the last return of a contact is known."""
    contacts = grouped(source.rows("contacts", deleted=True), "account")
    return [row for (account,), rows in contacts.items() for row in _growth(Readings(source, account), rows)]


def _growth(readings: Readings, contacts: Found) -> Iterator[dict[str, Any]]:
    """The rows of one account."""
    flows: dict[tuple[int, dt.date], Counter[str]] = defaultdict(Counter)
    first = {
        list_id: readings.first(list_id, rows) for (list_id,), rows in grouped(contacts, "list_id").items()
    }
    came: list[Crossing] = []
    for row in contacts:
        begun_at = first[row["list_id"]]
        if row["list_id"] in readings.new_lists or row["_first_seen_at"] > begun_at:
            came.append(Crossing(row, max(row["_first_seen_at"], begun_at)))
            continue
        day = readings.day(begun_at)
        if row["registered_at"]:
            registered_on = row["registered_at"].astimezone(readings.zone(begun_at)).date()
            day = registered_on if dt.date(2000, 1, 1) <= registered_on <= day else day
        flows[row["list_id"], day] += Counter(joined_count=1, size=1, active=row["status"] == "active")
    went = [Crossing(row, row["_deleted_at"]) for row in contacts if row["_deleted_at"]]
    for day in {readings.day(one.moment) for one in (*came, *went)}:
        arrived, left = ([one for one in some if readings.day(one.moment) == day] for some in (came, went))
        _cross(flows, day, arrived, left)
    last = max([*(day for _, day in flows), readings.source.today(readings.account)])
    for list_id in first:
        mine = {day: one for (other, day), one in flows.items() if other == list_id}
        yield from _days(readings, list_id, readings.day(first[list_id]), last, mine)


def _cross(
    flows: dict[tuple[int, dt.date], Counter[str]], day: dt.date, came: list[Crossing], went: list[Crossing]
) -> None:
    """What a day's arrivals and departures are: moves, or nothing for the same person in one list."""
    kinds = dict.fromkeys(came, "joined_count") | dict.fromkeys(went, "left_count")
    arrivals = set(came)
    for number, person in enumerate(_PERSONS):
        for arrival, departure in _pairs(came, went, person, needs_address=number > 0):
            is_move = arrival.list_id != departure.list_id
            kinds[arrival], kinds[departure] = ("moved_in_count", "moved_out_count") if is_move else ("", "")
            came = [one for one in came if one is not arrival]
            went = [one for one in went if one is not departure]
    for one, kind in kinds.items():
        sign = 1 if one in arrivals else -1
        found = flows[one.list_id, day]
        found["size"] += sign
        found["active"] += sign * (one.row["status"] == "active")
        found[kind] += 1


def _pairs(
    came: list[Crossing],
    went: list[Crossing],
    person: Callable[[Crossing], tuple[Any, ...]],
    *,
    needs_address: bool,
) -> Iterator[tuple[Crossing, Crossing]]:
    """Each person's arrivals with its departures, in the order in which they were seen."""
    sides: list[dict[tuple[Any, ...], list[Crossing]]] = [defaultdict(list), defaultdict(list)]
    for side, some in zip(sides, (came, went), strict=True):
        for one in sorted(some, key=lambda one: (one.moment, one.list_id, one.row["contact_id"])):
            if one.address or not needs_address:
                side[person(one)].append(one)
    for key, arrivals in sides[0].items():
        for arrival, departure in zip(arrivals, sides[1].get(key, []), strict=False):
            if arrival.list_id != departure.list_id or arrival.moment >= departure.moment:
                yield arrival, departure


def _days(
    readings: Readings, list_id: int, first_on: dt.date, last: dt.date, flows: dict[dt.date, Counter[str]]
) -> Iterator[dict[str, Any]]:
    """The rows of one list, day by day."""
    name = readings.source.by("lists", "account", "list_id")[readings.account, list_id]["name"]
    covered, begun, is_new = readings.days_covered(list_id), min(flows), list_id in readings.new_lists
    size = active = 0
    for day in (begun + dt.timedelta(days=offset) for offset in range((last - begun).days + 1)):
        found, is_observed = flows.get(day, Counter()), day >= first_on
        is_told = (
            is_observed
            and (is_new or day > first_on)
            and (day in covered or day in flows or not covered or day < min(covered))
        )
        size += found["size"]
        active += found["active"]
        net = found["joined_count"] + found["moved_in_count"] - found["left_count"] - found["moved_out_count"]
        row = row_of("account list_id list_name day_on", readings.account, list_id, name, day)
        row |= {flow: found[flow] if is_told else None for flow in _FLOWS}
        row |= dict.fromkeys(("unsubscribed_count", "bounced_count"), 0 if is_told else None)
        row["net_change"] = net if is_told else None
        row["survivor_count"] = found["size"] if not is_new and day <= first_on else None
        row |= {"size": size if is_observed else None, "active_size": active if is_observed else None}
        yield row | {"days_covered": covered.get(day), "is_observed": is_observed}


@once
def account_daily(source: Source) -> Found:
    mails, is_told = campaign_daily(source), can_tell_openings(source)
    for mail in mails:
        sent = mail["sent_change"]
        mail["is_told"] = is_told[mail["account"], mail["campaign_id"]]
        mail["other_sent_change"] = 0 if sent is not None and mail["is_told"] else sent
    visits = [row for row in source.rows("timeline_visits") if row["visited_at"]]
    visits = [row | {"day_on": source.local_date(row["account"], row["visited_at"])} for row in visits]
    parts: dict[str, dict[tuple[Any, ...], Found]] = {
        "lists": grouped(list_growth_daily(source), "account", "day_on"),
        "mails": grouped(mails, "account", "observed_on"),
        "reviews": grouped(review_daily(source), "account", "day_on"),
        "social": grouped([row for row in social_daily(source) if row["day_on"]], "account", "day_on"),
        "visits": grouped(visits, "account", "day_on"),
    }
    first = {account: _first_day(source, account) for account in source.zones}
    last_asked: dict[str, dt.date] = {}
    for row in source.rows("sync.contact_coverage"):
        if day := source.local_date(row["account"], row["timeline_asked_at"]):
            last_asked[row["account"]] = max(day, last_asked.get(row["account"], day))
    keys = {key for days in parts.values() for key in days if source.is_plausible(*key)}
    found = [
        _day(key, {name: days.get(key, []) for name, days in parts.items()}, first[key[0]]) for key in keys
    ]
    read = days_read(source)
    for row in found:
        if row["post_count"] is None and read.get((row["account"], "social_posts"), {}).get(row["day_on"]):
            row["post_count"] = 0
        if not row["visit_count"] and row["day_on"] > last_asked[row["account"]]:
            row["visit_count"] = None
    return found


_UNUSUAL = {
    "joined_count": "New members",
    "left_count": "Members who left",
    "visit_count": "Visits",
    "good_count": "Good reviews",
    "bad_count": "Bad reviews",
    "online_review_count": "Reviews on review sites",
    "view_count": "Views of the feedback page",
    "positive_count": "Positive mentions",
    "negative_count": "Negative mentions",
    "social_click_change": "Clicks in social posts",
}
#: Figures that may have come about over several days → the column that says how many.
_SPANS = {
    "joined_count": "list_days_covered",
    "left_count": "list_days_covered",
    "social_click_change": "social_days_covered",
}


def anomalies(source: Source, campaigns: Found) -> Found:
    days = {(row["account"], row["day_on"]): row for row in account_daily(source)}
    sent_out = [row for row in campaigns if row["sent_at"] and row["sent_count"]]
    sent = {(row["account"], source.local_date(row["account"], row["sent_at"])) for row in sent_out}
    return [row for key in days for name in _UNUSUAL if (row := _anomaly(source, days, key, name, sent))]


def _anomaly(
    source: Source, days: dict[Any, dict[str, Any]], key: tuple[str, dt.date], name: str, sent: set[Any]
) -> dict[str, Any] | None:
    account, day = key

    def value(ago: int) -> float | None:
        row = days.get((account, day - dt.timedelta(days=ago)), {})
        span = _SPANS.get(name)
        return row.get(name) if span is None or row.get(span) == 1 else None

    weekdays = [
        [count for ago in range(first, 85, 7) if (count := value(ago)) is not None]
        for first in (7, 1, 2, 3, 4, 5, 6)
    ]
    found = value(0)
    if not 1 <= (source.today(account) - day).days <= 90 or len(weekdays[0]) < 6 or found is None:
        return None
    roots = [[_root(one) for one in some] for some in weekdays if some]
    middle = statistics.median(roots[0])
    spread = max(
        1.4826 * statistics.median(abs(one - statistics.median(some)) for some in roots for one in some), 1
    )
    low, high = max(0.0, max(middle - 4 * spread, 0) ** 2 / 4 - 0.375), (middle + 4 * spread) ** 2 / 4 - 0.375
    if low <= found <= high:
        return None
    mailed = not sent.isdisjoint({key, (account, day - dt.timedelta(days=1))})
    usual = math.floor(statistics.median(weekdays[0]) + 0.5)
    after = " (a campaign was just sent)" if mailed else ""
    sentence = f"{_UNUSUAL[name]}: {found} on {day:%A}, {day.day} {day:%B %Y}, usually {usual} on a {day:%A}"
    row = row_of("account day_on figure value usual_low usual_high", account, day, name, found, low, high)
    row |= {"sentence": sentence + after, "usual_value": statistics.median(weekdays[0])}
    return row | {"deviation": (_root(found) - middle) / spread, "is_after_campaign": mailed}


def _root(count: float) -> float:
    return 2 * math.sqrt(count + 0.375)


def _first_day(source: Source, account: str) -> dt.date:
    """From when on every list had been read that was there from the beginning."""
    readings = Readings(source, account)
    lists = grouped(source.of(account, "contacts", deleted=True), "list_id")
    return max(
        readings.day(readings.first(list_id, rows))
        for (list_id,), rows in lists.items()
        if list_id not in readings.new_lists
    )


def _day(key: tuple[Any, ...], rows: dict[str, Found], first_on: dt.date) -> dict[str, Any]:
    def total(part: str, name: str) -> float | None:
        counts = known(rows[part], name)
        return sum(counts) if counts else None

    def longest(part: str, name: str) -> int | None:
        return max(filter(None, known(rows[part], name)), default=None)

    def whole(name: str, mails: Found) -> float | None:
        return added(*(mail[name] for mail in mails)) if mails else None

    covered = [one for one in rows["mails"] if one["days_covered"] is not None]
    is_after = key[1] > first_on
    is_read = is_after and all(row["days_covered"] for row in rows["lists"] if row["size"])
    row = row_of("account day_on", *key)
    for name, column in (("member_count", "size"), ("active_member_count", "active_size")):
        row[name] = total("lists", column) if key[1] >= first_on else None
    row |= {name: total("lists", name) if is_after else None for name in _FLOWS}
    row["list_days_covered"] = longest("lists", "days_covered") if is_read else None
    row["mail_days_covered"] = longest("mails", "days_covered")
    for name in ("sent", "other_sent", "click", "bounced", "unsubscribed"):
        row[f"{name}_change"] = whole(f"{name}_change", covered)
    row["opened_change"] = whole("opened_change", [mail for mail in covered if mail["is_told"]])
    row["visit_count"] = len(rows["visits"])
    review = rows["reviews"][0] if rows["reviews"] else {}
    names = "good_count bad_count online_review_count average_rating positive_count negative_count view_count"
    row |= {name: review.get(name) for name in names.split()}
    row |= {name: total("social", name) for name in ("mention_count", "post_count")}
    row["social_days_covered"] = longest("social", "click_days_covered")
    return row | {"social_click_change": total("social", "click_change")}
