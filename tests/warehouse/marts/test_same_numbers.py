"""Two numbers of one name and period are one number: on the page, in the mail, in the notebooks and in the marts.

Names and periods are read from what a reader sees: headings of rows and columns, tiles, what a pointer finds in a chart, sentences."""

import datetime as dt
import html
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from docs.models import metrics
from home.formatting import (
    UNKNOWN,
    days_of,
    format_day,
    format_month,
    format_number,
    format_points,
    format_rating,
    format_share,
)
from report.figures import MEASURES, format_measure, last_week
from report.queries import AccountData, ReportData, read_report
from report.render import load_environment, render_report
from tests.report.pictures import read_nights
from tests.warehouse.marts.test_notebooks import _stats
from warehouse.publish import publish_copy, published_path

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries that notebooks use


class Fact(NamedTuple):
    """A number as shown: its name and of what it is, both in lower case."""

    name: str
    of: str
    value: str
    where: str


def test_numbers_are_rounded_as_in_a_query() -> None:
    rows = duckdb.connect().sql("select n / 40, round(n / 40, 1) + 0.0 from range(-400, 400) t(n)").fetchall()
    assert [format_rating(value) for value, _ in rows] == [f"{rounded:.1f}" for _, rounded in rows]


@pytest.fixture(scope="module")
def home(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("same")
    shutil.copy(built, home / "warehouse.duckdb")
    publish_copy(home)
    return home


@pytest.fixture(scope="module")
def report(home: Path) -> ReportData:
    with duckdb.connect(str(published_path(home)), read_only=True) as connection:
        ((newest,),) = connection.execute("select max(as_of) from sync.coverage").fetchall()
    return read_report(published_path(home), newest)


def plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def tables(text: str) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """(name, headings, rows)."""
    for table in re.findall(r"<table class=\"table\".*?</table>", text, re.DOTALL):
        cells = [
            re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
            for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)
        ]
        head, *rows = [
            [re.sub(r"<span class=\"under\">.*?</span>", "", cell) for cell in row] for row in cells
        ]
        name = re.search(r'data-name="([^"]*)"', table)
        yield (
            html.unescape(name[1]) if name else "",
            [plain(cell) for cell in head],
            [
                [re.sub(r", [\d,]+ reviews?$", "", plain(cell)) for cell in row] for row in rows
            ],  # of how many reviews
        )


def of_page(account: AccountData, text: str) -> Iterator[Fact]:
    """Of one account's part of the page."""
    monday = last_week(account)
    weeks = {
        "Last complete week": monday,
        "Week before": monday - dt.timedelta(days=7),
        "A year before": monday - dt.timedelta(days=364),
    }
    weeks["This week so far"] = monday + dt.timedelta(days=7)
    for name, head, rows in tables(text):
        cells = [(row[0], *pair) for row in rows for pair in zip(head[1:], row[1:], strict=True)]
        for label, heading, value in cells:
            if name.startswith("Weeks"):
                if heading in weeks:
                    yield Fact(label, days_of(weeks[heading]), value, "weeks")
            elif name.startswith("Reviews by site"):
                continue
            else:
                yield Fact(heading, label, value, name)
    for tip in re.findall(r"<title>(.*?)</title></rect>", text):
        of, _, counts = html.unescape(tip).replace(" so far:", ":").partition(": ")
        for found in re.finditer(r"(\D+?) ([\d,.]+(?: %)?|–)(?:, |$)", counts):
            yield Fact(found[1], re.sub(r", \d+ \w+ \d{4}$", "", of), found[2], "chart")
    yield from of_tiles(text)
    yield from of_words(account, plain(text))
    for part in re.findall(r'<article class="campaign".*?</article>', text, re.DOTALL):
        subject = plain(re.findall(r"<h2.*?</h2>", part, re.DOTALL)[0])
        yield from of_tiles(part, subject)


def of_tiles(text: str, of: str = "") -> Iterator[Fact]:
    for found in re.finditer(
        r'figure-name">(.*?)</p><p class="figure-value">(.*?)</p>\s*<p class="figure-change">(.*?)</p>',
        text,
        re.DOTALL,
    ):
        if of or 'class="campaign"' not in text[: found.start()]:
            yield Fact(plain(found[1]), of or plain(found[3]), plain(found[2]), "tile")


def of_words(account: AccountData, text: str) -> Iterator[Fact]:
    """Of the headline."""
    week = days_of(last_week(account))
    said = text.partition(f"Last complete week, {week}: ")[2].partition(" • ")[0].replace("\u00a0", " ")
    sentence = re.split(r"\. (?=[A-Z“])|\.$", said)[0]
    patterns = {
        "Messages sent": r"of ([\d,]+) messages?", "Opened": r"([\d.]+ %) opened", "Contacts joined": r"([\d,]+) contacts? joined",
        "Contacts left": r"([\d,]+) left", "Good reviews": r"([\d,]+) good reviews?", "Bad reviews": r"([\d,]+) bad",
        "Reviews on review sites": r"([\d,]+) reviews? on review sites", "Rating on review sites": r"([\d.]+) of 5", "Coupons redeemed": r"([\d,]+) coupons? redeemed",
    }  # fmt: skip
    for name, pattern in patterns.items():
        if found := re.search(pattern, sentence):
            yield Fact(name, week, found[1], "headline")


