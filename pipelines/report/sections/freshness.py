"""How complete and how fresh the data is: what a reader has to know before trusting the rest."""

from __future__ import annotations

from pipelines.freshness import standstill
from pipelines.report import words
from pipelines.report.changes import Row
from pipelines.report.data import AccountData
from pipelines.report.html import Child, Html, tag
from pipelines.report.parts import Heading, empty, named, section, table

_HEADINGS = [Heading("Data", is_number=False), Heading("Read"), Heading("As of", is_wide=True), Heading("Not readable")]
#: The two that are asked person by person: always shown.
_BY_CONTACT = ("contact timelines", "contact coupons")


def freshness(account: AccountData) -> Html:
    """Whether everything was read, and what was not."""
    anchor, title = f"{account.name}-data", "How complete this is"
    rows = account.rows["freshness"]
    if not rows:
        return section(anchor, title, "", empty("Nothing is known about it yet."))
    lacking = [row for row in rows if is_lacking(row)]
    shown = lacking + [row for row in rows if row["subject"] in _BY_CONTACT and row not in lacking]
    whole = len(rows) - len(lacking)
    lead = f"{whole} of {words.plural(len(rows), 'kind')} of data are complete and in time."
    return section(
        anchor,
        title,
        lead,
        table(_HEADINGS, [_row(row) for row in shown]) if shown else None,
    )


def warning(account: AccountData) -> Html | None:
    """A line for the top of the page when something matters for trusting it: nothing is read any more, or much was not."""
    if stopped := standstill(account.as_of, account.made_at):
        said = f"These figures are of {words.day(account.as_of)}: {stopped}. Whoever looks after marketing-sync should run it. "
        return tag("p", tag("strong", "Syncing has stopped. "), said, look="warning")
    late = [str(row["subject"]).replace("_", " ") for row in account.rows["freshness"] if (row["coverage_rate"] or 0) < 0.5]
    if not late:
        return None
    some = ", ".join(late[:4]) + (f" and {len(late) - 4} more" if len(late) > 4 else "")
    link = tag("a", "How complete this is", href=f"#{account.name}-data", look="link")
    return tag("p", tag("strong", "Not all data is there. "), f"Less than half was read of {some}. ", link, ".", look="warning")


def nothing(account: AccountData, words: str, subject: str, *parts: str) -> Html:
    """In place of a section without rows: `words` where `subject`, and what there is of its `parts`, was read; else that nobody knows."""
    read = {row["subject"]: row["coverage_rate"] for row in account.rows["freshness"]}
    is_known = read.get(subject) == 1 and all(read.get(part) in (1, None) for part in parts)
    return empty(words if is_known else "Not known yet: this was not read completely.")


def is_lacking(row: Row) -> bool:
    """Whether something of it was not read, cannot be read, or is late."""
    return (row["coverage_rate"] or 0) < 1 or bool(row["rejected_count"]) or bool(row["is_overdue"])


def _row(row: Row) -> list[Child]:
    under = row["reason"] or ("due for reading" if row["is_overdue"] else "")
    return [
        named(str(row["subject"]).replace("_", " ").capitalize(), words.cut(str(under), 160)),
        words.share(row["coverage_rate"]),
        f"{words.day(row['as_of'])}",
        words.count(row["rejected_count"]),
    ]
