"""A sample of the hostile services: each ends in time, says what is waited for, and is told for what it
is. One that does not even open holds up no other account."""

from pathlib import Path

import pytest

from assets.sources import SOURCE_ASSETS
from home.folder import prepare_home
from home.settings import Settings
from marketing_api.client import Connection, Secret
from pipelines.reading import open_reader
from tests.attack.hostile import Met, judge, meet, served
from tests.dialects.server import serve
from tests.fixtures import STANDING
from tests.pipelines.sandboxes import KEY
from tests.waiting import HANGS_S, wait_until

FASTER = 300.0


def met(name: str, folder: Path, *, was_answered: bool = True) -> Met:
    found = meet(name, was_answered=was_answered, factor=FASTER, folder=folder)
    judge(found, slack=HANGS_S * FASTER)
    return found


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("accepts and says nothing", "no byte came"),
        ("headers, a byte in 10 s", "too slowly"),
        ("endless body, 20 kB a second", "not complete after"),
        ("endless trailers", "too slowly"),
        ("100 Continue for ever", "too slowly"),
    ],
)
@pytest.mark.slow
def test_what_stalls_or_never_ends_is_ended(tmp_path: Path, name: str, reason: str) -> None:
    found = met(name, tmp_path, was_answered=False).reasons[-1]
    assert reason in found or "no byte came" in found, "a slow machine may make a longer gap"


def test_tls_that_is_never_agreed_on_is_ended(tmp_path: Path) -> None:
    assert met("TLS, a byte in 10 s", tmp_path, was_answered=False).reasons


@pytest.mark.slow
def test_an_account_that_answers_nothing_is_asked_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.attack.hostile.sped", lambda operation, _: operation)
    found = met("429, Retry-After ten years", tmp_path)
    under_way = [
        reason for reason in found.reasons if "sends no more requests" not in reason
    ]  # when it was given up; any may end last
    assert len(under_way) < len(found.reasons)
    assert all("over the rate limit" in reason for reason in under_way)
    assert any("asks to wait for 87," in line for line in found.lines)
    assert len(found.reasons) == 40, "a question was left without a reason"


@pytest.mark.parametrize(
    "name",
    ["429, Retry-After in a year without end", "429, Retry-After of 5,000 digits", "limit of 400 digits"],
)
@pytest.mark.slow
def test_figures_that_cannot_be_are_no_mishap(tmp_path: Path, name: str) -> None:
    met(name, tmp_path)


@pytest.mark.slow
def test_an_account_that_does_not_open_holds_up_no_other(tmp_path: Path) -> None:
    home = tmp_path / "home"
    prepare_home(home)
    with serve(STANDING) as url, served("accepts and says nothing", 0, 1.0) as (silent, _):
        accounts = (Connection("good", url, Secret(KEY)), Connection("silent", silent, Secret(KEY)))
        with open_reader(Settings(home, accounts), [SOURCE_ASSETS["lists"]]) as reader:
            reader.begin_reading()
            wait_until(lambda: (good := reader.results.get(("lists", "good"))) and good.reports)
            assert not reader.results["lists", "silent"].reports
            assert not next(
                session for session in reader.sessions if session.account == "silent"
            ).opened.is_set()
