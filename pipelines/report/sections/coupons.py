"""From issued to redeemed."""

from __future__ import annotations

from pipelines.report import words
from pipelines.report.changes import Row
from pipelines.report.charts import Bar, bars
from pipelines.report.data import AccountData
from pipelines.report.html import Child, Html
from pipelines.report.parts import Heading, charts, section, table
from pipelines.report.sections.freshness import nothing

_MONTHS = 6
_HEADINGS = [
    Heading("Issued in", is_number=False),
    Heading("Issued"),
    Heading("Redeemed"),
    Heading("Share"),
    Heading("Median days", is_wide=True),
]


def coupons(account: AccountData) -> Html:
    """How many coupons were given and redeemed, and how long that took."""
    anchor, title = f"{account.name}-coupons", "Coupons"
    rows = account.rows["coupons"]
    issued, redeemed = (sum(row[name] or 0 for row in rows) for name in ("issued_count", "redeemed_count"))
    if not issued:
        return section(anchor, title, "", nothing(account, "No coupon has been given yet.", "lists", "contacts", "contact coupons"))
    shown = [
        Bar("Issued", issued, words.count(issued)),
        Bar("Redeemed", redeemed, f"{words.count(redeemed)}, {words.share(redeemed / issued)}"),
    ]
    months = [row for row in rows if row["issued_month"] != "unknown"][:_MONTHS]
    return section(
        anchor,
        title,
        "From issued to redeemed.",
        charts(bars("Coupons of all time", shown, axis=words.count)),
        table(_HEADINGS, [_row(row) for row in months]) if months else None,
    )


def _row(row: Row) -> list[Child]:
    days = row["median_days_to_redeem"]
    return [
        row["issued_month"],
        words.count(row["issued_count"]),
        words.count(row["redeemed_count"]),
        words.share(row["redemption_rate"]),
        words.UNKNOWN if days is None else f"{days:.0f}",
    ]
