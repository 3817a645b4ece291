"""What people say: reviews, ratings and their newest words."""

from __future__ import annotations

from pipelines.report import words
from pipelines.report.changes import Row, by_week
from pipelines.report.charts import Bar, bars, columns
from pipelines.report.data import AccountData
from pipelines.report.html import Child, Html, tag
from pipelines.report.parts import Heading, charts, note, section, subheading, table
from pipelines.report.sections.freshness import nothing

_WEEKS = 13
_LONGEST = 420
_HEADINGS = [
    Heading("Channel", is_number=False),
    Heading("Rating"),
    Heading("Change, 28 days", is_wide=True),
    Heading("Reviews, 28 days"),
    Heading("Good reviews, 28 days"),
    Heading("Positive mentions, 28 days", is_wide=True),
    Heading("Newest", is_wide=True),
]


def reputation(account: AccountData) -> Html:
    """Good and bad reviews by week, how each channel stands, and the newest reviews."""
    anchor, title = f"{account.name}-reputation", "Reputation"
    if not account.rows["channels"] and not account.rows["reviews"]:
        return section(anchor, title, "", nothing(account, "There are no reviews yet.", "direct_reviews", "online_reviews"))
    channels = [_channel(row) for row in account.rows["channels"]]
    return section(
        anchor,
        title,
        "Reviews on the feedback page and on review sites.",
        charts(_weeks(account), _ratings(account)),
        table(_HEADINGS, channels) if channels else None,
        note("Good and bad are reviews on the feedback page, positive are mentions on a site as the service judges them.")
        if channels
        else None,
        subheading("Latest reviews") if account.rows["reviews"] else None,
        tag("ul", *(_review(row, account.has_texts) for row in account.rows["reviews"]), look="quotes")
        if account.rows["reviews"]
        else None,
        None if account.has_texts else note("Names and words of reviewers are left out, as the setting for personal data asks for."),
    )


def _weeks(account: AccountData) -> Html | None:
    items = by_week(account.rows["days"], "good_count", "bad_count", account.today, _WEEKS)
    if not any(item.up or item.down for item in items):
        return None
    return columns("Good and bad reviews on the feedback page, by week", items, names=("good", "bad"), unit="reviews")


def _ratings(account: AccountData) -> Html | None:
    rated = [row for row in account.rows["channels"] if row["average_rating"] is not None]
    items = [Bar(row["channel"], row["average_rating"], words.rating(row["average_rating"])) for row in rated]
    return bars("Average rating on review sites, of 5", items, axis=words.count, top=5) if items else None


def _channel(row: Row) -> list[Child]:
    return [
        row["channel"],
        words.rating(row["average_rating"]),
        words.change(row["average_rating_change_28d"], 1),
        words.count(row["review_count_28d"]),
        words.share(row["good_rate_28d"]),
        words.share(row["positive_rate_28d"]),
        words.day(row["last_review_at"]),
    ]


def _review(row: Row, has_texts: bool) -> Html:
    """The words are set apart, so that a text that runs from right to left does not turn what is around it."""
    by = [tag("span", ", by "), tag("bdi", words.cut(row["username"], 60))] if has_texts and row["username"] else None
    judged = [tag("span", row["rating"], look="strong"), " · "] if row["rating"] else None
    about = tag(
        "p",
        judged,
        row["channel"] or "",
        by,
        tag("span", f" · {words.day(row['reviewed_at'])}", look="muted"),
        look="small",
        style="margin:0",
    )
    said = words.cut("\n".join(filter(None, map(str.strip, (row["inquiry"] or "").splitlines()))), _LONGEST) if has_texts else ""
    return tag("li", about, tag("blockquote", said, look="words", dir="auto") if said else None, look="quote")
