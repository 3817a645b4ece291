"""The whole page, from the data of all accounts to one HTML document: the templates, what they may
call, and each account's charts."""

import base64
import datetime as dt
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
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
from report import charts, figures
from report.figures import key_figures
from report.queries import AccountData, ReportData, Row, Rows, read_report
from warehouse.disk import create_file, move_into_place, no_folder, open_scratch
from warehouse.loads.coverage import FRESH_FOR
from warehouse.publish import published_path

#: What no document may hold, and what turns the direction of all text behind it.
_UNFIT = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPT = re.sub(
    r"^\s+|^//.*\n", "", (_TEMPLATES / "page.js").read_text(encoding="utf-8"), flags=re.MULTILINE
)
#: Of a chart.
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
    """A document of its own: no font, picture, style or script from elsewhere, and no script but
    ours."""
    published_at = report.published.published_at.astimezone(dt.UTC)
    return drop_unreadable(
        load_environment()
        .get_template("page.html")
        .render(report=report, published_at=published_at)
    )


def drop_unreadable(text: str) -> str:
    """Without what no document may hold: nothing of markup is made of it, since every text is
    escaped before."""
    return _UNFIT.sub("", text)


class _Unindented(Extension):
    """Blanks before a template's lines are for whoever writes it."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return re.sub(r"^[ \n]+", "", source, flags=re.MULTILINE)


@cache
def load_environment() -> Environment:
    """Every value is escaped by itself; what a template names has to be there."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=lambda value: "" if value is None else value,
        extensions=[_Unindented],
    )
    made.filters |= _FILTERS
    made.filters |= {
        "measure": lambda column: figures.MEASURES[column][0],
        "short_month": lambda value: f"{value:%b %y}",
    }
    made.tests |= {"lacking": figures.is_lacking, "mostly_unread": figures.is_mostly_unread}
    drawn = (
        rank_accounts,
        charts.draw_swatch,
        charts.stack_opacity,
        charts.draw_sparkline,
        pictures_of,
        campaign_pictures,
    )
    told = (
        key_figures,
        figures.write_headline,
        figures.describe_refusals,
        figures.list_changes,
        figures.explain_unknown,
        figures.find_newest_campaign,
        figures.last_week,
        figures.show_measure,
        figures.tiers_of,
        as_of,
        describe_standstill,
    )
    made.globals |= {function.__name__: function for function in (*drawn, *told)}
    made.globals |= {
        "TIERS": figures.TIERS,
        "MEASURES": figures.MEASURES,
        "SCRIPT": Markup(_SCRIPT),  # noqa: S704 (ours)
    }
    made.globals["script_hash"] = base64.b64encode(
        hashlib.sha256(_SCRIPT.encode()).digest()
    ).decode()
    return made


def rank_accounts(report: ReportData) -> list[tuple[AccountData, str]]:
    """The accounts with what needs attention in each; those where something does come first."""
    found = [(account, _find_attention(account)) for account in report.accounts]
    return sorted(found, key=lambda pair: not pair[1])


def _find_attention(account: AccountData) -> str:
    if describe_standstill(account.as_of, account.made_at):
        return "syncing has stopped"
    if account.rows["refused"]:
        return "not updated"
    if any(map(figures.is_mostly_unread, account.rows["freshness"])):
        return "not all data is there"
    return (
        "unusual week" if any(change.surprise for change in figures.list_changes(account)) else ""
    )


def as_of(account: AccountData) -> str:
    if account.as_of is None:
        return "no data yet"
    local, until = (
        moment.astimezone(ZoneInfo(account.zone))
        for moment in (account.as_of, account.as_of + FRESH_FOR)
    )
    shown = f"data as of {short_day(local)}, {local:%H:%M} {account.zone}"
    return f"{shown}, current until {short_day(until)}, {until:%H:%M}"


def pictures_of(account: AccountData) -> dict[str, Markup]:
    """Every chart of the account; empty where it has nothing to show."""
    rows = account.rows
    stated = [row for row in rows["channels"] if row["average_rating"] is not None]
    ratings = [
        charts.Bar(row["channel"], row["average_rating"], format_rating(row["average_rating"]))
        for row in stated
    ]
    regained = [
        charts.Bar(row["message"], row["won_back"], format_number(row["won_back"]))
        for row in rows["lifecycle_regained"]
    ]
    tiers = [(tier.capitalize(), people) for tier, people in figures.tiers_of(account).items()]
    months = _draw_months(account)
    span = rows["spans"][0] if rows["spans"] else {}
    issued, redeemed = (
        figures.sum_column(rows["coupons"], name) for name in ("issued_count", "redeemed_count")
    )
    return {
        "rates": _draw_rates(account),
        "funnel": _shares(f"Campaigns of {figures.span_words(account)}", **_steps(span)),
        "sent": charts.draw_columns(
            "Messages sent and opened, by month of sending",
            months("sent_count", "opened_count"),
            names=("messages sent", "messages opened"),
            is_inside=True,
        ),
        "contacts": _draw_growth(account),
        "movement": _draw_weeks(
            account, "Contacts joined and left, by week", "joined_count", "left_count"
        ),
        "visits": _draw_weeks(account, "Visits to your pages, by week", "visit_count"),
        "tiers": charts.draw_stack("People by tier", tiers, unit="people"),
        "reacting": charts.draw_columns(
            "People who began and stopped to react, by week",
            list(_by_week(account, rows["lifecycle_weeks"], "gained", "lost")),
            names=("began or came back", "turned at risk"),
        ),
        "regained": charts.draw_bars(
            "Came back after a message, 13 weeks", regained, axis=format_number
        ),
        "reviews": _draw_weeks(
            account, "Good and bad reviews on the feedback page, by week", "good_count", "bad_count"
        ),
        "online": charts.draw_columns(
            "Reviews on review sites, by month",
            months("online_review_count"),
            names=["reviews on review sites"],
        ),
        "ratings": charts.draw_bars(
            "Average rating as each site states it, of 5", ratings, axis=format_number, top=5
        ),
        "mentions": _draw_weeks(account, "Mentions on social networks, by week", "mention_count"),
        "links": _draw_weeks(account, "Clicks on links in posts, by week", "social_click_count"),
        "redeemed": charts.draw_columns(
            "Coupons redeemed, by month", months("redeemed_count"), names=["coupons redeemed"]
        ),
        "coupons": _shares("Coupons of all time", Issued=issued, Redeemed=redeemed),
    }


