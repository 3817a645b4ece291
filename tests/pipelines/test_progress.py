"""What long work shows of itself in a plain log."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from assets.reader import ReadingState
from marketing_api.errors import Stopped
from pipelines import progress, stage


class Reading:
    def progress(self) -> ReadingState:
        return ReadingState(12, 1300, "timelines")

    def requests_sent(self) -> int:
        return 12


def wait_for(text: str, out: io.StringIO) -> None:
    deadline = time.monotonic() + 20
    while text not in out.getvalue() and time.monotonic() < deadline:
        time.sleep(0.005)


def test_every_stage_is_said_when_it_begins_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LOOK_SECONDS", 0.005)
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.05)
    out = io.StringIO()
    with progress.Progress(Reading(), Console(file=out)):
        wait_for("12 of 1,300 asked", out)
        with stage.stage("building the models"):
            wait_for("s  building the models\n", out)
            stage.tell(7, 142, "contact_campaign")
            wait_for("s  building the models, 7 of 142, contact_campaign\n", out)
        told = len(out.getvalue())
        monkeypatch.setattr(progress, "_LINE_SECONDS", 1000)
        with stage.stage("writing the report"):
            wait_for("writing the report", out)
    lines = out.getvalue()
    assert lines.index("asked") < lines.index("models\n") < lines.index("7 of 142") < lines.index("writing the report")
    assert "models" not in lines[told:]
    assert stage.now() is None


def test_no_stage_begins_once_the_process_was_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage._Now, "is_stopped", False)
    with stage.stage("building the models"):
        stage.stop()
    with pytest.raises(Stopped, match="writing the report was left out"), stage.stage("writing the report"):
        pytest.fail("it began")
