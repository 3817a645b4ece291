"""The report: every text is a text, nothing comes from elsewhere, what is not there is said, and every query
fits the models."""

import base64
import datetime as dt
import hashlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import duckdb
import pytest

from home import formatting
from home.door import report_of
from home.folder import prepare_home
from home.formatting import UNKNOWN
from marketing_api.exchange import Connection
from marketing_api.redaction import Secret
from report import charts
from report.charts import draw_sparkline
from report.figures import explain_unknown, key_figures, list_changes, write_headline
from report.queries import QUERIES, AccountData, ReportData, mark_namesakes, read_accounts, read_report
from report.render import drop_unreadable, load_environment, render_preview, render_report, write_report
from report.row_types import ReportRows, Rows
from tests.fixtures import Command
from tests.report.sample_accounts import (
    COUNTS,
    FULL,
    HOSTILE,
    NOW,
    SUMMED,
    TODAY,
    account,
    campaign,
    page,
    review,
    weeks_of,
)
from warehouse.policies import PersonalData
from warehouse.publish import Published
from warehouse.sql import fetch_records


class Elements(HTMLParser):
    """The elements of a page, whether they are closed, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_hostile_review_stays_text() -> None:
    html = page(
        account(
            **FULL
            | {
                "reviews": [review(HOSTILE, HOSTILE)],
                "campaigns": [campaign(HOSTILE)],
                "posts": [FULL["posts"][0] | {"message": HOSTILE}],
                "business": [{"business_name": HOSTILE, "timezone": "UTC"}],
                "lists": [FULL["lists"][0] | {"name": HOSTILE}],
                "freshness": [FULL["freshness"][0] | {"reason": HOSTILE}],
            }
        )
    )
    elements = Elements(html)
    names = {name for name, _ in elements.found}
    assert not names & {"img", "iframe", "link", "object", "form", "base"}
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert script == load_environment().globals["SCRIPT"], "ours, and no other may run"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}';" in html
    assert not [key for _, attributes in elements.found for key in attributes if key.startswith("on")]
    assert "<script>alert(1)</script>" in "".join(elements.texts), "it can be read as it was written"
    assert not {"\x00", "\u202e"} & set(html)


def test_the_page_needs_nothing_from_elsewhere_and_every_element_is_closed() -> None:
    html = page(account(**FULL), account("hill", **FULL))
    elements = Elements(html)
    assert elements.open == []
    assert "url(" not in html
    assert "@import" not in html
    addresses = [
        value for _, attributes in elements.found for key in ("src", "href") if (value := attributes.get(key))
    ]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    anchors = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(anchors) == len(set(anchors))
    assert {address[1:] for address in addresses} <= set(anchors)


def test_a_share_that_the_service_contradicts_is_marked_beside_what_it_states() -> None:
    said = "".join(Elements(page(account(**FULL))).texts)
    assert "Programs such as Apple Mail" in said
    assert " *" not in said.partition("const text")[0]
    doubted = campaign("Odd", opened_percent=366.67, is_percent_inconsistent=True)
    said = "".join(Elements(page(account(**FULL | {"campaigns": [*FULL["campaigns"], doubted]}))).texts)
    assert "the service says 366.67 % opened" in said
    assert said.partition("const text")[0].count(" *") == 1
    assert "* The service’s own percentage differs" in said


def test_a_campaign_has_a_page_with_its_name_beside_its_subject_and_its_funnel() -> None:
    named = campaign("News", name="News of May <1>")
    html = page(account(campaigns=[named, campaign("Else")]))
    assert "".join(Elements(html).texts).count("named “News of May <1>”") == 1
    assert f'href="#main-campaign-{named["campaign_id"]}"' in html
    own = html.partition(f'id="main-campaign-{named["campaign_id"]}"')[2].partition("</article>")[0]
    assert "Sent: 100, 100.0 %; Delivered: 98, 98.0 %; Opened: 40, 40.8 %" in own, (
        "of those delivered, as in all tables"
    )


def test_the_newest_campaign_is_on_top_however_old_it_is() -> None:
    old = campaign("Autumn", sent_at=NOW - dt.timedelta(days=90))
    automated = campaign("Welcome", type="automated")
    html = page(account(campaigns=[automated, old]))
    card = html[html.index('class="card"') : html.index('class="jumps"')]
    assert "Autumn" in card
    assert "20 Dec 2025 to 100 people" in card
    assert "usually 30.0 %: the median of" in card, "not a difference from another average on the page"
    assert "Welcome" not in card
    assert 'class="card"' not in page(account(campaigns=[automated]))


def test_days_are_of_the_zone_that_was_read_in_and_a_clicked_text_message_is_no_opening() -> None:
    connection = duckdb.connect()
    night = "timestamptz '2026-11-30 06:00+00' as as_of, 'main' as account"
    connection.execute(f"""
        create schema source; create schema sync; create schema marts;
        create table source.business as select 'main' as account, 'Corner' as business_name,
            null::varchar as timezone, null as _deleted_at;
        create table sync.coverage as select {night};
        create table sync.readings as select {night}, 'Pacific/Pago_Pago' as timezone;
        create table marts.contact_campaign as select 'main' as account, 'automated' as kind, 'Hi' as automation,
            null as subject, 'Hi' as message_text, 'sms' as channel, timestamptz '2026-11-20 06:00+00' as sent_at,
            unnest([true, null]) as is_opened, unnest([true, null]) as is_clicked;
        insert into marts.contact_campaign by name select 'Ask' as automation, place::varchar as message_text,
            * exclude (is_opened, automation, message_text, place) from marts.contact_campaign, range(30) as steps (place) where is_opened;
        create table marts.campaign_link_clicks as select 'main' as account, 1 as campaign_id, null as link_text,
            null as url, null::bigint as click_rank, null as click_count, 1 as clicker_count, true as is_current;
        create table marts.social_post_performance as select 'main' as account, 'x' as network, 'Hi' as message,
            timestamptz '2026-11-29 06:00+00' as published_at, 1 as click_count, true as is_published;
        create table source.direct_reviews as select 'main' as account, 'Good' as rating, null as inquiry,
            null as _deleted_at, unnest([timestamptz '2026-11-30 06:00+00', '2029-01-01 06:00+00']) as reviewed_at;
        create table source.online_reviews as select * replace (1.0 as rating), 'x' as channel, 'x' as username
            from source.direct_reviews where false;
    """)
    (found,) = read_accounts(connection, Published(NOW, NOW, PersonalData.KEEP, 1, 1), NOW).accounts
    assert (found.zone, found.today) == ("Pacific/Pago_Pago", dt.date(2026, 11, 29))
    *others, step = found.rows["automations"]
    assert (step["open_rate"], step["sent_count"], step["automation"]) == (None, 2, "Hi")
    assert (len(others), step["step_count"]) == (29, 31), "the largest are in, whatever their name"
    assert found.rows["campaign_links"][0]["link"] == "Link 1", "as in a masked copy"
    assert formatting.format_day(found.rows["posts"][0]["published_at"]) == "28 Nov 2026"
    assert len(found.rows["reviews"]) == 1, "a date that has not come yet is wrong"


def test_automations_are_told_by_step_and_in_the_headline() -> None:
    html = page(account(**FULL))
    assert "Welcome &lt;i&gt;" in html
    assert "Hello · email" in html
    assert write_headline(account(**FULL))[0].count("automation message") == 0, "none in the last whole week"
    weeks = [row | {"automation_count": 3} for row in weeks_of(FULL["days"])]
    assert "3 automation messages" in write_headline(account(**FULL | {"weeks": weeks}))[0]
    unknown = [row | {"campaign_count": 2, "sent_count": None, "open_rate": None} for row in weeks]
    assert ": 2 campaigns; 3 automation" in write_headline(account(**FULL | {"weeks": unknown}))[0]


def test_columns_and_rows_without_any_value_are_left_out() -> None:
    unknown = FULL["lists"][0] | {"joined_count": None}
    assert ">Moved<" in page(account(**FULL))
    assert ">Moved<" not in page(account(**FULL | {"lists": [unknown]}))
    assert "LinkedIn" in page(account(**FULL))
    assert '<th class="head number" scope="col">Contacts joined<' in page(account(**FULL))
    months = [FULL["months"][0] | {"joined_count": None}]
    assert ">Contacts joined</th>" not in page(account(**FULL | {"months": months}))
    silent = FULL["networks"][0] | {"post_count": None}
    assert "LinkedIn" not in page(account(**FULL | {"networks": [silent, silent | {"network": "x"}]}))


def test_accounts_that_need_attention_come_first_and_are_told_apart() -> None:
    business = FULL["business"]
    refused = [{"table_name": "lists", "list_name": None}]
    accounts = [account("north", business=business), account("south", business=business, refused=refused)]
    report = ReportData(Published(NOW, NOW, PersonalData.KEEP, 1, 1), mark_namesakes(accounts))
    overview, _, below = render_report(report).partition('class="account"')
    assert overview.index("(south)") < overview.index("(north)")
    for part in (
        below,
        *(load_environment().get_template(f"mail.{kind}").render(report=report) for kind in ("html", "txt")),
    ):
        assert part.index("(south)") < part.index("(north)"), "their own parts have the same order"
    assert "Not updated" in overview


@pytest.mark.parametrize(
    ("business_name", "title"), [("Hill & Co", "Hill & Co"), ("", "hill"), (None, "hill")]
)
def test_an_account_without_a_business_name_has_its_own(business_name: str | None, title: str) -> None:
    assert account("hill", business=[{"business_name": business_name}]).title == title


def test_why_something_is_not_known_is_said() -> None:
    found = explain_unknown([])
    assert any(
        line.startswith("No figures for contacts joined, contacts left")
        and line.endswith("they begin with the first complete week after the first sync.")
        for line in found
    )
    assert "No figures for opened, clicked: no campaign with known results was sent in these weeks." in found


def test_charts_say_what_they_show() -> None:
    pictures = [
        attributes
        for name, attributes in Elements(page(account(**FULL))).found
        if name == "svg" and "aria-hidden" not in attributes
    ]
    assert len(pictures) >= 7
    assert all(len(picture["aria-label"] or "") > 20 and picture["role"] == "img" for picture in pictures)


@pytest.mark.parametrize(
    "accounts", [(), (account(),), (account(), account("hill"))], ids=["nobody", "one", "two"]
)
def test_an_account_without_data_gets_a_page_that_says_so(accounts: tuple[AccountData, ...]) -> None:
    html = page(*accounts)
    assert Elements(html).open == []
    assert "None" not in html
    assert html.count("Not read completely yet: Last complete week, By month, Campaigns") == len(accounts)
    assert ("Nothing has been read yet." in html) is not bool(accounts)


def test_sections_without_data_are_left_out_and_named_once() -> None:
    read = [
        FULL["freshness"][0] | {"subject": subject, "coverage_rate": 1.0}
        for subject in ("lists", "contacts", "campaigns", "campaign_stats")
    ]
    month = dict.fromkeys(FULL["months"][0]) | {"begins_on": TODAY, "is_over": True}
    html = page(account(freshness=read, months=[month]))
    assert re.findall(r'id="main-(\w+)"', html) == ["data"], "a month without any figure is no content"
    assert html.count("There are no contacts yet.") == 1, "neither contacts nor tiers"
    assert "Not read completely yet: Reputation, Social networks." in html
    assert "Not read completely" not in page(account(**FULL))


def test_a_site_without_a_known_review_has_an_empty_field_unless_all_were_read() -> None:
    first = FULL["site_months"][0]
    earlier = (TODAY.replace(day=1) - dt.timedelta(days=1)).replace(day=1)
    months = [FULL["months"][0], FULL["months"][0] | {"begins_on": earlier, "online_review_count": None}]
    sites = [first, first | {"channel": "Foursquare", "begins_on": earlier}]
    html = page(account(**FULL | {"months": months, "site_months": sites}))
    fields = re.findall(r'<td class="cell number heat muted">(.*?)</td>', html)
    assert fields == ["0", ""], "Foursquare in March, Yelp in February"


@pytest.mark.parametrize(("coverage", "is_said"), [(1.0, True), (0.5, False), (None, False)])
def test_that_there_is_none_is_only_said_of_what_was_read(coverage: float | None, is_said: bool) -> None:
    html = page(
        account(freshness=[FULL["freshness"][0] | {"subject": "campaigns", "coverage_rate": coverage}])
    )
    assert ("No campaign has been sent yet." in html) is is_said
    assert "There are no reviews yet." not in html


def test_rating_is_compared_with_the_number_of_its_reviews() -> None:
    html = page(account(**FULL))
    assert "1 → 11" in html
    assert "4.5, 3 reviews" in html, "weeks"
    assert "2.5, 2 reviews" in html, "months"
    unknown = {**FULL["channels"][0], "served_review_count_before": None, "average_rating_change_28d": None}
    assert "→ 11" not in page(account(**FULL | {"channels": [unknown]}))


def test_refused_listings_are_named_at_the_top() -> None:
    refused = [
        {"table_name": "contacts", "list_name": "Regulars"},
        *({"table_name": name, "list_name": None} for name in ("campaigns", "goals", "users", "webhooks")),
    ]
    top = page(account(**FULL, refused=refused)).partition('class="figure-name"')[0]
    assert "Not updated." in top
    assert "contacts of “Regulars”, campaigns, goals, users and 1 more" in top
    assert "--accept-shrink" in top
    assert "Not updated." not in page(account(**FULL))


@pytest.mark.parametrize(("unknown", "posts"), [((0,), 28), ((0, 5), None)])
def test_networks_sum_the_28_whole_days_to_yesterday(unknown: tuple[int, ...], posts: int | None) -> None:
    """Today's posts are never known before it is over. One network shows its mentions each day, the other
    one only the days with posts."""
    backs = range(40)
    series = [("facebook", back, 2, None if back in unknown else 1) for back in backs]
    series += [("linkedin", back, None, 1) for back in (3, 30)]
    with duckdb.connect() as connection:
        connection.execute("create schema marts")
        connection.execute("create table days (network text, back int, mention_count int, post_count int)")
        connection.executemany("insert into days values (?, ?, ?, ?)", series)
        day = f"'main' as account, date '{TODAY}' - back as day_on"
        connection.execute(f"create table marts.social_daily as select *, {day} from days")
        connection.execute(
            "create table marts.account_daily as from marts.social_daily where network = 'facebook'"
        )
        connection.execute(f"set variable today = date '{TODAY}'")
        rows = connection.execute(QUERIES["networks"], {"account": "main"}).fetchall()
    assert rows == [("facebook", 56, posts), ("linkedin", None, posts and 1)]


@pytest.mark.parametrize("left_out", sorted(FULL))
def test_any_part_may_be_missing(left_out: str) -> None:
    assert Elements(page(account(**FULL | {left_out: []}))).open == []


def test_names_and_words_of_people_are_left_out_when_they_are_hashed_or_dropped() -> None:
    steps = [FULL["automations"][0] | {"subject": None, "message_text": "c40e55"}]
    rows = FULL | {"reviews": [review("9f2c1d", "77ab12")], "automations": steps}
    html = page(account(has_texts=False, **rows))
    assert not re.findall("9f2c1d|77ab12|c40e55", html)
    assert "c40e55 · email" in page(account(**rows))
    assert "Names and words of reviewers are left out" in html


def test_the_preview_holds_numbers_only() -> None:
    said = render_preview(ReportData(Published(NOW, NOW, PersonalData.KEEP, 1, 1), [account(**FULL)]))
    assert said.startswith("**main**, 20 Mar 2026")
    assert "|  | 9–15 Mar 2026 | week before | change |" in said
    assert "| Campaign messages | 14 | 14 | ±0 |" in said
    assert "Harbor" not in said
    assert "Spring" not in said


def test_a_week_is_from_monday_to_sunday_and_unknown_until_it_was_seen_whole() -> None:
    """Of Friday, 20 March: the running week began on the 16th."""
    rows = [
        {"day_on": TODAY - dt.timedelta(back), "good_count": 1, "social_click_change": 10, "visit_count": 0}
        for back in range(1, 15)
    ]
    assert counted(rows, "good_count") == (4, 7, None), "three days of the week before are known"
    assert counted([{"day_on": TODAY, "good_count": 5}, *rows], "good_count") == (9, 7, None)
    assert counted(rows, "social_click_count") == (40, 70, None)
    assert counted(rows, "automation_count") == (1, 0, None), "none only where timelines were read"
    rows[5]["good_count"] = rows[5]["social_click_change"] = None
    assert counted(rows, "good_count") == (4, None, None)
    assert counted(rows, "social_click_count") == (40, 60, None), "the next night shows what one missed"


def test_nobody_is_at_risk_in_a_week_whose_timelines_are_unread() -> None:
    with duckdb.connect() as connection:
        connection.execute(f"""
            create schema marts; set variable today = date '{TODAY}';
            create table marts.account_daily as select 'main' as account, day::date as day_on,
                if(day < date '2026-03-09', 0, null) as visit_count
                from range(date '2026-03-02', date '{TODAY}', interval 1 day) as days (day);
            create table marts.contact_lifecycle as select account, day_on, 'at risk' as transition from marts.account_daily;
        """)
        *_, before, last = fetch_records(connection, QUERIES["lifecycle_weeks"], {"account": "main"})
    assert (before["lost"], last["lost"]) == (7, None)


def counted(days: list[dict[str, Any]], column: str) -> tuple[float | None, ...]:
    """In the running week, the last one and the one before."""
    return tuple(row[column] for row in weeks_of(days)[:3])


def test_what_is_not_known_is_a_dash_and_is_compared_with_nothing() -> None:
    rows = [{"day_on": TODAY - dt.timedelta(days=back), "good_count": 1} for back in range(1, 12)]
    found = {change.name: change for change in list_changes(account(days=rows))}
    assert found["Good reviews"][1:6] == ("7", UNKNOWN, UNKNOWN, UNKNOWN, "4")
    assert not found["Contacts left"].is_known
    assert found["Rating on review sites"].last == "4.5, 3 reviews"


def test_the_weeks_of_one_account_are_not_those_of_another() -> None:
    assert [row["begins_on"] for row in weeks_of([])] == [
        TODAY - dt.timedelta(days=TODAY.weekday() + 7 * back) for back in range(66)
    ]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (formatting.format_number(1234.4), "1,234"),
        (formatting.format_number(None), "–"),
        (formatting.format_share(0.2345), "23.5 %"),
        (formatting.change_of(-3), "−3"),
        (formatting.change_of(0.04, 1), "±0"),
        (formatting.format_points(0.021), "+2.1 pts"),
        (formatting.format_day(TODAY), "20 Mar 2026"),
        (formatting.days_of(dt.date(2026, 11, 30)), "30 Nov – 6 Dec 2026"),
        (formatting.days_of(dt.date(2026, 12, 28)), "28 Dec 2026 – 3 Jan 2027"),
        (formatting.days_of(dt.date(2026, 11, 30), 1), "30 Nov 2026"),
        (formatting.count_of(1, "address", "addresses"), "1 address"),
        (formatting.cut_text("a" * 9, 5), "aaaa…"),
        (
            load_environment()
            .from_string('<b title="{{ title }}">{{ text }}</b>')
            .render(title='"', text="<"),
            '<b title="&#34;">&lt;</b>',
        ),
        (drop_unreadable("a\x07\u2066b"), "ab"),
    ],
)
def test_a_value_in_words(shown: str, expected: str) -> None:
    assert shown == expected


@pytest.mark.parametrize(
    "values", [(0, 0), (5, 5), (-1, 1), (0.001, 0.002), (0, 1_000_000), (999_999, 1_000_000)]
)
def test_ticks_hold_the_values_between_them(values: tuple[float, float]) -> None:
    ticks = charts._round_ticks(*values)
    assert ticks[0] <= values[0] <= values[1] <= ticks[-1]
    assert 2 <= len(ticks) <= 7


def test_a_report_of_nothing_published_says_what_to_do(command: Command) -> None:
    ran = command("report")
    assert ran.code == 1
    assert "run `marketing-sync sync` to publish it" in ran.err


def test_an_account_that_was_removed_from_the_settings_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ReportData(Published(NOW, NOW, PersonalData.KEEP, 1, 1), [account("gone"), account("here")])
    monkeypatch.setattr("report.render.read_report", lambda path, now: found)
    _, report = write_report(prepare_home(tmp_path), [Connection("here", "https://x/1", Secret("key"))])
    assert [one.name for one in report.accounts] == ["here"]
    assert "gone" not in report_of(tmp_path).read_text()


def named_columns(query: str) -> set[str]:
    """The columns of the query that Python names."""
    (row_type,) = get_args(ReportRows.__annotations__.get(query, Rows))
    return set(getattr(row_type, "__annotations__", ()))


def test_every_query_fits_what_a_night_published(rough_night: Any) -> None:
    path: Path = rough_night.home / "published" / "marketing.duckdb"
    with duckdb.connect(str(path), read_only=True) as connection:
        for name, sql in QUERIES.items():
            found = connection.execute(sql, {"account": "main"})
            assert named_columns(name) <= {column[0] for column in found.description}
    report = read_report(path, dt.datetime.now(dt.UTC))
    assert [one.name for one in report.accounts] == ["main"]
    assert [name for name, rows in report.accounts[0].rows.items() if not rows] == ["refused"]
    assert (rough_night.home / "report" / "index.html").stat().st_mode & 0o777 == 0o600


def test_a_feedback_page_is_a_channel_once_it_has_a_review(rough_night: Any) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"attach '{rough_night.home}/published/marketing.duckdb' as night (read_only)")
        connection.execute("create schema marts")
        for table in ("reputation_overview", "account_daily"):
            connection.execute(f"create table marts.{table} as from night.marts.{table}")
        connection.execute("update marts.reputation_overview set review_count = 0, average_rating = null")
        assert len(connection.execute(QUERIES["channels"], {"account": "main"}).fetchall()) == 1
        connection.execute("update marts.account_daily set good_count = 0, bad_count = 0")
        assert connection.execute(QUERIES["channels"], {"account": "main"}).fetchall() == []


KILLED = """
import os, signal, sys
from pathlib import Path
import report.render as write

