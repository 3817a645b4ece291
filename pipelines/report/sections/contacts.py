"""How the lists grow, and how engaged the people on them are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from pipelines.report import words
from pipelines.report.changes import Row, by_week
from pipelines.report.charts import columns, line, stack, swatch
from pipelines.report.data import AccountData
from pipelines.report.html import Child, Html, tag
from pipelines.report.parts import Heading, charts, note, section, table
from pipelines.report.sections.freshness import nothing

_DAYS = 90
#: Tiers in the order of worth, with their rule in words; `marts.contact_engagement` defines them.
TIERS = {
    "engaged": "opened, clicked or visited within 90 days",
    "new": "registered within 30 days, not active yet",
    "cooling": "active within a year, not within 90 days",
    "quiet": "hardly mailed, or not active for a year",
    "dormant": "mailed three times or more in 180 days without a reaction",
    "unreachable": "unsubscribed, bounced or never confirmed",
}


def growth(account: AccountData) -> Html:
    """Size and movement of all lists together, and each list's size."""
    anchor, title = f"{account.name}-growth", "List growth"
    first = account.today - dt.timedelta(days=_DAYS)
    days = [row for row in account.rows["days"] if row["day_on"] > first and row["member_count"] is not None]
    if not days:
        return section(anchor, title, "", nothing(account, "There are no lists, or no contacts in them.", "lists", "contacts"))
    pictures = charts(_size(days), _movement(days, account.today))
    seen = note("Who joined, left or moved to another list stands on the night that first showed it. Moved: came minus went.")
    return section(anchor, title, f"Contacts of all lists over the last {_DAYS} days.", pictures, _lists(account), seen)


def _size(days: Sequence[Row]) -> Html | None:
    return line("Contacts", [(row["day_on"], row["member_count"]) for row in days], shown=words.count)


def _movement(days: Sequence[Row], today: dt.date) -> Html | None:
    items = by_week(days, "joined_count", "left_count", today, (today - min(row["day_on"] for row in days)).days // 7 + 1)
    if not any(item.up or item.down for item in items):
        return None
    return columns("Contacts that joined and left, by week", items, names=("joined", "left"), unit="contacts")


def _lists(account: AccountData) -> Html | None:
    headings = [
        Heading("List", is_number=False),
        Heading("Contacts"),
        Heading("Joined, 7 days", is_wide=True),
        Heading("Left, 7 days", is_wide=True),
        Heading("Moved, 7 days", is_wide=True),
        Heading("Net, 7 days"),
    ]
    rows = [
        [
            row["name"] or "(no name)",
            words.count(row["size"]),
            words.count(row["joined_7d"]),
            words.count(row["left_7d"]),
            words.change(row["moved_7d"]),
            words.change(row["net_7d"]),
        ]
        for row in account.rows["lists"]
    ]
    return table(headings, rows) if rows else None


def engagement(account: AccountData) -> Html:
    """How many people are in which tier, and what the tiers mean."""
    anchor, title = f"{account.name}-engagement", "Engagement"
    counts = {row["engagement_tier"]: row["addresses"] for row in account.rows["tiers"]}
    if not counts:
        return section(anchor, title, "", nothing(account, "There are no contacts yet.", "lists", "contacts"))
    tiers = [(tier, counts.get(tier, 0)) for tier in TIERS] + [(tier, number) for tier, number in counts.items() if tier not in TIERS]
    people = sum(counts.values())
    rows: list[list[Child]] = [
        [
            [swatch(place, len(tiers)), tier.capitalize(), tag("span", TIERS.get(tier, ""), look="under")],
            words.count(number),
            words.share(number / people),
        ]
        for place, (tier, number) in enumerate(tiers)
    ]
    unread = account.rows["tiers"][0]["without_timeline"]
    return section(
        anchor,
        title,
        "Every address once, in the first tier that fits.",
        stack("People by tier", [(tier.capitalize(), number) for tier, number in tiers], unit="people"),
        table([Heading("Tier", is_number=False), Heading("People"), Heading("Share")], rows),
        note(f"The timelines of {words.plural(int(unread), 'address', 'addresses')} have not been read yet.") if unread else None,
    )
