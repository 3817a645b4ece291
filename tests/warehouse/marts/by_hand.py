"""An account of a handful of rows, and what marts must make of it, worked out by hand.

It is in Berlin (an hour ahead of UTC in March), was asked on 17, 18 and 20 March 2026, and missed the 19th.
"""

import datetime as dt
import json
from typing import Any
from zoneinfo import ZoneInfo

from tests.warehouse.marts.made import NOW
from tests.warehouse.marts.rows import Row

ACCOUNT, ZONE = "small", ZoneInfo("Europe/Berlin")
_MENU = "https://shop.example.com/menu"
_LINK = "campaign_id url observed_on message clicker_count click_count"
_CONTACT = "list_id contact_id email status registered_at"
_AUTOMATION = "contact_id automation_key name type triggered_at details"
_CAMPAIGN = "campaign_id type status subject created_at"


def at(text: str) -> dt.datetime:
    """`18 23:30`: a day of March 2026 and a time in UTC."""
    return dt.datetime.strptime(f"2026-03-{text}", "%Y-%m-%d %H:%M").replace(tzinfo=dt.UTC)


def on(day: int) -> dt.date:
    return dt.date(2026, 3, day)


def row(columns: str, *values: Any) -> Row:
    return dict(zip(columns.split(), values, strict=True))


def _rows(*some: Row) -> list[Row]:
    return [
        {"account": ACCOUNT, "_first_seen_at": at("17 02:30"), "_changed_at": at("17 02:30"), **one}
        for one in some
    ]


def _stats(campaign_id: int, day: int, opened: int, unopened: int, bounced: int, unsubscribed: int) -> Row:
    columns = "campaign_id observed_on opened_count unopened_count bounced_count unsubscribed_count"
    return row(columns, campaign_id, on(day), opened, unopened, bounced, unsubscribed)


def _details(**values: str) -> str:
    return json.dumps([{"key": name.replace("_", "-"), "value": value} for name, value in values.items()])


def _sent(contact_id: int, subject: str, when: str, opened: str, clicks: str) -> Row:
    details = _details(subject=subject, open_date=opened, links_clicked=clicks)
    occurred = {"key": "email-campaign-sent", "snippet": subject, "occurred_at": at(when)}
    return {"contact_id": contact_id, "event_key": f"e{contact_id}", **occurred, "details": details}


CAMPAIGNS = {
    "campaigns": _rows(
        row(_CAMPAIGN, 1, "standard", "sent", "Spring menu", at("10 08:00")),
        # the 19th in Berlin: it did not exist when the account was asked on the 18th
        row(_CAMPAIGN, 2, "standard", "sent", "Easter", at("18 23:30")),
    ),
    "campaign_stats": _rows(
        *(_stats(1, 17, 2, 7, 1, 0), _stats(1, 18, 3, 6, 1, 0), _stats(1, 20, 5, 4, 1, 1)),
        _stats(2, 20, 1, 1, 0, 0) | {"opened_percent": 366.67},
    ),
    "campaign_links": _rows(
        row(_LINK, 1, _MENU, on(18), "Menu", 1, 1),
        row(_LINK, 1, _MENU, on(20), "Menu", 2, 3),
    ),
    "campaign_clickers": _rows(
        {"campaign_id": 1, "url": _MENU, "email": "anna@example.com", "click_count": 2},
        {"campaign_id": 1, "url": _MENU, "email": "ben@example.org", "click_count": 1},
    ),
}

CONTACTS = {
    "lists": _rows({"list_id": 1, "name": "News"}, {"list_id": 2, "name": "Events"}),
    "contacts": _rows(
        row(_CONTACT, 1, 1, "anna@example.com", "active", at("01 12:00")),
        row(_CONTACT, 1, 2, "ben@example.org", "active", at("18 23:30"))
        | dict.fromkeys(("_first_seen_at", "_changed_at"), at("20 02:30")),
        row(_CONTACT, 2, 3, "ANNA@example.com", "unsubscribed", at("02 12:00")),
        row(
            "list_id contact_id email status _deleted_at", 2, 4, "carl@example.net", "bounced", at("18 02:30")
        ),
    ),
    "timeline_events": _rows(
        _sent(1, "Spring menu", "16 09:00", "2026-03-16 11:30 AM", '{"1": "/a", "2": "/b"}'),
        _sent(2, "Easter", "19 10:00", "N/A", "0"),
    ),
    "timeline_visits": _rows(
        row(
            "contact_id visit_key link utm_campaign utm_medium visited_at",
            1,
            "v1",
            _MENU,
            "spring",
            "email",
            at("16 10:40"),
        )
    ),
    "timeline_automations": _rows(
        row(
            _AUTOMATION,
            1,
            "a1",
            "Welcome",
            "email",
            at("01 13:00"),
            _details(subject="Hello", open_date="-", click_date="-"),
        ),
        row(
            _AUTOMATION,
            2,
            "a2",
            "Reminder",
            "sms",
            at("19 13:00"),
            _details(message="Your table tonight", send_date="2026-03-19 02:00 PM"),
        ),
    ),
    "coupons": _rows(
        row("coupon_id email coupon_code is_redeemed redeemed_on", 1, "anna@example.com", "A1", True, on(18)),
        {"coupon_id": 2, "email": "ben@example.org", "coupon_code": "B1", "is_redeemed": False},
    ),
}

