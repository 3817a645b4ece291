"""Models, published copy and lake with a home's settings. Not here: how they are made (`warehouse.models`,
`warehouse.publish`)."""

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import replace
from functools import partial

from home import output
from home.door import open_tables, open_warehouse, waits
from home.folder import in_use, note_running
from home.freshness import ago
from home.identity import identity_of
from home.progress import advance, stage
from home.settings import Settings, SettingsError
from marketing_api.clock import utc_now
from marketing_api.redaction import plain
from pipelines.report.render import write_report
from upkeep.backups import back_up_home
from upkeep.retention import let_go_of_rows
from warehouse.bookkeeping import PUBLISHING, Run, write_run
from warehouse.errors import PublishedLocked, StorageMisconfigured, StorageUnavailable, WarehouseError
from warehouse.lake import UNNAMED, Manifest, export, export_parquet, known_exports
from warehouse.masking import Masking, personal_key
from warehouse.models import BuildReport, ModelSettings, build, publish_blockers
from warehouse.own_models import PROBLEM, OwnSettings, build_own
from warehouse.policies import PersonalData
from warehouse.publish import BREAKING, Published, earlier, facts, publish, published_path, schema_changes
from warehouse.schema import fact
from warehouse.storage import Storage, shown

#: Their step in Dagster's runs.
MODELS_STEP = "models"


def model_settings(settings: Settings) -> ModelSettings:
    return ModelSettings(
        attribution_hours=settings.attribution_hours,
        rate_messages=settings.rate_messages,
        timezone=settings.timezone,
        zones={account.account: account.timezone for account in settings.accounts if account.timezone},
        memory=settings.models_memory,
    )


class Models:
    """`report` is what came of building them last; None before."""

    report: BuildReport | None = None

    def build(self, settings: Settings, select: Sequence[str] = ()) -> BuildReport:
        """Build and test them, see `warehouse.models.build`."""
        how = {"select": select, "on_node": advance, **waits(settings)}
        with in_use(settings.home), stage("models and tests"):
            let_go_of_rows(settings)
            self.report = build(settings.warehouse_path, model_settings(settings), **how)
        return self.report


class OwnModels:
    """Models of the user's, behind what is published of ours; `report` is what came of them, `problem` why
    they are not published."""

    def __init__(self) -> None:
        self.report, self.problem = BuildReport(), ""

    def build(self, settings: Settings, select: Sequence[str] = (), *, full: bool = False) -> BuildReport:
        """See `warehouse.own_models.build_own`."""
        seconds, memory = settings.models_seconds, settings.models_memory
        own = OwnSettings(settings.own_models, seconds, memory, model_settings(settings).variables)
        how = {"select": select, "full": full, "on_node": advance, **waits(settings)}
        with in_use(settings.home), stage("own models"):
            self.report = build_own(settings.warehouse_path, own, **how)
        return self.report

    def build_and_publish(self, settings: Settings) -> tuple[BuildReport, list[str]]:
        """Nothing that goes wrong here keeps anything of ours from what follows: it is in the report, or the
        problem."""
        try:
            report = self.build(settings)
            if report.made or report.removed:
                publish_home(settings, only_own=True)
        except WarehouseError as problem:
            self.problem = f"models of your own are published as they were before: {problem}"
        return self.report, self.problems

    @property
    def problems(self) -> list[str]:
        return [*self.report.problems, *filter(None, [self.problem])]


class Lake:
    """The export behind each publishing; `problem` is what went wrong with it, empty when nothing did."""

    problem = ""

    def export(self, settings: Settings) -> Manifest:
        """Raises StorageUnavailable and other WarehouseErrors."""
        self.problem = ""
        try:
            with stage("export to the lake"):
                # fsspec's thread keeps the context in which it is called first, and with it what Dagster's
                # step holds, to the end
                return Context().run(_export_to_lake, settings)
        except WarehouseError as problem:
            self.problem = f"published, but not exported to the lake: {problem}"
            known = (StorageMisconfigured, StorageUnavailable)
            kind = next((each for each in known if isinstance(problem, each)), WarehouseError)
            raise kind(self.problem) from None


def _export_to_lake(settings: Settings, *, keep_earlier: bool = True) -> Manifest:
    """What `export` returns and raises."""
    storage, home_id = lake_storage(settings), identity_of(settings.home).home_id
    shard = settings.shard or UNNAMED
    return export(settings.home, storage, shard, keep_earlier=keep_earlier, home_id=home_id)


def lake_storage(settings: Settings) -> Storage:
    """Raises SettingsError without one, StorageUnavailable."""
    if not settings.lake_url:
        raise SettingsError(
            "there is no lake: set MARKETING_LAKE_URL to a folder or an address like s3://BUCKET/FOLDER"
        )
    return Storage(settings.lake_url)


