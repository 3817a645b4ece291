"""Which days are asked and count as read, over HTTP: chosen days, cut series, every zone's today."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg
import pytest

from assets import sources
from assets.days import ChosenDays, DateRange, today_in
from assets.materialize import READ_STEP, asset_key, daily_partitions
from home.folder import prepare_home
from home.settings import Settings, SettingsError
from marketing_api.client import Connection, Secret
from pipelines.definitions import build_definitions
from pipelines.schedules import ALL_DUE, DAYS_TAG, read_days_tag
from tests.dialects.server import Options, serve
from tests.fixtures import NOON, Command
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.tables import query

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("at_noon")]
UNRECORDED = pytest.mark.usefixtures("unrecorded")

DAY = dt.timedelta(days=1)
START = dt.date(2015, 1, 1)
TODAY = dt.datetime.fromtimestamp(NOON, dt.UTC).date()


def account(**options: Any) -> Options:
    return Options(**{"contacts": 100, "rate_limit": 0, "now": NOON, **options})


@pytest.fixture
def service() -> Iterator[Sandbox]:
    with serve(account()) as url:
        yield Sandbox(url)


def asked(service: Sandbox, operation: str, since: int = 0) -> list[tuple[str, str]]:
    """The ranges that were asked for."""
    found = [entry["params"] for entry in service.asked(since) if entry["operation"] == operation]
    return [(params["from"], params["to"]) for params in found]


STATS = "reputation/stats"
SERIES = ("review_stats", "social_media_stats", "feedback_views")


def series(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: query(home, f"select * exclude (_first_seen_at, _changed_at) from source.{name} order by all")
        for name in SERIES
    }


def incomplete(home: Path) -> list[tuple[Any, ...]]:
    return query(home, "select table_name, scope from sync.coverage where not is_complete order by all")


# -- series that the service cuts


@pytest.mark.attack
@UNRECORDED
def test_a_series_that_the_service_cuts_is_read_in_smaller_ranges(
    command: Command, service: Sandbox, home: Path, tmp_path: Path
) -> None:
    service.control("switches", **{"series-cut": 100})
    ran = command("sync", "--only", "reputation_stats", sandbox=service)
    assert ran.code == 0, ran.text
    assert len(asked(service, STATS)) == 9, (
        "the range, eight of the rest, one of them what is before the beginning"
    )
    assert incomplete(home) == []
    cut, since = series(home), service.count
    assert len(cut["feedback_views"]) > 700
    service.control("switches", **{"series-cut": 0})
    whole = command(
        "sync", "--only", "reputation_stats", sandbox=service, MARKETING_HOME=str(tmp_path / "whole")
    )
    assert whole.code == 0, whole.text
    assert series(tmp_path / "whole") == cut
    assert len(asked(service, STATS, since)) == 2, (
        "once in an account's life: whether there is anything before its beginning"
    )

    service.control("switches", **{"series-cut": 5, "series-kept": "last"})
    since = service.count
    assert command("sync", "--only", "reputation_stats", sandbox=service).code == 0
    assert series(home) == cut, "of days that an answer does not prove no row goes"
    assert len(asked(service, STATS, since)) == 1, "what was read before is not asked for once more"


@UNRECORDED
@pytest.mark.parametrize("kept", ["first", "last"])
@pytest.mark.slow
def test_series_cut_to_less_than_a_week_is_read_whole(
    command: Command, service: Sandbox, home: Path, kept: str
) -> None:
    begins = TODAY - 60 * DAY
    service.control("switches", **{"series-cut": 5, "series-kept": kept})
    words = ("sync", "--only", "reputation_stats")
    ran = command(*words, sandbox=service, MARKETING_HISTORY_START=str(begins))
    assert ran.code == 0, ran.text
    assert incomplete(home) == []
    listed = {day for (day,) in query(home, "select period_on from source.feedback_views")}
    assert {begins + number * DAY for number in range(59)} <= listed


@UNRECORDED
@pytest.mark.slow
def test_the_newest_days_alone_are_recognised_as_a_cut_too(
    command: Command, service: Sandbox, home: Path
) -> None:
    service.control("switches", **{"series-cut": 300, "series-kept": "last"})
    assert command("sync", "--only", "reputation_stats", sandbox=service).code == 0
    assert len(asked(service, STATS)) == 4
    assert len(series(home)["feedback_views"]) > 700


@UNRECORDED
@pytest.mark.parametrize("kept", ["first", "last"])
@pytest.mark.slow
def test_more_smaller_ranges_than_one_run_asks_for_are_left_to_the_next(
    command: Command, service: Sandbox, home: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    monkeypatch.setattr("assets.fetch._MAX_RETRIED_RANGES", 5)
    service.control("switches", **{"series-cut": 100, "series-kept": kept})
    ran = command("sync", "--only", "reputation_stats", sandbox=service)
    assert ran.code == 1, ran.text
    assert len(asked(service, STATS)) == 6
    assert {name for name, _ in incomplete(home)} == set(SERIES)
    since = service.count
    ran = command("sync", "--only", "reputation_stats", sandbox=service)
    assert ran.code == 0, ran.text
    assert len(asked(service, STATS, since)) < 5, "it goes on from there"
    assert incomplete(home) == []
    assert len(series(home)["feedback_views"]) >= 730


@UNRECORDED
@pytest.mark.slow
def test_days_that_no_range_brings_are_told_once_stay_incomplete_and_cost_no_further_request(
    command: Command, home: Path
) -> None:
    """The sandbox's clock is forty days behind: nothing it lists is newer."""
    stopped = TODAY - 40 * DAY
    with serve(account(now=NOON - 40 * 86_400)) as url:
        service, lacking = Sandbox(url), f"{stopped + DAY} to {TODAY - 2 * DAY}"
        ran = command("sync", "--only", "reputation_stats", sandbox=service)
        assert ran.code == 1
        assert f"reputation/stats, {lacking}: left out by the service" in ran.out
        assert f"incomplete: {lacking}" in ran.out
        assert ran.out.count("99 %") == 3, "of the days, whatever came of the requests"
        assert incomplete(home) == [(name, f"{stopped + DAY}..{TODAY - 2 * DAY}") for name in sorted(SERIES)]

        since = service.count
        ran = command("sync", "--only", "reputation_stats", sandbox=service)
        assert ran.code == 0, ran.text
        assert f"incomplete: {lacking}" in ran.out
        assert asked(service, STATS, since) == [(str(stopped + DAY), str(TODAY))]
        assert len(incomplete(home)) == 3
        coverage = query(home, "from sync.coverage order by all")
        assert command("rebuild", sandbox=service).code == 0
        assert query(home, "from sync.coverage order by all") == coverage

        service.control("advance", days=40)
        ran = command("sync", "--only", "reputation_stats", sandbox=service)
        assert ran.code == 0, ran.text
        assert "incomplete" not in ran.out
        assert incomplete(home) == []
        assert query(
            home, "select max(period_on) - min(period_on) + 1 = count(*) from source.feedback_views"
        ) == [(True,)]


