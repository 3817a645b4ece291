"""A service that fails now and then costs retries, nothing else; one that fails for good costs the tables it stands for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.pipelines.conftest import Command, Night, StartSandbox
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import differing, source

#: Well above what is promised (2 % 500s, 1 % resets, 0.5 % cut JSON, 1 % 502 pages, 0.5 % HTML with 200), so that a few hundred
#: requests meet every one of them.
CHANCES = {"500-before": 0.05, "reset": 0.03, "cut-json": 0.03, "502-html": 0.03, "html-200": 0.03, "429": 0.02, "stall": 0.02}
#: Those after which the question has to be asked again; after a stall the answer comes all the same.
BROKEN = CHANCES.keys() - {"stall"}


def repeats(service: Sandbox) -> dict[tuple[str, str], int]:
    """How often each question was asked beyond once and its faults."""
    asked: Counter[tuple[str, str]] = Counter()
    for entry in service.asked():
        asked[entry["operation"], str(entry["params"])] += entry["outcome"] not in BROKEN
    return {question: count for question, count in asked.items() if count != 1}


def test_a_calm_night_asks_every_question_once(calm_night: Night) -> None:
    assert repeats(calm_night.sandbox) == {}


@pytest.mark.filterwarnings("ignore")
def test_faults_cost_one_more_request_each_and_no_row(command: Command, start_sandbox: StartSandbox, home: Path, calm_night: Night) -> None:
    faults = [word for name, chance in CHANCES.items() for word in (f"--fault-{name}", str(chance))]
    service = start_sandbox(*faults, "--stall-seconds", "0.7")
    ran = command("sync", sandbox=service)
    assert ran.code == 0, ran.text[-2000:]
    assert differing(source(home), source(calm_night.home)) == set()
    met = Counter(entry["outcome"] for entry in service.asked())
    assert met.keys() >= CHANCES.keys(), "some fault did not happen: this proves nothing about it"
    assert repeats(service) == {}


@pytest.mark.filterwarnings("ignore")
def test_what_fails_for_good_costs_its_own_tables_and_is_reported(
    command: Command, start_sandbox: StartSandbox, home: Path, calm_night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    """getlist is a detail: the lists themselves, and all that depends on them, must be there without it."""
    monkeypatch.setattr("marketing_api.client.TRIES", 2)
    monkeypatch.setattr("assets.materialize._RETRY_AFTER_S", 0)
    service = start_sandbox("--fault-500-before", "1@emailmarketing/getlist,socialmedia/stats", "--fault-1002", "1@reputation/sentiment")
    ran = command("sync", sandbox=service)
    assert ran.code == 1
    _, _, reported = ran.out.partition("not read\n")
    reasons = dict(line.strip().split(", account main: ", 1) for line in reported.split("\n\n")[0].splitlines())
    assert reasons.keys() == {"lists", "social_links", "sentiment"}
    assert "HTTP 500" in reasons["lists"]
    assert "HTTP 500" in reasons["social_links"]
    assert "not available to this account" in reasons["sentiment"]

    calm, found = source(calm_night.home), source(home)
    missing = {"list_fields", "social_links", "social_link_clicks", "sentiment_mentions", "sentiment_totals"}
    assert differing(calm, found) == missing | {"lists"}
    assert [len(found[table]) for table in missing] == [0] * 5
    assert len(found["lists"]) == len(calm["lists"])

    service.control("faults", off=1)
    assert command("sync", sandbox=service).code == 0
    mended = source(home)
    assert differing(calm, mended) <= {"sentiment_totals"}, "keyed by the range that was asked for, and the second is another"