write.read_report = lambda path, now: None
write.render_report = lambda report: "<html>"
write.render_preview = lambda report: ""
if sys.argv[2] == "killed":
    write.move_into_place = lambda temporary, path: os.kill(os.getpid(), signal.SIGKILL)
write.write_report(Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_what_a_killed_report_left_goes_with_the_next(tmp_path: Path) -> None:
    for ending, left in (("killed", True), ("", False)):
        prepare_home(tmp_path)  # as every command does
        subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), ending], check=not left)
        assert any(path.read_text() for path in (tmp_path / "tmp").rglob("*") if path.is_file()) is left
    assert [path.name for path in (tmp_path / "report").iterdir()] == ["index.html"]


# -- the headline


def weeks(*counts: int) -> list[dict[str, Any]]:
    """A row a day with the reviews of these weeks, oldest first, the last of which ends last Sunday."""
    days = [count if day == 0 else 0 for count in counts for day in range(7)]
    monday = TODAY - dt.timedelta(days=TODAY.weekday())
    return [
        {"day_on": monday - dt.timedelta(days=len(days) - place), "good_count": count}
        for place, count in enumerate(days)
    ]


@pytest.mark.parametrize(
    ("counts", "usual", "is_surprise"),
    [
        ((50, 52, 48, 50, 51, 49, 50, 50, 90), (35, 65), True),
        ((50, 52, 48, 50, 51, 49, 50, 50, 60), (35, 65), False),
        ((0, 0, 0, 0, 0, 0, 0, 0, 1), (0, 2), False),
        ((0, 0, 0, 0, 0, 0, 0, 0, 9), (0, 2), True),
        ((10, 100, 20, 90, 30, 80, 40, 70, 100), (0, 144), False),  # it varies that much
        ((0, 18, 0, 0, 19, 0, 40, 0, 17), (0, 19), False),  # most weeks have none, and some have many
        ((5, 5, 5, 90), None, False),  # too few weeks
    ],
)
def test_what_is_usual_is_told_by_earlier_weeks(
    counts: tuple[int, ...], usual: tuple[int, int] | None, is_surprise: bool
) -> None:
    (found,) = [each for each in list_changes(account(days=weeks(*counts))) if each.name == "Good reviews"]
    assert found.last == str(counts[-1])
    assert found.usual == usual
    assert bool(found.surprise) is is_surprise