# -- days that a person chooses


ONLY = ("sync", "--only", "direct_reviews", "social_posts")


@UNRECORDED
@pytest.mark.parametrize("last", ["today", "tomorrow", "2026-03-09"])
@pytest.mark.slow
def test_chosen_days_are_asked_exactly_on_a_first_sync_and_for_the_calendar(
    command: Command, service: Sandbox, last: str
) -> None:
    last = {"today": str(TODAY), "tomorrow": str(TODAY + DAY)}.get(last, last)
    ran = command(*ONLY, "--from", "2026-03-05", "--to", last, sandbox=service)
    assert ran.code == 0, ran.text
    assert set(asked(service, "reputation/direct") + asked(service, "socialmedia/calendar")) == {
        ("2026-03-05", last)
    }
    assert f"account main: days read: 2026-03-05 to {last}" in ran.out


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])
@pytest.mark.slow
def test_without_an_end_chosen_days_last_until_the_accounts_own_today(command: Command, zone: str) -> None:
    """These two never have the same day but for one hour; the run's partitions exist in both."""
    with serve(account(timezone=zone, switches={"show-timezone": "on"})) as url:
        service = Sandbox(url)
        ran = command(*ONLY, "--from", "2026-03-05", sandbox=service)
        assert ran.code == 0, ran.text
        today = dt.datetime.fromtimestamp(NOON, ZoneInfo(zone)).date()
        assert {
            last for _, last in asked(service, "reputation/direct") + asked(service, "socialmedia/calendar")
        } == {str(today)}


@UNRECORDED
@pytest.mark.slow
def test_the_sync_without_days_completes_history_and_says_so(
    command: Command, service: Sandbox, home: Path
) -> None:
    assert command(*ONLY, "--from", "2026-03-05", "--to", "2026-03-09", sandbox=service).code == 0
    ran = command(*ONLY, sandbox=service)
    assert asked(service, "reputation/direct")[-1] == ("2015-01-01", str(TODAY))
    assert asked(service, "socialmedia/calendar")[-1] == ("2015-01-01", str(TODAY + 90 * DAY))
    assert f"direct_reviews, account main: days read: 2015-01-01 to {TODAY}\n" in ran.out
    assert f"social_posts, account main: days read: 2015-01-01 to {TODAY + 90 * DAY}\n" in ran.out
    command(*ONLY, sandbox=service)
    assert asked(service, "reputation/direct")[-1] == (str(TODAY - 7 * DAY), str(TODAY))


