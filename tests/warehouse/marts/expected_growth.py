"""How lists grow, and the headline numbers by day, worked out without SQL."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

from tests.warehouse.marts.expected import Found, Source, grouped, once
from tests.warehouse.marts.expected_campaigns import campaign_daily
from tests.warehouse.marts.expected_reputation import review_daily
from tests.warehouse.marts.expected_social import social_daily


@once
def list_growth_daily(source: Source) -> Found:
    """Of a warehouse whose models are built for the first time: what changed before is not known."""
    contacts = source.rows("contacts", deleted=True)
    names = {(row["account"], row["list_id"]): row["name"] for row in source.rows("lists", deleted=True)}
    first = {
        account: source.local_date(account, min(_seen_at(row) for row in rows)) or dt.date.min
        for (account,), rows in grouped(contacts, "account").items()
    }
    found: Found = []
    for (account, list_id), rows in grouped(contacts, "account", "list_id").items():
        joined: Counter[dt.date | None] = Counter()
        left: Counter[dt.date | None] = Counter()
        active: Counter[dt.date | None] = Counter()
        for row in rows:
            begun_on = source.local_date(account, min(row["registered_at"] or _seen_at(row), _seen_at(row)))
            joined[begun_on] += 1
            active[begun_on] += row["status"] == "active"
            if row["_deleted_at"]:
                gone_on = source.local_date(account, row["_deleted_at"])
                left[gone_on] += 1
                active[gone_on] -= row["status"] == "active"
        days = sorted(day for day in {*joined, *left} if day)
        today = source.local_date(account, source.as_of(account)) or days[-1]
        size = active_size = 0
        for offset in range((max(days[-1], today) - days[0]).days + 1):
            day = days[0] + dt.timedelta(days=offset)
            size += joined[day] - left[day]
            active_size += active[day]
            is_observed = day >= first[account]
            found.append(
                {
                    **{"account": account, "list_id": list_id, "list_name": names[account, list_id], "day_on": day},
                    "joined_count": joined[day],
                    **dict.fromkeys(("unsubscribed_count", "bounced_count"), 0 if is_observed else None),
                    "left_count": left[day] if is_observed else None,
                    "net_change": joined[day] - left[day],
                    "size": size,
                    "active_size": active_size if is_observed else None,
                    "is_observed": is_observed,
                }
            )
    return found


def _seen_at(row: dict[str, Any]) -> dt.datetime:
    """When the only version that is known of a contact began."""
    moment: dt.datetime = row["_first_seen_at"] if row["_deleted_at"] else row["_changed_at"]
    return moment


def account_daily(source: Source) -> Found:
    parts: dict[str, dict[tuple[Any, ...], Found]] = {
        "lists": grouped(list_growth_daily(source), "account", "day_on"),
        "mails": grouped(campaign_daily(source), "account", "observed_on"),
        "reviews": grouped(review_daily(source), "account", "day_on"),
        "social": grouped([row for row in social_daily(source) if row["day_on"]], "account", "day_on"),
        "visits": grouped(
            [
                {**row, "day_on": source.local_date(row["account"], row["visited_at"])}
                for row in source.rows("timeline_visits")
                if row["visited_at"]
            ],
            "account",
            "day_on",
        ),
    }
    return [
        _day(key, {name: days.get(key, []) for name, days in parts.items()}) for key in {key for days in parts.values() for key in days}
    ]


def _day(key: tuple[Any, ...], rows: dict[str, Found]) -> dict[str, Any]:
    def total(part: str, name: str) -> float | None:
        known = [row[name] for row in rows[part] if row[name] is not None]
        return sum(known) if known else None

    review = rows["reviews"][0] if rows["reviews"] else {}
    names = ("good_count", "bad_count", "online_review_count", "average_rating", "positive_count", "negative_count", "view_count")
    return {
        "account": key[0],
        "day_on": key[1],
        "member_count": total("lists", "size"),
        "active_member_count": total("lists", "active_size"),
        "joined_count": total("lists", "joined_count"),
        "left_count": total("lists", "left_count"),
        "mail_days_covered": max((row["days_covered"] for row in rows["mails"] if row["days_covered"]), default=None),
        **{f"{name}_change": total("mails", f"{name}_change") for name in ("sent", "opened", "click", "bounced", "unsubscribed")},
        "visit_count": len(rows["visits"]),
        **{name: review.get(name) for name in names},
        "mention_count": total("social", "mention_count"),
        "post_count": total("social", "post_count"),
        "social_click_change": total("social", "click_change"),
    }
