"""A service that fails now and then costs retries only; one that fails for good costs its own tables."""

from collections import Counter
from pathlib import Path
from unittest.mock import patch

import duckdb
import pytest

from assets.reader import Reader
from assets.result import AccountResult
from assets.sources import SOURCE_ASSETS
from home.folder import prepare_home
from home.settings import Settings
from marketing_api.client import Connection, Secret
from marketing_api.errors import Refused, Transient
from pipelines.reading import open_reader
from tests.dialects.server import serve
from tests.fixtures import FAULTS, STANDING, Command, Night, StartSandbox
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.tables import differing, source
from warehouse.archive.archive import Archive
from warehouse.errors import ArchiveFull

#: Those after which the question has to be asked again; after a stall the answer comes all the same.
BROKEN = FAULTS.keys() - {"stall"}


def repeats(night: Night) -> dict[tuple[str, str], int]:
    """How often each question was asked beyond once and its faults."""
    asked: Counter[tuple[str, str]] = Counter()
    for entry in night.asked:
        asked[entry["operation"], str(entry["params"])] += entry["outcome"] not in BROKEN
    return {question: count for question, count in asked.items() if count != 1}


@pytest.mark.attack
def test_a_calm_night_asks_every_question_once(calm_night: Night) -> None:
    assert repeats(calm_night) == {}


def test_faults_cost_one_more_request_each(rough_night: Night) -> None:
    met = Counter(entry["outcome"] for entry in rough_night.asked)
    assert met.keys() >= FAULTS.keys(), "some fault did not happen: this proves nothing about it"
    assert repeats(rough_night) == {}


@pytest.mark.slow
def test_faults_cost_no_row(calm_night: Night, rough_night: Night) -> None:
    assert differing(source(rough_night.home), source(calm_night.home)) == set()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_what_fails_for_good_costs_its_own_tables_and_is_reported(
    command: Command,
    start_sandbox: StartSandbox,
    home: Path,
    calm_night: Night,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """getlist is a detail: the lists themselves, and all that depends on them, must be there without it."""
    monkeypatch.setattr("marketing_api.retry.TRIES", 2)
    monkeypatch.setattr("assets.reader.RETRY_AFTER_S", 0)
    service = start_sandbox(
        "--fault-500-before",
        "1@emailmarketing/getlist,socialmedia/stats",
        "--fault-1002",
        "1@reputation/sentiment",
    )
    chosen = ["lists", "contacts", "timelines", "sentiment", "social_links", "social_profiles"]
    ran = command("sync", "--only", *chosen, sandbox=service)
    assert ran.code == 1
    _, _, reported = ran.out.partition("not read\n")
    lines = [line.strip() for line in reported.split("\n\n")[0].splitlines()]
    reasons = dict(line.split(", account main: ", 1) for line in lines if ", account main: " in line)
    assert reasons.keys() == {"lists", "social_links", "sentiment"}
    assert "HTTP 500" in reasons["lists"]
    assert "HTTP 500" in reasons["social_links"]
    assert "not available to this account" in reasons["sentiment"]

    tables = {table.name for name in chosen for table in SOURCE_ASSETS[name].tables}
    calm, found = (
        {name: rows for name, rows in source(each).items() if name in tables}
        for each in (calm_night.home, home)
    )
    missing = {"list_fields", "social_links", "social_link_clicks", "sentiment_mentions", "sentiment_totals"}
    assert differing(calm, found) == missing | {"lists"}
    assert {name for name in tables if not found[name]} == missing
    assert len(found["lists"]) == len(calm["lists"])

    service.control("faults", off=1)
    asked = service.count
    assert command("sync", "--only", *chosen, sandbox=service).code == 0
    mended = {name: rows for name, rows in source(home).items() if name in tables}
    assert differing(calm, mended) == set()
    assert service.count - asked < 130, "what was there was asked again"


def test_a_second_try_asks_only_what_may_succeed_now(
    home: Path, service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some contacts are gone for good, as the service says; others it could not tell for the moment."""
    monkeypatch.setattr("marketing_api.retry.TRIES", 1)
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        connection.execute(
            "insert into source.contacts by name select * replace (contact_id + 1000000000 as contact_id) "
            "from source.contacts limit 3"
        )
    service.control("faults", **{"500-before": "0.1@emailmarketing/getcontacttimeline"})
    timelines = SOURCE_ASSETS["timelines"]
    tries, counts = list[AccountResult](), list[int]()

    def calm_down(reader: Reader, _: float) -> bool:
        tries.extend(reader.results_of(timelines))
        service.control("faults", off=1)
        counts.append(service.count)
        return False

    monkeypatch.setattr(Reader, "_is_stopping_within", calm_down)
    with open_reader(Settings(home, (Connection("main", service.url, Secret(KEY)),)), [timelines]) as reader:
        reader.begin_reading()
        reader.finish_reading()
        (first,), (since,) = tries, counts
        passing = {
            failure.call.params["id"] for failure in first.failures if isinstance(failure.error, Transient)
        }
        refused = {
            failure.call.params["id"] for failure in first.failures if isinstance(failure.error, Refused)
        }
        assert passing
        assert refused

        (second,) = reader.results_of(timelines)
        assert {entry["params"]["id"] for entry in service.asked(since)} == passing
        assert refused <= {
            failure.call.params["id"] for failure in second.failures if isinstance(failure.error, Refused)
        }
        assert second.planned == second.fetched == first.planned
        assert not second.missing_reasons


def test_a_disk_that_is_full_at_the_first_request_is_what_is_said(tmp_path: Path) -> None:
    full = ArchiveFull(tmp_path, "no space left")
    with serve(STANDING) as url, patch.object(Archive, "record_exchange", side_effect=full):
        settings = Settings(prepare_home(tmp_path / "home"), (Connection("main", url, Secret(KEY)),))
        with pytest.raises(ArchiveFull), open_reader(settings, [SOURCE_ASSETS["lists"]]):
            pass