def of_mail(account: AccountData, text: str) -> Iterator[Fact]:
    for row in re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL):
        told, value = re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
        name, _, below = told.partition("<div")
        yield Fact(plain(name), plain("<div" + below.partition("<br>")[0]), plain(value), "mail")
    yield from of_words(account, plain(text))


def of_marts(account: AccountData, connection: duckdb.DuckDBPyConnection) -> Iterator[Fact]:
    """By a calculation of its own: of the mart of periods, else added up from the daily one."""
    for column, (name, _) in MEASURES.items():
        own = {each[0] for each in connection.execute("describe marts.period_summary").fetchall()}
        if column in own:
            found = connection.execute(
                f"select period, begins_on, {column} from marts.period_summary where account = ?",
                [account.name],
            ).fetchall()
        elif column == "automation_count":
            found = connection.execute(
                "select 'week', date_trunc('week', triggered_on)::date, sum(triggered_count) "
                "from marts.automation_activity where account = ? group by 2",
                [account.name],
            ).fetchall()
        else:
            daily = "social_click_change" if column == "social_click_count" else column
            is_known = f"count({daily}) = 7"
            if column in ("left_count", "social_click_count"):  # the next night shows what one missed
                is_known = "begins_on between any_value(first_on) and any_value(last_on) - 6"
            found = connection.execute(
                f"select 'week', date_trunc('week', day_on)::date as begins_on, if({is_known}, coalesce(sum({daily}), 0), null) "
                f"from marts.account_daily cross join (select min(day_on) as first_on, max(day_on) as last_on from marts.account_daily "
                f"where account = $account and {daily} is not null) where account = $account and day_on < $today group by begins_on having count(*) = 7",
                {"account": account.name, "today": account.today},
            ).fetchall()
        for period, begins_on, value in found:
            if period != "quarter":
                yield Fact(
                    name,
                    days_of(begins_on) if period == "week" else format_month(begins_on),
                    format_measure(column, value),
                    "mart",
                )
    rows = connection.execute(
        "select coalesce(nullif(subject, ''), '(no subject)'), sent_count, open_rate, click_rate, unsubscribe_rate, open_rate_over_median "
        "from marts.campaign_performance where account = ? and sent_count > 0 and not is_deleted",
        [account.name],
    ).fetchall()
    for subject, sent, opened, clicked, unsubscribed, over in rows:
        values = {
            "Sent": format_number(sent),
            "Opened": format_share(opened),
            "Clicked": format_share(clicked),
            "Unsubscribed": format_share(unsubscribed),
            "Against usual": format_points(over),
        }
        yield from (Fact(name, subject, value, "mart of campaigns") for name, value in values.items())


#: Name on the page → the metric of the same thing.
METRICS = {
    "Campaign messages": "sent_messages", "Opened": "open_rate", "Clicked": "click_rate", "Visits to your pages": "visits",
    "Good reviews": "good_reviews", "Bad reviews": "bad_reviews", "Contacts joined": "joined_members", "Contacts left": "left_members",
}  # fmt: skip


def of_metrics(account: AccountData, connection: duckdb.DuckDBPyConnection) -> Iterator[Fact]:
    """As MetricFlow adds them up, by week and month of the account's calendar."""
    for name, metric in ((name, metrics()[metric]) for name, metric in METRICS.items()):
        rows = f"marts.{metric.mart}"
        if metric.mart == "campaign_performance":
            day = f"timezone('{account.zone}', coalesce(sent_at, created_at))::date"
            rows = f"(select *, {day} as day_on from {rows} where type = 'standard' and sent_count > 0)"
        found = connection.execute(
            f"select period, date_trunc(period, day_on)::date as begins_on, {metric.sql} from {rows} "
            "cross join (values ('week'), ('month')) as periods (period) where account = ? group by all",
            [account.name],
        ).fetchall()
        for period, begins_on, value in found:
            of = days_of(begins_on) if period == "week" else format_month(begins_on)
            shown = format_share(value) if metric.name.endswith("_rate") else format_number(value)
            yield Fact(name, of, shown, "metric")


