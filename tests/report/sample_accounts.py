"""Accounts with every kind of row of the report, as its queries return them."""

import datetime as dt
import zlib
from typing import Any

import duckdb
import pyarrow as pa

from report.queries import QUERIES, AccountData, ReportData
from report.render import render_report
from warehouse.policies import PersonalData
from warehouse.publish import Published
from warehouse.sql import fetch_records

TODAY = dt.date(2026, 3, 20)
NOW = dt.datetime(2026, 3, 20, 2, 30, tzinfo=dt.UTC)
HOSTILE = (
    "</p><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp; \u202egnirts \x00 javascript:alert(3)"
)


COUNTS = ("left_count", "visit_count", "good_count", "bad_count", "mention_count", "social_click_change")
SUMMED = ("joined_count", "online_review_count", "redeemed_count", "sent_count", "opened_count")
DAYS = pa.schema([("day_on", pa.date32()), *((name, pa.int64()) for name in (*COUNTS, *SUMMED))])


#: Opening a database takes longer than filling it.
_EMPTY = duckdb.connect()


def weeks_of(days: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What `weeks.sql` finds of these days of `account_daily`; `period_summary` adds up its own columns of
    them."""
    with _EMPTY.cursor() as connection:
        connection.begin()
        connection.execute("create schema marts")
        connection.register("days", pa.Table.from_pylist(days, schema=DAYS))
        connection.execute("create table marts.account_daily as select 'main' as account, * from days")
        connection.execute(
            "create table marts.period_summary as select account, 'week' as period, "
            "date_trunc('week', day_on)::date as begins_on, 1 as campaign_count, 0.5 as open_rate, "
            "0.1 as click_rate, 4.5 as average_rating, 3 as rating_count, 2 as clicker_count, "
            f"{', '.join(f'sum({name}) as {name}' for name in SUMMED)} from marts.account_daily group by all"
        )
        connection.execute(
            "create table marts.automation_activity as "
            f"select 'main' as account, date '{TODAY}' as triggered_on, 1 as triggered_count"
        )
        connection.execute(f"set variable today = date '{TODAY}'")
        return fetch_records(connection, QUERIES["weeks"], {"account": "main"})


def account(name: str = "main", *, has_texts: bool = True, **rows: list[dict[str, Any]]) -> AccountData:
    if "days" in rows:
        rows = {"weeks": weeks_of(rows["days"])} | rows
    return AccountData(name, NOW, TODAY, "Europe/Berlin", {key: [] for key in QUERIES} | rows, NOW, has_texts)


def page(*accounts: AccountData) -> str:
    return render_report(ReportData(Published(NOW, NOW, PersonalData.KEEP, 1, 1), accounts))


def campaign(subject: str, **values: Any) -> dict[str, Any]:
    counts = {"sent_count": 100, "delivered_count": 98, "opened_count": 40, "clicker_count": 9}
    counts |= {"bounced_count": 2, "unsubscribed_count": 1}
    rates = {"open_rate": 0.41, "click_rate": 0.09, "bounce_rate": 0.02, "unsubscribe_rate": 0.01}
    return {
        "campaign_id": zlib.crc32(subject.encode()),
        "campaign_count": 1,
        "comparable_count_90d": 4,
        "subject": subject,
        "name": None,
        "type": "standard",
        "sent_at": NOW,
        "created_at": NOW,
        **counts,
        **rates,
        "median_open_rate_90d": 0.3,
        "open_rate_over_median": 0.11,
        "opened_percent": 41.0,
        "is_percent_inconsistent": False,
        **values,
    }


def review(words_: str, username: str | None = None) -> dict[str, Any]:
    return {
        "reviewed_at": NOW,
        "channel": "Yelp",
        "rating": "4.0 of 5",
        "username": username,
        "inquiry": words_,
    }


FULL = {
    "business": [{"business_name": "Harbor & Sons", "timezone": "Europe/Berlin"}],
    "campaigns": [
        campaign("Spring <b>menu</b>"),
        campaign("No rate", open_rate=None, open_rate_over_median=None),
        campaign("Third"),
    ],
    "days": [
        dict.fromkeys((*COUNTS, *SUMMED), 2)
        | {
            "day_on": TODAY - dt.timedelta(days=back),
            "member_count": 500 - back,
            "active_member_count": 400 - back,
        }
        for back in reversed(range(20))
    ],
    "spans": [
        {"begins_on": TODAY, "campaign_count": 2, "delivered_count": 98, "opened_count": 40}
        | {
            "clicker_count": 9,
            "online_review_count": 3,
            "average_rating": 4.1,
            "rating_count": 3,
            "redeemed_count": 5,
        },
        *[
            dict.fromkeys(
                (
                    "begins_on",
                    "campaign_count",
                    "delivered_count",
                    "opened_count",
                    "clicker_count",
                    "online_review_count",
                    "average_rating",
                    "rating_count",
                    "redeemed_count",
                )
            )
        ]
        * 2,
    ],
    "site_months": [
        {
            "channel": "Yelp",
            "begins_on": TODAY.replace(day=1),
            "review_count": 2,
            "average_rating": 2.5,
        }
    ],
    "campaign_links": [
        {"campaign_id": zlib.crc32(b"Third"), "link": "Menu", "clicker_count": 4, "click_count": 5}
    ],
    "campaign_days": [
        {
            "campaign_id": zlib.crc32(b"Third"),
            "observed_on": TODAY - dt.timedelta(days=back),
            "opened_count": 9 - back,
        }
        for back in (2, 1, 0)
    ],
    "lifecycle_weeks": [
        {"begins_on": TODAY - dt.timedelta(days=7 * back + 6), "gained": 21, "lost": 7} for back in (2, 1, 0)
    ],
    "lifecycle_messages": [{"message": "Spring menu", "at_risk": 3, "unsubscribed": 1, "bounced": 0}],
    "lifecycle_regained": [{"message": "Spring menu", "won_back": 2}],
    "waiting": [
        {
            "reviewed_at": NOW,
            "days_since_review": 0,
            "email": "ann@example.com",
            "phone": None,
            "inquiry": "Cold soup.",
        }
        | {"engagement_tier": None, "message_count": 0, "waiting": 1}
    ],
    "months": [
        {
            "begins_on": TODAY.replace(day=1),
            "is_over": False,
            "campaign_count": 1,
            "sent_count": 12,
            "opened_count": 6,
            "clicker_count": 1,
            "open_rate": 0.5,
            "click_rate": 0.1,
            "joined_count": 4,
        }
        | {"online_review_count": 2, "average_rating": 2.5, "rating_count": 2, "redeemed_count": 1}
    ],
    "automations": [
        {
            "automation": "Welcome <i>",
            "subject": "Hello",
            "message_text": None,
            "step_count": 1,
            "channel": "email",
            "last_sent_on": TODAY,
            "week_count": 1,
            "sent_count": 6,
            "opened_count": 3,
            "clicked_count": 0,
            "open_rate": 0.5,
            "click_rate": 0.0,
        }
    ],
    "lists": [
        {
            "name": "News",
            "size": 500,
            "active_size": 400,
            "joined_count": 1,
            "left_count": None,
            "moved_count": None,
        }
    ],
    "tiers": [
        {"engagement_tier": "engaged", "addresses": 3, "without_timeline": 1},
        {"engagement_tier": "odd", "addresses": 1, "without_timeline": 1},
    ],
    "channels": [
        {
            "channel": "Yelp",
            "kind": "review site",
            "average_rating": 4.25,
            "average_rating_change_28d": -0.1,
            "served_review_count_before": 1,
            "served_review_count": 11,
            "review_count": 9,
            "review_count_28d": 2,
            "good_rate_28d": None,
            "positive_rate_28d": 0.5,
            "last_review_at": NOW,
        }
    ],
    "reviews": [review("Fine.", "Ann L.")],
    "networks": [{"network": "linkedin", "mention_count": None, "post_count": 1}],
    "posts": [{"network": "facebook", "published_at": NOW, "message": "Look!", "click_count": None}],
    "coupons": [
        {
            "begins_on": TODAY.replace(day=1),
            "issued_count": 4,
            "redeemed_count": 1,
            "redemption_rate": 0.25,
            "median_days_to_redeem": 2.0,
        }
    ],
    "freshness": [
        {
            "subject": "contact timelines",
            "as_of": NOW,
            "coverage_rate": 0.4,
            "part_count": 10,
            "read_part_count": 4,
            "is_overdue": True,
            "rejected_count": 0,
            "odd_date_count": 0,
            "reason": "not asked yet",
        }
    ],
}
