"""Reviews, sentiment and statistics of a made-up account."""

import datetime as dt

from tests.warehouse.marts.made import Made
from tests.warehouse.marts.rows import Row

_SITES = ("Yelp", "Google Places", "TripAdvisor")
_DAYS = 120


def reputation_rows(made: Made) -> dict[str, list[Row]]:
    """Four months; days without a review have no row of statistics."""
    days = [made.today - dt.timedelta(days=back) for back in range(_DAYS)]

    def some(most: int) -> int | None:
        return None if made.chance(0.05) else made.draw.randint(0, most)

    rows: dict[str, list[Row]] = {"review_stats": [], "feedback_views": [], "social_media_stats": []}
    for day in days[1:]:
        if made.chance(0.5):
            counts = (made.draw.randint(0, 3), some(2))
            rows["review_stats"].append(made.row("period_on good_count bad_count", day, *counts))
    for day in days:
        if made.chance(0.9):
            rows["feedback_views"].append(made.row(period_on=day, view_count=made.draw.randint(0, 60)))
    for day in days:
        for network in ("facebook", "yelp"):
            if made.chance(0.9):
                row = made.row("period_on network mention_count", day, network, some(9))
                rows["social_media_stats"].append(row)
    return rows | {
        "direct_reviews": _direct(made),
        "online_reviews": _online(made),
        "online_review_channels": _channels(made),
        "sentiment_mentions": _sentiment(made, days),
    }


def _direct(made: Made) -> list[Row]:
    """Every fourth is bad: of contacts in either spelling, of others and of nobody; some have notes."""
    good = {"email": "someone@example.com", "rating": "Good"}
    some = [
        made.row(review_id=number, reviewed_at=made.moment(made.draw.random() * _DAYS), **good)
        for number in range(80)
    ]
    for number, row in enumerate(some[::4]):
        comer = f"omer{30_000 + 4 * number}"
        emails = (f"c{comer}@example.com", f" C{comer}@Example.com", "someone@example.com", "", None)
        row |= {"rating": "Bad", "email": emails[number % 5], "inquiry": "Cold soup"}
        row["phone"] = " 555 " if number % 3 else ""
        row["notes"] = (None, "", "Called", None, " ")[number // 2 % 5]
    return some


def _online(made: Made) -> list[Row]:
    """Near the edges of days, so the zone matters; some without rating or date, one from a wrong clock."""
    rows = []
    for number in range(150):
        site, at = made.draw.choice(_SITES), made.moment(-9000) if number == 8 else None
        if number not in (7, 8):
            at = made.moment(made.draw.randint(0, _DAYS) + made.draw.choice([0.0, 0.02, 0.12, 0.5]))
        rating = None if made.chance(0.1) else float(made.draw.randint(1, 5))
        rows.append(made.row("review_key channel reviewed_at rating", f"r{number}", site, at, rating))
    return rows


def _channels(made: Made) -> list[Row]:
    columns = "channel observed_on average_rating review_count"
    rows = [
        made.row(columns, site, night, round(3 + made.draw.random(), 1), 20 + place)
        for place, site in enumerate(_SITES)
        for night in made.nights
        if made.chance(0.9)
    ]
    return [*rows, made.row(columns, "Zagat", made.today, None, 0)]


def _sentiment(made: Made, days: list[dt.date]) -> list[Row]:
    rows = []
    for number in range(120):
        polarity = made.draw.choice(["positive", "positive", "negative", "neutral"])
        channel = None if number == 9 else made.draw.choice((*_SITES, "A blog"))
        on = None if number == 8 else made.draw.choice(days)
        rows.append(made.row("mention_key polarity channel reviewed_on", f"m{number}", polarity, channel, on))
    return rows
