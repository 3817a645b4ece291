"""Renders the report's data as one HTML document: the templates, the functions that they call, and
the charts of every account."""

import base64
import datetime as dt
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

from home import formatting
from home.door import report_of
from home.formatting import (
    UNKNOWN,
    days_of,
    format_day,
    format_month,
    format_number,
    format_rating,
    format_share,
    short_day,
    whole_share,
)
from home.freshness import describe_standstill
from home.progress import begin_stage
from marketing_api.clock import utc_now
from marketing_api.exchange import Connection
from report import charts, figures
from report.queries import AccountData, ReportData, read_report
from report.row_types import Campaign, Row, Rows
from warehouse.disk import create_file, move_into_place, no_folder, open_scratch
from warehouse.policies import FRESH_FOR
from warehouse.publish import published_path

#: Characters that an HTML document must not contain, and those that change the text direction.
_UNFIT = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPT = re.sub(
    r"^\s+|^//.*\n", "", (_TEMPLATES / "page.js").read_text(encoding="utf-8"), flags=re.MULTILINE
)
#: The weeks of a chart.
_WEEKS = 27
_FILTERS = {
    "number": formatting.format_number,
    "share": formatting.format_share,
    "rating": formatting.format_rating,
    "change_of": formatting.change_of,
    "points": formatting.format_points,
    "day": formatting.format_day,
    "days_of": formatting.days_of,
    "month": formatting.format_month,
    "plural": formatting.count_of,
    "cut": formatting.cut_text,
    "without_blank_lines": formatting.without_blank_lines,
    "network": formatting.network_name,
}


def render_report(report: ReportData) -> str:
    """The page as a self-contained document: it loads no font, picture, style or script, and runs
    only its own script."""
    published_at = report.published.published_at.astimezone(dt.UTC)
    return drop_unreadable(
        load_environment()
        .get_template("page.html")
        .render(report=report, published_at=published_at)
    )


def drop_unreadable(text: str) -> str:
    """The HTML without characters that a document must not contain. No markup can result, since all
    texts are escaped before."""
    return _UNFIT.sub("", text)


class _Unindented(Extension):
    """Removes indentation and empty lines of templates."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return re.sub(r"^[ \n]+", "", source, flags=re.MULTILINE)


@cache
def load_environment() -> Environment:
    """The templates' environment: values are escaped automatically, undefined names are errors."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=lambda value: "" if value is None else value,
        extensions=[_Unindented],
    )
    environment.filters |= _FILTERS
    environment.filters |= {
        "measure": lambda column: figures.MEASURES[column][0],
        "shown_in": lambda column, row: figures.show_measure(row, column),
        "short_month": _format_short_month,
    }
    environment.tests |= {"lacking": figures.is_lacking, "mostly_unread": figures.is_mostly_unread}
    environment.globals |= {function.__name__: function for function in _FUNCTIONS}
    digest = hashlib.sha256(_SCRIPT.encode()).digest()
    environment.globals |= {
        "TIERS": figures.TIERS,
        "TIERS_NOTE": figures.TIERS_NOTE,
        "MEASURES": figures.MEASURES,
        "SECTIONS": figures.SECTIONS,
        "SCRIPT": Markup(_SCRIPT),  # noqa: S704 (ours)
        "script_hash": base64.b64encode(digest).decode(),
    }
    return environment


def _format_short_month(value: dt.date) -> str:
    """`Nov 26`."""
    return f"{value:%b %y}"


def rank_accounts(report: ReportData) -> list[tuple[AccountData, str]]:
    """The accounts with what needs attention in them (empty: nothing); accounts that need attention
    come first."""
    found = [(account, _find_attention(account)) for account in report.accounts]
    return sorted(found, key=lambda pair: not pair[1])


def _find_attention(account: AccountData) -> str:
    if account.as_of is None:
        return "No data yet"
    if describe_standstill(account.as_of, account.made_at):
        return "Syncing has stopped"
    if account.rows["refused"]:
        return "Not updated"
    if any(map(figures.is_mostly_unread, account.rows["freshness"])):
        return "Incomplete data"
    is_unusual = any(change.surprise for change in figures.list_changes(account))
    return "Unusual week" if is_unusual else ""


