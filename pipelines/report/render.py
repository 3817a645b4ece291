"""The whole page, from the data of all accounts to one HTML document: the templates, what they may call, and
each account's charts."""

import datetime as dt
import os
import re
import statistics
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

from home import formatting
from home.door import report_of, scratch
from home.formatting import change_of, day, number, rating, share, short_day, whole_share
from home.freshness import standstill
from home.progress import stage
from marketing_api.clock import utc_now
from pipelines.report import charts, figures
from pipelines.report.figures import key_figures
from pipelines.report.queries import AccountData, ReportData, Rows, read_report
from warehouse.archive.disk import create, move_into_place, no_folder
from warehouse.loads.coverage import FRESH_FOR
from warehouse.publish import published_path

#: What no document may hold, and what turns the direction of all text behind it.
_UNFIT = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_TEMPLATES = Path(__file__).parent / "templates"
_GROWTH_DAYS, _CAMPAIGNS = 90, 10
_FILTERS = (
    "number",
    "share",
    "rating",
    "change_of",
    "points",
    "day",
    "plural",
    "cut",
    "without_blank_lines",
    "network",
)


def render(report: ReportData) -> str:
    """A document of its own: no script, no font, picture or style from elsewhere."""
    published_at = report.published.published_at.astimezone(dt.UTC)
    return readable(environment().get_template("page.html").render(report=report, published_at=published_at))


def readable(text: str) -> str:
    """Without what no document may hold: nothing of markup is made of it, since every text is escaped
    before."""
    return _UNFIT.sub("", text)


class _Unindented(Extension):
    """Blanks before a template's lines are for whoever writes it."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return re.sub(r"^[ \n]+", "", source, flags=re.MULTILINE)


@cache
def environment() -> Environment:
    """Every value is escaped by itself; what a template names has to be there."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=lambda value: "" if value is None else value,
        extensions=[_Unindented],
    )
    made.filters |= {name: getattr(formatting, name) for name in _FILTERS}
    made.tests |= {"lacking": figures.is_lacking, "mostly_unread": figures.is_mostly_unread}
    drawn = (charts.swatch, charts.strength, charts.sparkline, pictures_of)
    told = (key_figures, figures.headline, figures.tiers_of, as_of, standstill)
    made.globals |= {function.__name__: function for function in (*drawn, *told)}
    made.globals |= {"TIERS": figures.TIERS, "one_day": dt.timedelta(days=1)}
    return made


def as_of(account: AccountData) -> str:
    if account.as_of is None:
        return "no data yet"
    local, until = (
        moment.astimezone(ZoneInfo(account.zone)) for moment in (account.as_of, account.as_of + FRESH_FOR)
    )
    shown = f"data as of {short_day(local)}, {local:%H:%M} {account.zone}"
    return f"{shown}, current until {short_day(until)}, {until:%H:%M}"


def pictures_of(account: AccountData) -> dict[str, Markup]:
    """Every chart of the account; empty where it has nothing to show."""
    rows = account.rows
    first = account.today - dt.timedelta(days=_GROWTH_DAYS)
    days = [row for row in rows["days"] if row["day_on"] > first and row["member_count"] is not None]
    rated = [row for row in rows["channels"] if row["average_rating"] is not None]
    averages = [(row["channel"], row["average_rating"]) for row in rated]
    ratings = [charts.Bar(channel, average, rating(average)) for channel, average in averages]
    regained = [
        charts.Bar(row["message"], row["won_back"], number(row["won_back"]))
        for row in rows["lifecycle_regained"]
    ]
    tiers = [(tier.capitalize(), people) for tier, people in figures.tiers_of(account).items()]
    weeks, reacting = rows["weeks"], rows["lifecycle_weeks"]
    return {
        "opened": _campaigns("Opened, share of delivered messages", rows["campaigns"], "open_rate"),
        "clicked": _campaigns("Clicked, share of delivered messages", rows["campaigns"], "click_rate"),
        "contacts": charts.line(
            "Contacts", [(row["day_on"], row["member_count"]) for row in days], shown=number
        ),
        "movement": _columns(
            "Contacts that joined and left, by week",
            weeks if days else [],
            "contacts",
            joined="joined",
            gone="left",
        ),
        "tiers": charts.stack("People by tier", tiers, unit="people"),
        "reacting": _columns(
            "Began and stopped to react, by week",
            reacting,
            "people",
            gained="began or came back",
            lost="turned at risk",
        ),
        "regained": charts.bars("Came back after a message, 13 weeks", regained, axis=number),
        "reviews": _columns(
            "Good and bad reviews on the feedback page, by week", weeks, "reviews", good="good", bad="bad"
        ),
        "ratings": charts.bars("Average rating on review sites, of 5", ratings, axis=number, top=5),
        "coupons": charts.bars("Coupons of all time", list(_coupons(rows["coupons"])), axis=number),
    }


def _campaigns(title: str, rows: Rows, column: str) -> Markup:
    rows = rows[:_CAMPAIGNS]
    known = [row[column] for row in rows if row[column] is not None]
    median = statistics.median(known) if len(known) > 2 else None
    usual = None if median is None else (median, f"median of these {share(median)}")
    items = [charts.Bar(row["subject"] or "(no subject)", row[column], share(row[column])) for row in rows]
    return charts.bars(title, items, axis=whole_share, unit=0.01, reference=usual)


def _columns(title: str, rows: Rows, unit: str, **names: str) -> Markup:
    """Of the two columns that have these names."""
    up, down = names
    weeks = [charts.Column(row["begins_on"], row[up], row[down]) for row in rows]
    return charts.columns(title, weeks, names=(names[up], names[down]), unit=unit)


def _coupons(rows: Rows) -> Iterator[charts.Bar]:
    issued, redeemed = (figures.total(rows, column) for column in ("issued_count", "redeemed_count"))
    if issued:
        yield charts.Bar("Issued", issued, number(issued))
        yield charts.Bar("Redeemed", redeemed, f"{number(redeemed)}, {share(redeemed / issued)}")


# ---- into the home, whole or not at all, and a few lines of Markdown for the Dagster UI


def write_report(home: Path) -> tuple[Path, ReportData]:
    """Make the report of what is published: where it stands, and what it is made of. Raises
    NothingPublished."""
    with stage("report"):
        report, path = read_report(published_path(home), utc_now()), report_of(home)
        html = render(report)
    with scratch(home, "report") as workspace:
        temporary = workspace.file(path.name)
        with os.fdopen(create(temporary), "w", encoding="utf-8") as file:  # for the owner only from the first
            file.write(html)
        move_into_place(temporary, no_folder(path))
    return path, report


def preview(report: ReportData) -> str:
    """Per account, by its name in the settings, its figures and what changed: nothing that the service's
    texts could bring in."""
    parts = []
    for account in report.accounts:
        lines = [f"**{account.name}**, {day(account.today)}", ""]
        for figure in key_figures(account):
            lines.append(f"- {figure.name}: **{figure.value}** {figure.below}".rstrip())
        lines += ["", "|  | yesterday | 7 days | against the 7 before |", "| --- | --: | --: | --: |"]
        for row in account.rows["changes"]:
            cells = row["name"], number(row["yesterday"]), number(row["week"]), change_of(row["difference"])
            lines.append(f"| {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) or "Nothing has been read yet."
