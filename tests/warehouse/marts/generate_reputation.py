"""Reviews, sentiment and statistics of a made-up account."""

from __future__ import annotations

import datetime as dt

from tests.warehouse.marts.made import Made
from tests.warehouse.marts.rows import Row

_SITES = ("Yelp", "Google Places", "TripAdvisor")
_DAYS = 120


def reputation_rows(made: Made) -> dict[str, list[Row]]:
    """Four months; days without a review have no row of statistics."""
    days = [made.today - dt.timedelta(days=back) for back in range(_DAYS)]
    return {
        "review_stats": _stats(made, days),
        "feedback_views": [
            made.row(period_on=day, view_count=made.draw.randint(0, 60)) for day in days if made.chance(0.9)
        ],
        "social_media_stats": _mentions_by_network(made, days),
        "direct_reviews": _direct(made),
        "online_reviews": _online(made),
        "online_review_channels": _channels(made),
        "sentiment_mentions": _sentiment(made, days),
    }


def _stats(made: Made, days: list[dt.date]) -> list[Row]:
    return [
        made.row(
            period_on=day,
            good_count=made.draw.randint(0, 3),
            bad_count=None if made.chance(0.05) else made.draw.randint(0, 2),
        )
        for day in days[1:]
        if made.chance(0.5)
    ]


def _mentions_by_network(made: Made, days: list[dt.date]) -> list[Row]:
    return [
        made.row(
            period_on=day,
            network=network,
            mention_count=None if made.chance(0.05) else made.draw.randint(0, 9),
        )
        for day in days
        for network in ("facebook", "yelp")
        if made.chance(0.9)
    ]


def _direct(made: Made) -> list[Row]:
    """Every fourth is bad: of contacts in either spelling, of others and of nobody; some have notes."""
    some = [
        made.row(
            review_id=number,
            email="someone@example.com",
            reviewed_at=made.moment(made.draw.random() * _DAYS),
            rating="Good",
        )
        for number in range(80)
    ]
    for number, row in enumerate(some[::4]):
        emails = (
            f"comer{30_000 + 4 * number}@example.com",
            f" Comer{30_000 + 4 * number}@Example.com",
            "someone@example.com",
            "",
            None,
        )
        notes = (None, "", "Called", None, " ")[number // 2 % 5]
        row |= {
            "rating": "Bad",
            "email": emails[number % 5],
            "phone": " 555 " if number % 3 else "",
            "notes": notes,
            "inquiry": "Cold soup",
        }
    return some


def _online(made: Made) -> list[Row]:
    """Near the edges of days, so the zone matters; some without rating or date, one from a wrong clock."""
    return [
        made.row(
            review_key=f"r{number}",
            channel=made.draw.choice(_SITES),
            reviewed_at=made.moment(-9000)
            if number == 8
            else None
            if number == 7
            else made.moment(made.draw.randint(0, _DAYS) + made.draw.choice([0.0, 0.02, 0.12, 0.5])),
            rating=None if made.chance(0.1) else float(made.draw.randint(1, 5)),
        )
        for number in range(150)
    ]


def _channels(made: Made) -> list[Row]:
    rows = [
        made.row(
            channel=site,
            observed_on=night,
            average_rating=round(3 + made.draw.random(), 1),
            review_count=20 + place,
        )
        for place, site in enumerate(_SITES)
        for night in made.nights
        if made.chance(0.9)
    ]
    return [*rows, made.row(channel="Zagat", observed_on=made.today, average_rating=None, review_count=0)]


def _sentiment(made: Made, days: list[dt.date]) -> list[Row]:
    return [
        made.row(
            mention_key=f"m{number}",
            polarity=made.draw.choice(["positive", "positive", "negative", "neutral"]),
            channel=None if number == 9 else made.draw.choice((*_SITES, "A blog")),
            reviewed_on=None if number == 8 else made.draw.choice(days),
        )
        for number in range(120)
    ]