def describe_data_age(account: AccountData) -> str:
    if account.as_of is None:
        return "no data yet"
    local = account.as_of.astimezone(ZoneInfo(account.zone))
    until = (account.as_of + FRESH_FOR).astimezone(ZoneInfo(account.zone))
    age = f"data as of {short_day(local)}, {local:%H:%M} {account.zone}"
    return f"{age}, out of date after {short_day(until)}, {until:%H:%M}"


def draw_account_charts(account: AccountData) -> dict[str, Markup]:
    """Name → chart of the account; empty where there is nothing to draw."""
    ratings = [
        charts.Bar(row["channel"], row["average_rating"], format_rating(row["average_rating"]))
        for row in account.rows["channels"]
        if row["average_rating"] is not None
    ]
    return {
        "rates": _draw_rates(account),
        "sent": charts.draw_columns(
            "Campaign messages sent and opened, by month of sending",
            _make_month_columns(account, "sent_count", "opened_count"),
            names=("messages sent", "messages opened"),
            is_inside=True,
        ),
        **_draw_people_charts(account),
        "visits": _draw_weeks(account, "Visits to your pages, by week", "visit_count"),
        "reviews": _draw_weeks(
            account, "Good and bad reviews on the feedback page, by week", "good_count", "bad_count"
        ),
        "ratings": charts.draw_bars(
            "Average rating as each site states it, of 5", ratings, axis=format_number, top=5
        ),
        "mentions": _draw_weeks(account, "Mentions on social networks, by week", "mention_count"),
        "links": _draw_weeks(account, "Clicks on links in posts, by week", "social_click_count"),
        "redeemed": charts.draw_columns(
            "Coupons redeemed, by month",
            _make_month_columns(account, "redeemed_count"),
            names=["coupons redeemed"],
        ),
    }


def _draw_people_charts(account: AccountData) -> dict[str, Markup]:
    tiers = [(tier.capitalize(), people) for tier, people in figures.count_tiers(account).items()]
    weeks = _make_week_columns(account, account.rows["lifecycle_weeks"], "gained", "lost")
    regained = [
        charts.Bar(row["message"], row["won_back"], format_number(row["won_back"]))
        for row in account.rows["lifecycle_regained"]
    ]
    return {
        "contacts": _draw_growth(account),
        "movement": _draw_weeks(
            account, "Contacts joined and left, by week", "joined_count", "left_count"
        ),
        "tiers": charts.draw_stack("People by tier", tiers),
        "reacting": charts.draw_columns(
            "People who started and stopped responding, by week",
            list(weeks),
            names=("started or came back", "became at risk"),
        ),
        "regained": charts.draw_bars(
            "People won back in 13 weeks, by message", regained, axis=format_number
        ),
    }


def _draw_growth(account: AccountData) -> Markup:
    """Contacts once a week, for a year up to today."""
    weekly = [row for row in account.rows["days"] if (account.today - row["day_on"]).days % 7 == 0]
    days = weekly[-53:]
    members = [(row["day_on"], row["member_count"]) for row in days]
    active = [(row["day_on"], row["active_member_count"]) for row in days]
    series = [
        charts.Series(name, [(day, count) for day, count in counts if count is not None])
        for name, counts in (("all contacts", members), ("active", active))
    ]
    return charts.draw_lines("Contacts, once a week", series, format_value=format_number)


def _draw_weeks(account: AccountData, title: str, *columns: str) -> Markup:
    """A chart of half a year."""
    weeks = account.rows["weeks"][:_WEEKS]
    names = [figures.MEASURES[column][0].lower() for column in columns]
    return charts.draw_columns(
        title, list(_make_week_columns(account, weeks[::-1], *columns)), names=names
    )


def _make_week_columns(account: AccountData, weeks: Rows, *columns: str) -> Iterator[charts.Column]:
    for row in weeks:
        begins_on = row["begins_on"]
        is_running = begins_on > figures.last_week(account)
        yield charts.Column(
            days_of(begins_on), short_day(begins_on), *_read_pair(row, columns), is_running
        )


def _make_month_columns(account: AccountData, *columns: str) -> list[charts.Column]:
    return [
        charts.Column(
            format_month(row["begins_on"]),
            _format_short_month(row["begins_on"]),
            *_read_pair(row, columns),
            not row["is_over"],
        )
        for row in reversed(account.rows["months"])
    ]


def _read_pair(row: Row, columns: Sequence[str]) -> tuple[float | None, float | None]:
    first, second = [*(row[column] for column in columns), None][:2]
    return first, second