def of_notebooks(run: Any, home: Path, account: AccountData) -> Iterator[Fact]:
    """Their tables and large figures, where the account is the one that they begin with."""
    channels = run("reputation", home)
    if channels["account"].value != account.name:
        return
    forms = channels["forms"]
    for row in channels["channels"].to_dict("records"):
        for name, value in row.items():
            if name != "Channel":
                known = None if value != value else value
                yield Fact(
                    name,
                    row["Channel"],
                    forms[name](known)
                    if name in forms
                    else format_day(known)
                    if name == "Newest"
                    else format_number(known),
                    "reputation.py",
                )
    campaigns = run("campaign_review", home)
    stats, columns = _stats(campaigns["shown"]), {"Opened": "open_rate", "Clicked": "click_rate"}
    for row in campaigns["campaigns"].to_dict("records"):
        for name, column in columns.items():
            rate = format_share(None if row[column] != row[column] else row[column])
            yield Fact(name, row["subject"], rate, "campaign_review.py")
            if row["campaign_id"] == campaigns["campaign_id"]:
                yield Fact(name, row["subject"], stats[name.lower()], "figures of campaign_review.py")
    tiers = run("contact_segments", home)["tiers"]
    for tier, count in tiers.itertuples(index=False):
        yield Fact("People", tier, format_number(count), "contact_segments.py")


def disagreeing(facts: list[Fact]) -> tuple[list[list[Fact]], int]:
    """Facts of one name that differ, and how many names stand in more than one place."""
    groups: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        groups[fact.name.lower(), fact.of.lower()].append(fact)
    several = [group for group in groups.values() if len({fact.where for fact in group}) > 1]
    return [group for group in several if len({fact.value for fact in group}) > 1], len(several)


def read_facts(report: ReportData, account: AccountData, home: Path) -> list[Fact]:
    """Of the account's part of the page and of the mail, and of its marts and metrics."""
    page = render_report(report).partition(f'id="{account.name}"')[2]
    mail = load_environment().get_template("mail.html").render(report=report)
    mailed = mail.partition(f">{html.escape(account.title)}</h1>")[2].partition("<h1")[0]
    with duckdb.connect(str(published_path(home)), read_only=True) as connection:
        facts = [
            *of_page(account, page.partition('<article class="account"')[0]),
            *of_mail(account, mailed),
            *of_marts(account, connection),
        ]
        # a metric adds up what is known; the page has no sum of a period of which a day is unknown
        unknown = {(fact.name.lower(), fact.of) for fact in facts if fact.value == UNKNOWN}
        # of an account whose zone is set otherwise than the service says it, the copy does not tell the zone
        found = of_metrics(account, connection) if account.name != "hill" else ()
        return facts + [fact for fact in found if (fact.name.lower(), fact.of) not in unknown]


def compare(facts: list[Fact]) -> int:
    """How many names stand in more than one place. AssertionError with those whose numbers differ."""
    lines = Counter((fact.of, fact.where) for fact in facts if fact.name == "Opened")
    again = {of for (of, _), count in lines.items() if count > 1}  # a subject used again names nothing
    differing, count = disagreeing([fact for fact in facts if fact.of not in again])
    assert "\n".join(map(str, differing)) == ""
    return count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "zone"),
    [(2, "America/New_York"), pytest.param(3, "Australia/Sydney", marks=pytest.mark.attack)],
)
def test_two_numbers_of_one_name_agree_in_a_sandbox(tmp_path: Path, seed: int, zone: str) -> None:
    home = tmp_path / "home"
    read_nights(home, 2, contacts=40, seed=seed, timezone=zone)
    report = read_report(published_path(home), dt.datetime.now(dt.UTC))
    assert compare(read_facts(report, report.accounts[0], home)) > 400


@pytest.mark.slow
def test_two_numbers_of_one_name_agree(home: Path, report: ReportData, run: Any) -> None:
    everywhere, total = set[str](), 0
    for account in report.accounts:
        facts = [*read_facts(report, account, home), *of_notebooks(run, home, account)]
        total += compare(facts)
        everywhere |= {fact.where for fact in facts}
        joined = [row["joined_count"] for row in account.rows["lists"]]
        if None not in joined:
            assert sum(joined) == account.rows["weeks"][1]["joined_count"], "lists add up"
        for each in account.rows["months"][:12] if account.name != "hill" else ():
            of_sites = sum(
                row["review_count"]
                for row in account.rows["site_months"]
                if row["begins_on"] == each["begins_on"]
            )
            assert each["online_review_count"] in (None, of_sites), "sites add up"
    assert everywhere >= {"weeks", "Months", "Campaigns", "chart", "tile", "headline"}
    assert everywhere >= {"mail", "mart", "mart of campaigns", "metric"}
    assert total > 500, total
    assert everywhere >= {"reputation.py", "campaign_review.py", "contact_segments.py"}


def test_numbers_that_differ_are_found() -> None:
    facts = [
        Fact("Sent", "May", "3", "page"),
        Fact("sent", "may", "4", "mail"),
        Fact("Sent", "June", UNKNOWN, "page"),
    ]
    assert disagreeing(facts) == ([facts[:2]], 1)
    assert format_rating(None) == UNKNOWN
