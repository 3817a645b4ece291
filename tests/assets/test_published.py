"""The published copy and the report in Dagster: what they show; a refusal is not repeated."""

import datetime as dt
from pathlib import Path

import dagster as dg

from assets.published import PUBLISHED, REPORT, Publish, published_asset, report_asset
from warehouse.errors import NotPublished
from warehouse.policies import PersonalData
from warehouse.publish import Published


class Notes:
    """Stands for the reader: keeps which runs were noted before they published."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    def note_in_sync(self, context: dg.AssetExecutionContext) -> None:
        self.runs.append(context.run.run_id)


NOW = dt.datetime(2026, 3, 20, 2, 30, tzinfo=dt.UTC)


def run(publish: Publish, report: Path, notes: Notes | None = None) -> dg.ExecuteInProcessResult:
    @dg.asset
    def mart() -> None: ...

    steps = [
        mart,
        published_asset(publish, lambda _: ["custom.b was not made"], [mart.key]),
        report_asset(lambda _: (report, "**12** people", "the report was mailed to 2 addresses")),
    ]
    with dg.DagsterInstance.ephemeral() as instance:
        return dg.materialize(
            steps,
            instance=instance,
            raise_on_error=False,
            resources={"reader": notes or Notes(), "settings": None},
        )


def refuse(settings: object) -> Published:
    raise NotPublished("nothing was published: keys occur twice")


def test_they_tell_what_was_published_and_preview_the_report(tmp_path: Path) -> None:
    report = tmp_path / "index.html"
    report.write_text("x" * 4000)
    notes = Notes()
    result = run(lambda _: Published(NOW, NOW, PersonalData.HASH, 71, 20196), report, notes)
    assert notes.runs == [result.run_id], "the run is written down for the copy to hold it"
    told = {
        event.asset_key: event.materialization.metadata for event in result.get_asset_materialization_events()
    }
    assert told[PUBLISHED]["dagster/row_count"].value == 20196
    assert told[PUBLISHED]["personal data"].value == "hash"
    assert told[PUBLISHED]["custom tables"].value == "custom.b was not made"
    assert told[REPORT]["preview"].value == "**12** people"
    assert told[REPORT]["mail"].value == "the report was mailed to 2 addresses"
    assert told[REPORT]["file"].value == f"{report.parent.name}/index.html of the home"


def test_a_refusal_fails_with_its_sentence_and_nothing_follows(tmp_path: Path) -> None:
    result = run(refuse, tmp_path / "index.html")
    failed = {event.step_key: event.step_failure_data for event in result.all_events if event.is_step_failure}
    assert list(failed) == ["published"]
    assert failed["published"].user_failure_data.description == ("nothing was published: keys occur twice")
    assert [event.step_key for event in result.all_events if event.event_type_value == "STEP_START"] == [
        "mart",
        "published",
    ]
    assert not [event for event in result.all_events if event.event_type_value == "STEP_UP_FOR_RETRY"]
