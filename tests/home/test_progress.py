"""What long work shows: named phases, each once and in order, with their durations and what is left."""

import io
import re
import time

import pytest
from rich.console import Console

from home import progress
from home.progress import Phase, Phases
from marketing_api.errors import Stopped
from tests.waiting import wait_until


class Reading:
    """Work whose state is set from outside."""

    def __init__(self) -> None:
        self.state = ("reading", 0, 0, "")
        self.requests = 0
        self.looks = 0

    def progress(self) -> tuple[str, int, int, str]:
        self.looks += 1
        return self.state

    def is_seen(self) -> None:
        """Wait until somebody has looked from beginning to end."""
        before = self.looks
        wait_until(lambda: self.looks > before + 2)

    def requests_sent(self) -> int:
        return self.requests


def test_each_phase_has_one_line_in_its_order_when_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LOOK_SECONDS", 0.005)
    out, work = io.StringIO(), Reading()
    with progress.Progress(work, Console(file=out)):
        work.state = ("reading", 370, 370, "timelines")
        work.is_seen()
        work.state = ("loading", 370, 370, "")
        work.is_seen()
        for what in ("models and tests", "publishing", "report"):
            with progress.begin_stage(what):
                progress.note_progress(142, 142, "contact_campaign")
            if what == "models and tests":
                time.sleep(0.02)  # the work is back at its last word meanwhile
    timeless = re.sub(r"0:\d\d:\d\d", "0:00:00", out.getvalue())
    assert timeless.splitlines() == [
        "reading 0:00:00, 370 of 370",
        "loading 0:00:00",
        "models and tests 0:00:00, 142 of 142",
        "publishing 0:00:00, 142 of 142",
        "report 0:00:00, 142 of 142",
    ]


def test_the_rate_is_that_of_asking_and_does_not_fade_afterwards() -> None:
    work = Reading()
    phases = Phases(work, 100.0)
    work.state, work.requests = ("reading", 150, 300, "timelines"), 150
    (reading,) = phases.update_phases(110.0)
    assert (
        reading.describe_phase(110.0)
        == "reading 0:00:10, 150 of 300, 15.0 requests/s, about 0:00:10 left, timelines"
    )
    work.state, work.requests = ("loading", 300, 300, ""), 300
    reading, loading = phases.update_phases(120.0)
    assert reading.describe_phase(500.0) == "reading 0:00:20, 300 of 300, 15.0 requests/s"
    assert loading.describe_phase(150.0) == "loading 0:00:30"
    work.state = ("reading", 299, 300, "timelines")  # one is read again
    work.requests += 1
    assert [phase.name for phase in phases.update_phases(160.0)] == ["reading", "loading"]
    assert phases.update_phases(160.0)[-1].describe_phase(160.0) == "loading 0:00:40, timelines"


def test_what_is_left_is_told_when_it_can_be_known() -> None:
    assert "left" not in Phase("models and tests", 0.0, total=0).describe_phase(60.0)
    early = Phase("models and tests", 0.0, done=1, total=142).describe_phase(1.0)
    assert "left" not in early, "too early to judge by"
    assert "about 0:01:00 left" in Phase("models and tests", 0.0, done=71, total=142).describe_phase(60.0)


def test_a_long_phase_says_meanwhile_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LOOK_SECONDS", 0.005)
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.1)
    out, work = io.StringIO(), Reading()
    work.state = ("reading", 12, 1300, "timelines")
    with progress.Progress(work, Console(file=out)):
        wait_until(lambda: out.getvalue().count("12 of 1,300, timelines") >= 2)


def test_a_terminal_shows_the_phase_under_way_and_keeps_what_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LOOK_SECONDS", 0.005)
    out, work = io.StringIO(), Reading()
    work.state = ("reading", 12, 1300, "timelines")
    with progress.Progress(work, Console(file=out, force_terminal=True, width=140)):
        wait_until(lambda: "12 of 1,300, timelines" in out.getvalue())
        with progress.begin_stage("publishing"):
            wait_until(lambda: "publishing 0:" in out.getvalue())
    text = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", out.getvalue())
    text = re.sub(r"0:\d\d:\d\d", "0:00:00", text)
    assert "12 of 1,300, timelines" in text
    assert text.index("reading 0:00:00, 12 of 1,300\n") < text.index("publishing 0:00:0")


def test_no_stage_begins_once_the_process_was_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress._Now, "is_stopped", False)
    with progress.begin_stage("models and tests"):
        progress.stop_stages()
    with pytest.raises(Stopped, match="report was left out"), progress.begin_stage("report"):
        pytest.fail("it began")