def test_the_headline_says_what_happened_what_moved_most_and_the_newest_campaign() -> None:
    sent = {
        **FULL["campaigns"][0],
        "sent_at": dt.datetime.combine(TODAY, dt.time(), dt.UTC),
        "median_open_rate_90d": 0.366,
    }
    unknown: dict[str, Any] = dict.fromkeys((*COUNTS, *SUMMED))
    rows = {
        "days": [
            {**unknown, **row, "member_count": None, "active_member_count": None, "sent_count": 100}
            for row in weeks(50, 52, 48, 50, 51, 49, 50, 50, 90)
        ],
        "campaigns": [{**sent, "open_rate": 0.4, "subject": "<b>Sale</b>"}],
    }
    said = write_headline(account(**FULL | rows))
    assert said == [
        "Last complete week, 9–15 Mar 2026: 1 campaign with 700 messages, 50.0 % opened; 90 good reviews on the "
        "feedback page.",
        "Good reviews: 90 in that week, usually 35 to 65. A campaign was sent that week.",
        f"“<b>Sale</b>”, sent {TODAY.day} {TODAY:%b %Y}: 40.0 % opened so far, usually 36.6 %.",
    ]
    assert "“&lt;b&gt;Sale" in page(account(**FULL | rows))


def test_unusual_days_are_told_below_what_changed_by_the_names_of_the_page() -> None:
    sentence = "Visits: 60 on Friday, usually 10 on a Friday"
    unusual = {"anomalies": [{"day_on": TODAY, "figure": "visit_count", "sentence": sentence}]}
    assert "<li>Visits to your pages: 60 on Friday, usually 10 on a Friday</li>" in page(
        account(**FULL | unusual)
    )
    assert "Unusual days" not in page(account(**FULL))


