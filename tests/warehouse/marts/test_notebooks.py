"""Every notebook runs from its first cell to its last on the published file, with and without personal data, and on one without rows."""

from __future__ import annotations

import html
import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from warehouse.masking import Masking
from warehouse.models import build
from warehouse.personal_data import PersonalData
from warehouse.publish import publish, published_path

FOLDER = Path(__file__).parents[3] / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.py") if "marimo.App(" in path.read_text())

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries that notebooks use


@pytest.fixture(scope="module", params=["keep", "drop", "empty"])
def home(request: pytest.FixtureRequest, built: Path, empty_tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a published file."""
    home = tmp_path_factory.mktemp(request.param)
    shutil.copy(empty_tables if request.param == "empty" else built, home / "warehouse.duckdb")
    if request.param == "empty":
        assert not build(home / "warehouse.duckdb").problem
    publish(home, Masking(PersonalData.DROP if request.param == "drop" else PersonalData.KEEP))
    (home / "warehouse.duckdb").unlink()  # notebooks need nothing but the copy
    return home


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a notebook; what its cells define."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def run_one(name: str, home: Path) -> dict[str, Any]:
        monkeypatch.setenv("MARKETING_HOME", str(home))
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        outputs, defined = module.app.run()
        return {"shown": "".join(getattr(one, "text", "") or "" for one in outputs), **dict(defined)}

    return run_one


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_notebook_runs(name: str, home: Path, run: Any) -> None:
    run(name, home)


def test_the_segment_is_of_people_who_may_be_mailed(home: Path, run: Any) -> None:
    defined = run("contact_segments", home)
    segment = defined["segment"]
    assert set(segment["status"]) <= {"active"}
    assert set(segment["engagement_tier"]) <= {"dormant"}
    assert len(segment) == 0 if "empty" in home.name else len(segment) > 10


def _stats(shown: str) -> dict[str, str]:
    """Label → value of the large figures."""
    pairs = re.findall(r"<marimo-stat data-value='([^']*)' data-label='([^']*)'", shown)
    return {html.unescape(label).strip('"'): html.unescape(value).strip('"') for value, label in pairs}


def _only(home: Path, sql: str, *values: Any) -> Any:
    with duckdb.connect(str(published_path(home)), read_only=True) as connection:
        found = connection.execute(sql, values).fetchall()
    return found[0] if found else None


def test_large_figures_are_the_numbers_that_their_labels_say(home: Path, run: Any) -> None:
    facts = _stats(run("getting_started", home)["shown"])
    rows, tables = _only(home, "select row_count, table_count from sync.published")
    assert (facts["rows"], facts["tables"]) == (f"{rows:,}", str(tables))

    defined = run("data_quality", home)
    shown = _stats(defined["shown"])
    counts = "count(*), count(*) filter (coverage_rate = 1), count(*) filter (is_overdue), coalesce(sum(rejected_count), 0)"
    wanted = _only(home, f"select {counts} from marts.data_freshness where account = ?", defined["account"].value)
    labels = ("tables, and readings by contact", "complete", "overdue", "entries that could not be read")
    assert tuple(shown[label] for label in labels) == tuple(f"{value:,.0f}" for value in wanted)
    assert ("Syncing has stopped" in defined["shown"]) is (wanted[0] > 0), "the made-up data is of long ago"


def test_a_campaign_s_figures_are_its_row_of_the_mart(home: Path, run: Any) -> None:
    if "empty" in home.name:
        return
    defined = run("campaign_review", home)
    shown = _stats(defined["shown"])
    columns, chosen = "delivered_count, open_rate, click_rate, unsubscribed_count", (defined["account"].value, defined["campaign_id"])
    row = _only(home, f"select {columns} from marts.campaign_performance where account = ? and campaign_id = ?", *chosen)
    delivered, opened, clicked, unsubscribed = row
    assert shown["delivered"] == f"{delivered:,.0f}"
    assert (shown["opened"], shown["clicked"]) == tuple("–" if rate is None else f"{rate:.1%}" for rate in (opened, clicked))
    assert shown["unsubscribed"] == f"{unsubscribed:,.0f}"


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