@pytest.mark.slow
def test_days_that_are_still_to_come_need_an_end(command: Command, service: Sandbox) -> None:
    day = TODAY + 3 * DAY
    ran = command(*ONLY, "--from", str(day), sandbox=service)
    assert ran.code == 2
    assert f"--from {day} is in the future: add --to" in ran.text
    assert command(*ONLY, "--from", str(day), "--to", str(day + DAY), sandbox=service).code == 0
    assert set(asked(service, "socialmedia/calendar")) == {(str(day), str(day + DAY))}, (
        "there is no such partition, but such a day"
    )


# -- one clock


def test_every_accounts_today_is_a_partition_at_every_hour() -> None:
    partitions = daily_partitions(START)
    for day in ("2026-06-10", "2026-03-29", "2026-11-01", "2026-12-31"):
        for hour in range(24):
            moment = dt.datetime.fromisoformat(f"{day}T{hour:02}:30").replace(tzinfo=dt.UTC)
            zones = [f"Etc/GMT{-offset:+d}" for offset in range(-11, 15)] + [
                "America/New_York",
                "Europe/Berlin",
            ]
            with dg.partition_loading_context(effective_dt=moment):
                newest = dt.date.fromisoformat(partitions.get_last_partition_key() or "")
            assert newest == max(today_in(zone, moment) for zone in zones)


@pytest.mark.parametrize(
    ("zone", "moment"),
    [
        pytest.param("Etc/GMT-14", "2026-10-24T10:00", id="a day ahead"),
        pytest.param("Etc/GMT+11", "2026-10-24T10:30", id="a day behind"),
        pytest.param("Europe/Berlin", "2026-10-24T22:30", id="25 hours", marks=pytest.mark.attack),
        pytest.param("America/New_York", "2026-03-08T04:30", id="before 23", marks=pytest.mark.attack),
    ],
)
@pytest.mark.slow
def test_a_run_reads_until_the_accounts_own_today_wherever_it_is(
    tmp_path: Path, zone: str, moment: str
) -> None:
    """As the schedule starts it and as a person does, at the run's own time."""
    now = dt.datetime.fromisoformat(moment).replace(tzinfo=dt.UTC)
    today = today_in(zone, now)
    with (
        serve(account(timezone=zone, now=int(now.timestamp()), switches={"show-timezone": "on"})) as url,
        dg.DagsterInstance.ephemeral() as instance,
        dg.partition_loading_context(effective_dt=now),
    ):
        service = Sandbox(url)
        settings = Settings(prepare_home(tmp_path / "home"), (Connection("main", url, Secret(KEY)),))
        definitions = build_definitions(settings, has_models=False, now=lambda: now)
        job = definitions.resolve_job_def("nightly_sync")
        context = dg.build_schedule_context(
            instance, scheduled_execution_time=now, repository_def=definitions.get_repository_def()
        )
        (request,) = definitions.get_schedule_def("nightly").evaluate_tick(context).run_requests or []

        def run(tags: dict[str, str]) -> dg.ExecuteInProcessResult:
            keys = [
                asset_key(table)
                for asset in (sources.direct_reviews, sources.social_posts)
                for table in asset.tables
            ]
            quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
            return job.execute_in_process(
                instance=instance, asset_selection=keys, tags=tags, run_config=quiet
            )

        result = run(dict(request.tags))
        assert asked(service, "reputation/direct") == [("2015-01-01", str(today))]
        read = {made.asset_key: made for made in result.asset_materializations_for_node(READ_STEP)}
        reviews = read[asset_key(sources.direct_reviews.tables[0])]
        assert reviews.metadata["days read"].value == f"main: 2015-01-01 to {today}"
        run({"dagster/partition": str(today)})
        assert asked(service, "reputation/direct")[1:] == [(str(today), str(today))]
        assert {last for _, last in asked(service, "socialmedia/calendar")} == {
            str(today + 90 * DAY),
            str(today),
        }


def test_a_persons_partitions_are_chosen_days_and_the_schedules_are_not() -> None:
    range_ = {
        "dagster/asset_partition_range_start": "2026-03-05",
        "dagster/asset_partition_range_end": "2026-03-06",
    }
    chosen = read_days_tag(range_)
    assert chosen is not None
    assert (str(chosen.first), str(chosen.last)) == ("2026-03-05", "2026-03-06")
    assert read_days_tag(range_ | {DAYS_TAG: ALL_DUE}) is None
    year = DateRange(dt.date(2025, 11, 1), dt.date(2026, 10, 31))
    assert read_days_tag({DAYS_TAG: str(year)}) == ChosenDays(year.first, year.last)
    assert read_days_tag({}) is None
    with pytest.raises(SettingsError, match="`2026-03-05 to 2026-03-20`"):
        read_days_tag({DAYS_TAG: "last week"})
