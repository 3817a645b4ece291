"""The whole page, from the data of all accounts to one HTML document: the templates, what they may call, and
each account's charts."""

import contextlib
import datetime as dt
import os
import re
import statistics
from functools import cache
from itertools import dropwhile
from pathlib import Path
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

from home import formatting
from home.formatting import change_of, day, number, rating, share, short_day, whole_share
from home.freshness import standstill
from home.progress import stage
from marketing_api.clock import utc_now
from pipelines.report import charts, figures
from pipelines.report.figures import key_figures
from pipelines.report.queries import AccountData, ReportData, Rows, read_report
from warehouse.archive.disk import Workspace, create, move_into_place, no_folder
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
    functions = (
        charts.swatch,
        charts.strength,
        charts.sparkline,
        key_figures,
        figures.headline,
        figures.tiers_of,
    )
    made.globals |= {function.__name__: function for function in (*functions, as_of, standstill, pictures_of)}
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


def pictures_of(account: AccountData) -> dict[str, Markup | None]:
    """Every chart of the account; None where it has nothing to show."""
    campaigns = account.rows["campaigns"][:_CAMPAIGNS]
    weeks, reacting = account.rows["weeks"], account.rows["lifecycle_weeks"]
    rated = [
        (row["channel"], row["average_rating"])
        for row in account.rows["channels"]
        if row["average_rating"] is not None
    ]
    ratings = [charts.Bar(channel, average, rating(average)) for channel, average in rated]
    regained = [
        charts.Bar(row["message"], row["won_back"], number(row["won_back"]))
        for row in account.rows["lifecycle_regained"]
    ]
    tiers = [(tier.capitalize(), people) for tier, people in figures.tiers_of(account).items()]
    return {
        "opened": _campaigns("Opened, share of delivered messages", campaigns, "open_rate"),
        "clicked": _campaigns("Clicked, share of delivered messages", campaigns, "click_rate"),
        **_growth(account),
        "tiers": charts.stack("People by tier", tiers, unit="people") if tiers else None,
        "reacting": _columns(
            "Began and stopped to react, by week",
            reacting,
            {"gained": "began or came back", "lost": "turned at risk"},
            "people",
        ),
        "regained": charts.bars("Came back after a message, 13 weeks", regained, axis=number)
        if regained
        else None,
        "reviews": _columns(
            "Good and bad reviews on the feedback page, by week",
            weeks,
            {"good": "good", "bad": "bad"},
            "reviews",
        ),
        "ratings": charts.bars("Average rating on review sites, of 5", ratings, axis=number, top=5)
        if ratings
        else None,
        "coupons": _coupons(account.rows["coupons"]),
    }


def _campaigns(title: str, rows: Rows, column: str) -> Markup | None:
    known = [row[column] for row in rows if row[column] is not None]
    usual = (
        (statistics.median(known), f"median of these {share(statistics.median(known))}")
        if len(known) > 2
        else None
    )
    items = [charts.Bar(row["subject"] or "(no subject)", row[column], share(row[column])) for row in rows]
    return charts.bars(title, items, axis=whole_share, unit=0.01, reference=usual) if items else None


def _growth(account: AccountData) -> dict[str, Markup | None]:
    """Size and movement of all lists together."""
    first = account.today - dt.timedelta(days=_GROWTH_DAYS)
    days = [row for row in account.rows["days"] if row["day_on"] > first and row["member_count"] is not None]
    if not days:
        return {"contacts": None, "movement": None}
    return {
        "contacts": charts.line(
            "Contacts", [(row["day_on"], row["member_count"]) for row in days], shown=number
        ),
        "movement": _columns(
            "Contacts that joined and left, by week",
            account.rows["weeks"],
            {"joined": "joined", "gone": "left"},
            "contacts",
        ),
    }


def _columns(title: str, rows: Rows, names: dict[str, str], unit: str) -> Markup | None:
    """Of the two columns that have these names, from the first week on of which one is known."""
    up, down = names
    weeks = [charts.Column(row["begins_on"], row[up], row[down]) for row in rows]
    known = list(dropwhile(lambda week: week.up is None and week.down is None, weeks))
    return (
        charts.columns(title, known, names=(names[up], names[down]), unit=unit)
        if any(week.up or week.down for week in known)
        else None
    )


def _coupons(rows: Rows) -> Markup | None:
    issued, redeemed = (figures.total(rows, column) for column in ("issued_count", "redeemed_count"))
    if not issued:
        return None
    shown = f"{number(redeemed)}, {share(redeemed / issued)}"
    items = [charts.Bar("Issued", issued, number(issued)), charts.Bar("Redeemed", redeemed, shown)]
    return charts.bars("Coupons of all time", items, axis=number)


# ---- into the home, whole or not at all, and a few lines of Markdown for the Dagster UI


def write_report(home: Path) -> tuple[Path, ReportData]:
    """Make the report of what is published: where it stands, and what it is made of. Raises
    NothingPublished."""
    with stage("report"):
        report = read_report(published_path(home), utc_now())
        html, path = render(report), home / "report" / "index.html"
    with contextlib.closing(Workspace(home / "tmp" / "report")) as workspace:
        temporary = workspace.file(path.name)
        os.close(create(temporary))  # for the owner only from the first moment on
        temporary.write_text(html, encoding="utf-8")
        move_into_place(temporary, no_folder(path))
    return path, report


def preview(report: ReportData) -> str:
    """Per account, by its name in the settings, its figures and what changed: nothing that the service's
    texts could bring in."""
    parts = []
    for account in report.accounts:
        shown = [
            f"- {figure.name}: **{figure.value}** {figure.below}".rstrip() for figure in key_figures(account)
        ]
        rows = [("", "yesterday", "7 days", "against the 7 before"), ("---", "--:", "--:", "--:")]
        changes = account.rows["changes"]
        rows += [
            (one["name"], number(one["yesterday"]), number(one["week"]), change_of(one["difference"]))
            for one in changes
        ]
        lines = [f"| {' | '.join(cells)} |" for cells in rows]
        parts.append("\n".join([f"**{account.name}**, {day(account.today)}", "", *shown, "", *lines]))
    return "\n\n".join(parts) or "Nothing has been read yet."