def test_a_figure_shows_how_it_came_to_be() -> None:
    assert draw_sparkline("People", [1, 3, 2]).count("L") == 2
    assert not draw_sparkline("People", [2, 2, 2])
    assert not draw_sparkline("People", [1, 2]), "two nights are no trend"
    assert not draw_sparkline("People", [])


def test_a_figure_names_its_sample() -> None:
    first = FULL["spans"][0] | {"average_rating": 5.0, "rating_count": 1}
    rated = account(**FULL | {"spans": [first, *FULL["spans"][1:]]})
    figure = key_figures(rated)[2]
    assert (figure.value, figure.value_of_sample) == ("5.0", "5.0, 1 review")
    assert figure.below == "1 review in the 13 weeks to 15 Mar"
    assert not figure.compared, "nothing is known of earlier weeks"
    assert key_figures(rated)[1].below == "2 campaigns together in the 13 weeks to 15 Mar"
    assert "5.0, 1 review<" in page(rated, account("other"))


def test_one_is_singular() -> None:
    sent = page(account(**FULL | {"campaigns": [campaign("News", sent_count=1)]}))
    assert "to 1 person<" in sent
    days = [row | {"good_count": 1 if row["day_on"] == dt.date(2026, 3, 10) else 0} for row in FULL["days"]]
    assert "1 good review on the feedback page" in write_headline(account(**FULL | {"days": days}))[0]


def test_the_text_of_a_line_is_not_rounded_more_than_the_figure() -> None:
    members = [row | {"active_member_count": 1_234_000 + place} for place, row in enumerate(FULL["days"])]
    html = page(account(**FULL | {"days": members}))
    assert f"from 1,234,000 to {1_234_000 + len(members) - 1:,}" in html


def test_the_contacts_of_a_figure_are_those_of_its_line() -> None:
    figure = key_figures(account(**FULL))[0]
    assert (figure.value, figure.below, figure.compared) == ("400", "of 500, on 20 Mar 2026", "+7 in 7 days")
    assert figure.trend[-1] == 400