def _draw_rates(account: AccountData) -> Markup:
    items = [
        charts.Column(
            f"{row['subject'] or '(no subject)'}, {format_day(row['sent_at'])}",
            _format_short_month(row["sent_at"]),
            row["open_rate"],
            row["click_rate"],
        )
        for row in reversed(account.rows["campaigns"])
        if row["type"] != "automated" and row["sent_at"]
    ]
    names = ("opened", "clicked")
    title = "Opened and clicked, of delivered messages, by campaign"
    return charts.draw_columns(
        title,
        items,
        names=names,
        is_inside=True,
        format_value=format_share,
        axis=whole_share,
        unit=0.01,
    )


def draw_campaign_charts(account: AccountData, campaign: Campaign) -> list[Markup]:
    """The outcome of a campaign's messages, and how its openings grew."""
    days = [
        row
        for row in account.rows["campaign_days"]
        if row["campaign_id"] == campaign["campaign_id"]
    ]
    opened = charts.Series("opened", [(row["observed_on"], row["opened_count"]) for row in days])
    return [
        _draw_shares("From sent to clicked", _list_steps(campaign, campaign["sent_count"])),
        charts.draw_lines("Opened by each night’s reading", [opened], format_value=format_number),
    ]


#: The count of a step, and the count that its share is of.
_Step = tuple[str, float | None, float | None]


def _list_steps(row: Row, sent: float | None = None) -> list[_Step]:
    """The steps of messages; those opened and clicked are shares of those delivered, as everywhere
    in the report."""
    delivered = row.get("delivered_count")
    steps: list[_Step] = [("Sent", sent, sent)] if sent else []
    return [
        *steps,
        ("Delivered", delivered, sent or delivered),
        ("Opened", row.get("opened_count"), delivered),
        ("Clicked", row.get("clicker_count"), delivered),
    ]


def _draw_shares(title: str, steps: Sequence[_Step]) -> Markup:
    """A bar per step, with its count and share; nothing when the first count is 0."""
    if not steps[0][1]:
        return Markup()
    items = []
    for name, count, whole in steps:
        text = UNKNOWN
        if count is not None:
            text = format_number(count)
            text += f", {format_share(count / whole)}" if whole else ""
        items.append(charts.Bar(name, count, text))
    return charts.draw_bars(title, items, axis=format_number)


# ---- the file in the home, and a preview in Markdown for the Dagster UI


def write_report(home: Path, accounts: Iterable[Connection] = ()) -> tuple[Path, ReportData]:
    """Write the report of the published file; returns its path and its data. It is about these
    accounts; without any, about all that the file has. Raises NothingPublished."""
    with begin_stage("report"):
        report = read_report(published_path(home), utc_now())
        names = {connection.account for connection in accounts}
        if names:
            kept = [account for account in report.accounts if account.name in names]
            report = replace(report, accounts=kept)
        path = report_of(home)
        html = render_report(report)
    with open_scratch(home, "report") as workspace:
        temporary = workspace.place_file(path.name)
        # readable by the owner only, from the beginning
        with os.fdopen(create_file(temporary), "w", encoding="utf-8") as file:
            file.write(html)
        move_into_place(temporary, no_folder(path))
    return path, report


def render_preview(report: ReportData) -> str:
    """The figures and changes of every account, without any text of the service. Accounts have
    their names of the settings."""
    parts = []
    for account, _ in rank_accounts(report):
        lines = [f"**{account.name}**, {format_day(account.today)}", ""]
        for figure in figures.key_figures(account):
            line = f"- {figure.name}: **{figure.value}** {figure.below}; {figure.compared}"
            lines.append(line.rstrip("; "))
        week = days_of(figures.last_week(account))
        lines += ["", f"|  | {week} | week before | change |", "| --- | --: | --: | --: |"]
        for change in figures.list_changes(account):
            lines.append(f"| {' | '.join(change[:4])} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) or "Nothing has been read yet."


#: The functions that templates call by their names.
_FUNCTIONS = [
    rank_accounts,
    charts.draw_swatch,
    charts.stack_opacity,
    charts.draw_sparkline,
    draw_account_charts,
    draw_campaign_charts,
    figures.key_figures,
    figures.write_headline,
    figures.describe_refusals,
    figures.list_changes,
    figures.explain_unknown,
    figures.find_empty_sections,
    figures.find_newest_campaign,
    figures.last_week,
    figures.list_known_measures,
    figures.count_tiers,
    describe_data_age,
    describe_standstill,
]
