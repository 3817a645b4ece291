"""Every notebook runs from its first cell to its last on the published file, with and without personal data,
and on one without rows.

What they say in words is what the tables hold; gaps stay gaps; queries are bounded.
"""

import html
import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from home.formatting import format_share
from marketing_api.redaction import Secret
from tests.waiting import HANGS_S
from warehouse.masking import Masking
from warehouse.models import build_models
from warehouse.policies import PersonalData
from warehouse.publish import publish_copy, published_path

FOLDER = Path(__file__).parents[3] / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.py") if "marimo.App(" in path.read_text())

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries that notebooks use


@pytest.fixture(
    scope="module",
    params=["keep", "drop", *(pytest.param(name, marks=pytest.mark.slow) for name in ("hash", "empty"))],
)
def home(
    request: pytest.FixtureRequest, built: Path, empty_tables: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A home with a published file."""
    home = tmp_path_factory.mktemp(request.param)
    shutil.copy(empty_tables if request.param == "empty" else built, home / "warehouse.duckdb")
    if request.param == "empty":
        assert not build_models(home / "warehouse.duckdb").failure_summary
    personal_data = PersonalData.KEEP if request.param == "empty" else PersonalData(request.param)
    publish_copy(home, Masking(personal_data, Secret("k" * 20)))
    (home / "warehouse.duckdb").unlink()  # notebooks need nothing but the copy
    return home


@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.slow
def test_every_notebook_runs(name: str, home: Path, run: Any) -> None:
    run(name, home)


@pytest.mark.slow
def test_the_segment_is_of_people_who_may_be_mailed(home: Path, run: Any) -> None:
    defined = run("contact_segments", home)
    segment = defined["segment"]
    assert set(segment["status"]) <= {"active"}
    assert set(segment["engagement_tier"]) <= {"dormant"}
    assert len(segment) == 0 if "empty" in home.name else len(segment) > 10
    for days, tiers in ((0, {"unread", "cooling"}), (30, {"cooling"})):
        chosen = {"wanted": ["unread", "cooling"], "on_list": "any list", "quiet_days": days}
        segment = run("contact_segments", home, lists=None, names=None, **chosen)["segment"]
        assert set(segment["engagement_tier"]) == (set() if "empty" in home.name else tiers)


def _stats(shown: str) -> dict[str, str]:
    """Label → value of the large figures."""
    pairs = re.findall(r"<marimo-stat data-value='([^']*)' data-label='([^']*)'", shown)
    return {html.unescape(label).strip('"'): html.unescape(value).strip('"') for value, label in pairs}


def _only(home: Path, sql: str, *values: Any) -> Any:
    with duckdb.connect(str(published_path(home)), read_only=True) as connection:
        found = connection.execute(sql, values).fetchall()
    return found[0] if found else None


@pytest.mark.slow
def test_large_figures_are_the_numbers_that_their_labels_say(home: Path, run: Any) -> None:
    facts = _stats(run("getting_started", home)["shown"])
    rows, tables = _only(home, "select row_count, table_count from sync.published")
    assert (facts["rows"], facts["tables"]) == (f"{rows:,}", str(tables))

    defined = run("data_quality", home)
    shown = _stats(defined["shown"])
    counts = (
        "count(*), count(*) filter (coverage_rate = 1), count(*) filter (is_overdue), "
        "coalesce(sum(rejected_count), 0)"
    )
    wanted = _only(
        home, f"select {counts} from marts.data_freshness where account = ?", defined["account"].value
    )
    read = "coalesce(sum(read_part_count), 0) from marts.data_coverage where subject = 'contact timelines'"
    (count,) = _only(home, f"select {read} and account = ?", defined["account"].value)
    assert defined["asked"]["contacts"].sum() == count, "without deleted contacts"
    labels = ("tables, and readings by contact", "complete", "overdue", "entries that could not be read")
    assert tuple(shown[label] for label in labels) == tuple(f"{value:,.0f}" for value in wanted)
    assert ("Syncing has stopped" in defined["shown"]) is (wanted[0] > 0), "the made-up data is of long ago"


@pytest.mark.slow
def test_a_campaign_s_figures_are_its_row_of_the_mart(home: Path, run: Any) -> None:
    if "empty" in home.name:
        return
    defined = run("campaign_review", home)
    names = ("delivered_count", "opened_count", "clicker_count")
    delivered, opened, clicked = (defined["campaigns"][name] for name in names)
    rates = [format_share(one.sum() / delivered[one.notna()].sum()) for one in (opened, clicked)]
    said = f"{delivered.sum():,.0f} messages delivered: {rates[0]} opened, {rates[1]} clicked."
    assert clicked.hasnans
    assert f"{defined['days'].start}" == "2025-02-14", "of a campaign whose send time is unknown"
    assert any(one.endswith(said) for one in _headings(defined["shown"])), "each of what is known of it"
    shown = _stats(defined["shown"])
    columns, chosen = (
        "delivered_count, open_rate, click_rate, unsubscribed_count",
        (defined["account"].value, defined["campaign_id"]),
    )
    row = _only(
        home,
        f"select {columns} from marts.campaign_performance where account = ? and campaign_id = ?",
        *chosen,
    )
    delivered, opened, clicked, unsubscribed = row
    assert shown["delivered"] == f"{delivered:,.0f}"
    assert (shown["opened"], shown["clicked"]) == tuple(format_share(rate) for rate in (opened, clicked))
    assert shown["unsubscribed"] == f"{unsubscribed:,.0f}"


def _headings(shown: str) -> list[str]:
    found = re.findall(r"<h2 class='finding'>(.*?)</h2>", shown) + re.findall(r"<li>(.*?)</li>", shown)
    return [html.unescape(one).replace("\N{NO-BREAK SPACE}", " ") for one in found]


def test_headings_say_what_was_found(home: Path, run: Any) -> None:
    defined = run("contact_segments", home)
    tiers = (
        "count(*) filter (engagement_tier = 'engaged'), count(*), count(*) filter (engagement_tier "
        "= 'dormant')"
    )
    engaged, everybody, dormant = _only(
        home, f"select {tiers} from marts.contact_engagement where account = ?", defined["account"].value
    )
    said = (
        f"{engaged:,} of {everybody:,} people are engaged ({format_share(engaged / everybody)}), "
        f"{dormant:,} are dormant"
        if everybody
        else ""
    )
    headings = _headings(defined["shown"])
    assert any(one.startswith(said or "There are no contacts yet.") for one in headings), (said, headings)
    assert ("segment.csv" in defined["shown"]) is ("keep" in home.name), (
        "addresses that are not there are not pushed"
    )


def test_of_data_that_was_not_read_nothing_is_claimed(home: Path, run: Any) -> None:
    headings = _headings(run("data_quality", home)["shown"])
    checked = 6 if "keep" in home.name else 4  # no address can be checked in a masked copy
    assert any(f" of {checked} checks " in one for one in headings) is ("empty" not in home.name)
    assert ("Nothing was read yet." in headings) is ("empty" in home.name)
    assert any("could be read" in one or "could not be read" in one for one in headings) is (
        "empty" not in home.name
    )


def test_a_review_without_words_says_why(home: Path, run: Any) -> None:
    if "empty" not in home.name:
        headings = _headings(run("reputation", home)["shown"])
        assert any(
            one.startswith("The newest") and ("without their words" in one) is ("keep" not in home.name)
            for one in headings
        )


@pytest.fixture
def published(home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("MARKETING_HOME", str(home))
    return importlib.import_module("published")


@pytest.mark.slow
def test_every_question_of_the_marts_can_be_asked_and_drawn(published: Any) -> None:
    con, examples = published.connect(), published.examples()
    assert len(examples) > 30
    assert "marts.data_freshness" in set(published.tables(con)["Table"]), "a view"
    for question, sql in examples.items():
        answer = published.ask(con, sql)
        assert not isinstance(answer, str), (question, answer)
        for measure in published.measures(answer)[:1]:
            published.picture(answer, measure)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("select * from nope", "cannot be run: Catalog Error: Table with name nope does not exist!"),
        ("selec 1", "cannot be run: Parser Error"),
        ("", "has to be one SELECT"),
        ("delete from marts.account_daily", "has to be a SELECT"),
        ("select 1; select 2", "this is 2 statements"),
        ("select $a", "has parameters"),
        ("from read_csv('/etc/hostname')", "may read the tables and nothing else"),
        ("select range(1000000000)", "more than 1GB of memory"),
        (
            "select count(*) from range(1000000) a, range(1000000) b where a.range * b.range = 7",
            "longer than 0.2 seconds",
        ),
    ],
)
def test_a_query_that_cannot_be_answered_gets_a_sentence(
    published: Any, home: Path, sql: str, why: str
) -> None:
    if "keep" not in home.name:
        return
    con = published.connect()
    limit = (
        0.2 if "seconds" in why else HANGS_S
    )  # or a busy machine takes longer than a query that is refused
    assert why in published.ask(con, sql, limit)
    assert not isinstance(published.ask(con, "select 1 as one"), str), "the next one is answered"


def test_an_answer_ends_one_row_after_what_is_shown(published: Any, home: Path) -> None:
    if "keep" in home.name:
        many = published.ask(published.connect(), "select range as n from range(100000) order by n desc")
        assert published.ROW_LIMIT < len(many) < 5_000
        assert many["n"].iloc[0] == 99_999
        assert published.ask(published.connect(), "select 1 as n where false").empty


def _points(published: Any, days: list[str], values: list[float | None]) -> list[tuple[str, float | None]]:
    frame = pd.DataFrame(
        {"x": pd.to_datetime(pd.Series(days)), "y": pd.Series(values, dtype="float64"), "what": "a"}
    )
    drawn = published._with_gaps(frame)
    return [(f"{x:%m-%d}", None if pd.isna(y) else y) for x, y in zip(drawn["x"], drawn["y"], strict=True)]


def test_no_line_is_drawn_over_days_that_are_missing(published: Any) -> None:
    days = ["2026-01-01", "2026-01-02", "2026-01-05"]
    assert _points(published, days, [1, None, 4]) == [
        ("01-01", 1),
        ("01-02", None),
        ("01-03", None),
        ("01-04", None),
        ("01-05", 4),
    ]
    weeks = ["2026-01-05", "2026-01-12", "2026-01-26"]
    assert _points(published, weeks, [1, 2, 4]) == [("01-05", 1), ("01-12", 2), ("01-19", None), ("01-26", 4)]
    months = ["2026-01-01", "2026-02-01", "2026-04-01"]
    assert _points(published, months, [1, 2, 4]) == [
        ("01-01", 1),
        ("02-01", 2),
        ("03-01", None),
        ("04-01", 4),
    ]


def test_an_account_whose_business_is_unknown_can_be_chosen(published: Any) -> None:
    with duckdb.connect() as con:
        con.execute("create schema sync; create table sync.coverage as select 'a' as account from range(2)")
        assert published.accounts(con) == ["a"]


def test_what_is_not_known_is_a_dash_and_no_zero(published: Any) -> None:
    frame = pd.DataFrame(
        {
            "n": [1234.0, None, 0.0014],
            "flag": [True, False, None],
            "on": pd.to_datetime(["2026-01-02", None, None]),
        }
    )
    forms = {name: published._form(frame[name]) for name in frame}
    written = [[forms[name](value) for value in frame[name]] for name in frame]
    assert written == [["1,234", "–", "0.0014"], ["yes", "no", "–"], ["2026-01-02", "–", "–"]]


def test_without_a_published_file_the_way_to_one_is_said(tmp_path: Path, run: Any) -> None:
    with pytest.raises(Exception, match="make sync"):
        run("getting_started", tmp_path)


#: What marimo takes for the address of a picture in a cell of a table, and loads.
_LOADED = re.compile(r"^data:image/|https?://[^\s\"<>`{}|\\^]+", re.IGNORECASE)
_PICTURES = ("https://x.example/a.png", "look http://x.example/b.GIF?u=1 here", "data:image/svg+xml;base64,AA==", "https://x.example/a.svg#b",
             '<img src="https://x.example/c.webp">', "https://avatars.githubusercontent.com/u/1", "HTTPS://x.example/d.jpeg")  # fmt: skip


@pytest.mark.parametrize("text", _PICTURES)
def test_no_picture_that_a_text_names_is_loaded(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    shown = importlib.import_module("published").shown
    assert _LOADED.search(text)
    assert not _LOADED.search(shown(text))
    assert shown(text).replace("\u2060", "") == text, "it is read as it was written"
    assert shown("https://x.example/menu?a=1") == "https://x.example/menu?a=1", "other addresses stay links"