def own_models_problem(settings: Settings) -> str:
    """What was wrong with models of the user's when they were built last; empty when nothing was."""
    with open_warehouse(settings, read_only=True) as connection:
        return fact(connection, PROBLEM) or ""


def publish_home(settings: Settings, *, only_own: bool = False, is_whole: bool = False) -> Published:
    """Write the published file, see `warehouse.publish.publish`. Raises NotPublished when the models failed,
    and what `connect` raises."""
    is_hashed = settings.personal_data is PersonalData.HASH
    key = personal_key(settings.home, settings.personal_key) if is_hashed else None
    masking = Masking(settings.personal_data, key, settings.personal_group_min)
    how = {"check": publish_blockers, "only_own": only_own, "is_whole": is_whole, **waits(settings)}
    with in_use(settings.home), stage("publishing"):
        return publish(settings.home, masking, **how)


@contextmanager
def noted(settings: Settings, run_id: str, job: str) -> Iterator[None]:
    """A run that publishes and reads nothing, in `sync.runs`: before, so that the copy holds it, and with its
    outcome after."""
    note_running(settings.home, run_id)
    run = Run(run_id, job, utc_now(), None, PUBLISHING, 0, 0.0, "")
    _note(settings, run)
    try:
        yield
    finally:
        is_done = is_published_since(settings, run.started_at)
        outcome, message = ("done", "") if is_done else ("failed", "nothing was published")
        _note(settings, replace(run, ended_at=utc_now(), outcome=outcome, message=message))


def _note(settings: Settings, run: Run) -> None:
    if settings.warehouse_path.exists():
        with open_tables(settings) as connection:
            write_run(connection, run)


def breaking_changes(settings: Settings) -> list[str]:
    """What readers of the copy before can no longer count on in the current one, a line each."""
    return [plain(line) for _, _, line in schema_changes(published_path(settings.home), BREAKING)]


def is_published_since(settings: Settings, moment: dt.datetime) -> bool:
    """Whether what is published was written after that."""
    path = published_path(settings.home)
    return path.exists() and path.stat().st_mtime >= moment.timestamp()


def what_is_published(settings: Settings, now: dt.datetime) -> str:
    """That in a line, also when there is nothing, or when another program keeps it locked."""
    try:
        published = facts(published_path(settings.home))
    except PublishedLocked as problem:
        return str(problem)
    return in_words(published, now) if published else "nothing yet; a whole `marketing-sync sync` publishes"


def published_document(settings: Settings, published: Published | None = None) -> output.Published | None:
    """What is published for `--json`; None when nothing is, or another program keeps it locked."""
    path, found = published_path(settings.home), published
    with suppress(PublishedLocked):
        found = found or facts(path)
    if found is None:
        return None
    counts = (found.table_count, found.row_count)
    return output.Published(
        str(path), found.published_at, found.data_as_of, str(found.personal_data), *counts
    )


def in_words(published: Published, now: dt.datetime) -> str:
    """What is published, in a line."""
    data = f", newest data {ago(published.data_as_of, now)}" if published.data_as_of else ""
    personal = {
        "keep": "personal data as it is",
        "hash": "personal data hashed",
        "drop": "without personal data",
    }[published.personal_data]
    size = f"{published.table_count} tables, {published.row_count:,} rows"
    return f"{size}, published {ago(published.published_at, now)}{data}, {personal}"


# ---- after people were forgotten


def derived(settings: Settings) -> dict[str, Callable[[], int]]:
    """What is made of the warehouse, or stands elsewhere: made anew by these calls, and what was there before
    goes at once."""
    home, published = settings.home, published_path(settings.home)
    made: dict[str, Callable[[], int]] = {}
    if published.parent.exists():
        made["published/marketing.duckdb"] = partial(_publish_alone, settings)
        made["report"] = lambda: int(write_report(home)[0].exists())
        for folder in known_exports(home):
            made[str(folder)] = lambda folder=folder: export_parquet(published, folder).files  # type: ignore[misc]
        if settings.lake_url:
            place = f"lake {shown(settings.lake_url)}"
            made[place] = lambda: len(_export_to_lake(settings, keep_earlier=False).tables)
    if settings.backup_url:
        place = f"backup {shown(settings.backup_url)}"
        made[place] = lambda: len(back_up_home(settings, is_only=True).manifest.files)
    return made


def _publish_alone(settings: Settings) -> int:
    """Of what was published before nothing stays: neither to go back to nor where models do not let it be
    published."""
    try:
        return publish_home(settings, is_whole=True).row_count
    except WarehouseError as problem:
        published_path(settings.home).unlink(missing_ok=True)
        raise WarehouseError(f"what was published before had them and is removed; {problem}") from None
    finally:
        for copy in earlier(settings.home):
            copy.unlink()
