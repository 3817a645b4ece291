"""How the newest campaigns did, each against what is usual for the account."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pipelines.report import words
from pipelines.report.changes import Row
from pipelines.report.charts import Bar, bars
from pipelines.report.data import AccountData
from pipelines.report.html import Child, Html
from pipelines.report.parts import Heading, charts, named, note, section, table
from pipelines.report.sections.freshness import nothing

_SHOWN = 10
#: What every opened share on the page can mean; docs/marts.md says more.
OPENED = "Opened counts pictures that were loaded, by machines such as Apple Mail’s privacy protection, too: the clicked share is surer."
_MARK = " *"
_DOUBTED = "* The service states another share than its counts give: it may count every opening instead of every opened message."
_HEADINGS = [
    Heading("Campaign", is_number=False),
    Heading("Sent"),
    Heading("Opened"),
    Heading("Against usual", is_wide=True),
    Heading("Clicked"),
    Heading("Unsubscribed", is_wide=True),
]


def campaigns(account: AccountData) -> Html:
    """A chart of openings and clicks, and the counts."""
    anchor, title = f"{account.name}-campaigns", "Campaigns"
    newest = account.rows["campaigns"][:_SHOWN]
    if not newest:
        return section(anchor, title, "", nothing(account, "No campaign has been sent yet.", "campaigns", "campaign_stats"))
    return section(
        anchor,
        title,
        f"The {words.plural(len(newest), 'newest campaign')} that were sent." if len(newest) > 1 else "The one campaign that was sent.",
        charts(
            _chart("Opened, share of delivered messages", newest, "open_rate"),
            _chart("Clicked, share of delivered messages", newest, "click_rate"),
        ),
        table(_HEADINGS, [_row(row) for row in newest]),
        note(
            "“Against usual” is the opened share less the median of the account's campaigns of 90 days, in percentage points.", is_wide=True
        ),
        note(OPENED),
        note(_DOUBTED) if any(row["is_percent_inconsistent"] for row in newest) else None,
    )


def _chart(title: str, rows: Sequence[Row], column: str) -> Html:
    known = [row[column] for row in rows if row[column] is not None]
    usual = (statistics.median(known), f"median of these {words.share(statistics.median(known))}") if len(known) > 2 else None
    items = [Bar(row["subject"] or "(no subject)", row[column], words.share(row[column])) for row in rows]
    return bars(title, items, axis=words.whole_share, unit=0.01, reference=usual)


def _row(row: Row) -> list[Child]:
    when = words.day(row["sent_at"] or row["created_at"])
    kind = "automated" if row["type"] == "automated" else f"sent {when}" if row["sent_at"] else f"created {when}"
    is_doubted = bool(row["is_percent_inconsistent"])
    stated = f", stated as {row['opened_percent']:g} % opened" if is_doubted and row["opened_percent"] is not None else ""
    return [
        named(words.cut(row["subject"] or "(no subject)", 90), kind + stated),
        words.count(row["sent_count"]),
        words.share(row["open_rate"]) + (_MARK if is_doubted else ""),
        words.points(row["open_rate_over_median"]),
        words.share(row["click_rate"]),
        words.share(row["unsubscribe_rate"]),
    ]