def _draw_growth(account: AccountData) -> Markup:
    """Contacts once a week, up to today, of a year."""
    days = [row for row in account.rows["days"] if (account.today - row["day_on"]).days % 7 == 0][
        -53:
    ]
    series = [
        charts.Series(
            name, [(row["day_on"], row[column]) for row in days if row[column] is not None]
        )
        for name, column in (("all contacts", "member_count"), ("active", "active_member_count"))
    ]
    return charts.draw_lines("Contacts, once a week", series, shown=format_number)


def _draw_weeks(account: AccountData, title: str, *columns: str) -> Markup:
    """Of half a year."""
    weeks = account.rows["weeks"][:_WEEKS]
    names = [figures.MEASURES[column][0].lower() for column in columns]
    return charts.draw_columns(title, list(_by_week(account, weeks[::-1], *columns)), names=names)


def _by_week(account: AccountData, weeks: Rows, *columns: str) -> Iterator[charts.Column]:
    for row in weeks:
        begins_on = row["begins_on"]
        is_running = begins_on > figures.last_week(account)
        yield charts.Column(
            days_of(begins_on), short_day(begins_on), *_read_pair(row, columns), is_running
        )


def _draw_months(account: AccountData) -> Callable[..., list[charts.Column]]:
    def monthly_columns(*columns: str) -> list[charts.Column]:
        return [
            charts.Column(
                format_month(row["begins_on"]),
                f"{row['begins_on']:%b}",
                *_read_pair(row, columns),
                not row["is_over"],
            )
            for row in reversed(account.rows["months"])
        ]

    return monthly_columns


def _read_pair(row: Row, columns: Sequence[str]) -> tuple[float | None, float | None]:
    first, second = [*(row[column] for column in columns), None][:2]
    return first, second


def _draw_rates(account: AccountData) -> Markup:
    items = [
        charts.Column(
            f"{row['subject'] or '(no subject)'}, {format_day(row['sent_at'])}",
            short_day(row["sent_at"]),
            row["open_rate"],
            row["click_rate"],
        )
        for row in reversed(account.rows["campaigns"])
        if row["type"] != "automated" and row["sent_at"]
    ]
    names = ("opened", "clicked")
    title = "Opened and clicked, of delivered messages, by campaign"
    return charts.draw_columns(
        title, items, names=names, is_inside=True, shown=format_share, axis=whole_share, unit=0.01
    )


def campaign_pictures(account: AccountData, campaign: Row) -> list[Markup]:
    """What became of one campaign's messages, and how its openings grew."""
    days = [
        row
        for row in account.rows["campaign_days"]
        if row["campaign_id"] == campaign["campaign_id"]
    ]
    opened = charts.Series("opened", [(row["observed_on"], row["opened_count"]) for row in days])
    return [
        _shares("From sent to clicked", Sent=campaign["sent_count"], **_steps(campaign)),
        charts.draw_lines("Opened by each night’s reading", [opened], shown=format_number),
    ]


def _steps(row: Row) -> dict[str, float | None]:
    columns = {"Delivered": "delivered_count", "Opened": "opened_count", "Clicked": "clicker_count"}
    return {name: row.get(column) for name, column in columns.items()}


def _shares(title: str, **counts: float | None) -> Markup:
    """Each count, and what share of the first one it is; nothing without any."""
    whole = next(iter(counts.values()))
    items = [
        charts.Bar(
            name,
            count,
            UNKNOWN if count is None else f"{format_number(count)}, {format_share(count / whole)}",
        )
        for name, count in counts.items()
        if whole
    ]
    return charts.draw_bars(title, items, axis=format_number)


# ---- into the home, whole or not at all, and a few lines of Markdown for the Dagster UI


def write_report(home: Path) -> tuple[Path, ReportData]:
    """Make the report of what is published: where it stands, and what it is made of. Raises
    NothingPublished."""
    with begin_stage("report"):
        report, path = read_report(published_path(home), utc_now()), report_of(home)
        html = render_report(report)
    with open_scratch(home, "report") as workspace:
        temporary = workspace.place_file(path.name)
        with os.fdopen(
            create_file(temporary), "w", encoding="utf-8"
        ) as file:  # for the owner only from the first
            file.write(html)
        move_into_place(temporary, no_folder(path))
    return path, report


def render_preview(report: ReportData) -> str:
    """Per account, by its name in the settings, its figures and what changed: nothing that the
    service's texts could bring in."""
    parts = []
    for account in report.accounts:
        lines = [f"**{account.name}**, {format_day(account.today)}", ""]
        for figure in key_figures(account):
            lines.append(
                f"- {figure.name}: **{figure.value}** {figure.below}; {figure.compared}".rstrip(
                    "; "
                )
            )
        week = days_of(figures.last_week(account))
        lines += ["", f"|  | {week} | week before | change |", "| --- | --: | --: | --: |"]
        for change in figures.list_changes(account):
            lines.append(f"| {' | '.join(change[:4])} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) or "Nothing has been read yet."