GOALS = {
    "goals": _rows(
        {
            "goal_id": 1,
            "name": "Menu",
            "value_type": "Fixed",
            "value": 80,
            "links": [f"{_MENU}/?from=goal"],
            "type": "Event Triggered",
        },
        {
            "goal_id": 2,
            "name": "Menu and table",
            "value_type": "Variable",
            "links": [_MENU, "https://shop.example.com/book"],
        }
        | {"event_link_rule": "All of the links are clicked"},
    )
}

REPUTATION = {
    "review_stats": _rows({"period_on": on(18), "good_count": 3, "bad_count": 1}),
    "direct_reviews": _rows(
        {"review_id": 1, "reviewed_at": at("18 12:00"), "rating": "Good"},
        row(
            "review_id reviewed_at rating email inquiry", 2, at("15 23:30"), "Bad", "Anna@example.com", "Cold"
        ),  # the 16th
        {"review_id": 3, "reviewed_at": at("18 12:00"), "rating": "Bad", "notes": "Called back"},
    ),
    "feedback_views": _rows({"period_on": on(18), "view_count": 8}, {"period_on": on(20), "view_count": 4}),
    "online_reviews": _rows(
        row("review_key channel reviewed_at rating", "r1", "Yelp", at("18 23:30"), 4.0),  # the 19th in Berlin
        {"review_key": "r2", "channel": "Yelp", "reviewed_at": at("19 12:00"), "rating": 1.0},
    ),
    "online_review_channels": _rows(
        {"channel": "Yelp", "observed_on": on(20), "average_rating": 3.9, "review_count": 2}
    ),
    "sentiment_mentions": _rows(
        {"mention_key": "m1", "polarity": "positive", "channel": "Yelp", "reviewed_on": on(19)}
    ),
}

SOCIAL = {
    "social_posts": _rows(
        row(
            "post_id network message scheduled_at",
            1,
            "facebook",
            "Look: https://go.example.com/a1.",
            at("18 17:00"),
        ),
        {"post_id": 2, "network": "facebook", "message": "Soon", "scheduled_at": at("25 17:00")},
    ),
    "social_links": _rows(
        row("link_id short_url created_at track_count", 1, "https://go.example.com/a1", at("18 17:00"), 9),
        row(
            "link_id short_url created_at track_count", 2, "https://go.example.com/b2", at("18 17:00"), 0
        ),  # nobody clicked it
    ),
    "social_link_clicks": _rows(
        {"link_id": 1, "network": "facebook", "observed_on": on(18), "click_count": 2},
        {"link_id": 1, "network": "facebook", "observed_on": on(20), "click_count": 6},
        {"link_id": 1, "network": "twitter", "observed_on": on(20), "click_count": 3},
    ),
    "social_media_stats": _rows({"period_on": on(20), "network": "facebook", "mention_count": 7}),
}


def _read(table: str, scope: str, *, is_complete: bool = True) -> Row:
    return row(
        "account table_name scope as_of is_complete reason", ACCOUNT, table, scope, NOW, is_complete, None
    )


SYNC = {
    "business": _rows({"business_id": 1, "timezone": "Europe/Berlin"}),
    "sync.coverage": [
        *(
            _read(table, "2026-03-18..2026-03-20")
            for table in ("review_stats", "feedback_views", "social_posts")
        ),
        _read("sentiment_mentions", "2026-03-18..2026-03-20", is_complete=False),
        _read("social_link_clicks", "all"),
        _read("contacts", "list_id=1"),
        _read("contacts", "list_id=2", is_complete=False),
        _read("timeline_events", "all") | {"due_at": NOW + dt.timedelta(days=6)},
    ],
    "sync.readings": [
        {
            **row("account table_name scope timezone", ACCOUNT, "contacts", f"list_id={list_id}", str(ZONE)),
            **{"as_of": at(f"{day} 02:30"), "is_complete": True},
        }
        for day in (17, 18, 20)
        for list_id in (1, 2)
    ],
    "sync.contact_coverage": [
        {"account": ACCOUNT, "contact_id": number, "timeline_asked_at": NOW - dt.timedelta(hours=6)}
        for number in (1, 3)  # of Ben nothing was read
    ],
}

PARTS = (CAMPAIGNS, CONTACTS, GOALS, REPUTATION, SOCIAL, SYNC)
