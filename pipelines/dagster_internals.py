"""The only module that uses undocumented parts of Dagster. Each entry states why no public
interface will do.

`tests/pipelines/test_dagster_internals.py` names the version that this was written for, and fails
when a part has moved."""

import datetime as dt
import logging
import os
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.execute_in_process import core_execute_in_process
from dagster._core.remote_origin import RemoteRepositoryOrigin
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.dagster_run import FINISHED_STATUSES
from dagster._core.storage.event_log import SqlEventLogStorage, SqliteEventLogStorage
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    SqlEventLogStorageTable,
)
from dagster._core.storage.tags import (
    MAX_RETRIES_TAG,
    REPOSITORY_LABEL_TAG,
    RETRY_ON_ASSET_OR_OP_FAILURE_TAG,
)
from dagster._core.workspace.load import location_origin_from_module_name
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.pool import QueuePool
from starlette.types import ASGIApp

from home.exits import HomeError
from home.settings import SHARD_TAG
from marketing_api.clock import TOLERANCE, unix_now, utc_now
from pipelines import CODE_LOCATION, CODE_MODULE
from warehouse.disk import hold_lock, set_aside

log = logging.getLogger(__name__)

#: The program that runs schedules and sensors; `dagster-daemon` may be on no path.
DAEMON = ("dagster._daemon", "run")

_KEPT_FILES = 8  # a file per run, and the index
_BUSY_S = 60
_MOST_PRUNED = 500  # at a time

#: Dagster's name of the code location that `marketing-sync ui` loads. The UI's timeline and a job's
#: list of runs show only runs with it.
_CODE_LOCATION = RemoteRepositoryOrigin(
    location_origin_from_module_name(CODE_MODULE, None, None, CODE_LOCATION), "__repository__"
)
#: The tags that all runs of this project have.
PROJECT_TAGS = {REPOSITORY_LABEL_TAG: _CODE_LOCATION.get_label()}
#: Tags of the runs of `marketing-sync sync`: the UI displays this user instead of "Manually
#: launched", and the daemon doesn't retry them.
COMMAND_TAGS = {"user": "marketing-sync sync", MAX_RETRIES_TAG: "0"}

#: How long after its start a run may take to record its process.
_NOTED_S = 60.0
_DEAD = (
    "the process of this run has ended: it was killed, ran out of memory, or its machine or "
    "container was stopped. The next attempt resumes it"
)
#: Error classes that a step fails with when Dagster's database is gone.
_OUTAGE = {"OperationalError", "InterfaceError", "DagsterPostgresException"}


def set_damaged_history_aside(dagster_home: Path) -> list[str]:
    """Begin a new history where Dagster's files are damaged, so that runs are still recorded.
    Returns messages for the user."""
    losses = {
        "history": "the runs before now are not in the UI any more",
        "schedules": "turn its schedules and sensors on again in the UI",
    }
    notices = []
    for name, loss in losses.items():
        folder = dagster_home / name
        databases = (*folder.glob("*.db*"), *folder.glob("runs/index.db*"))
        if folder.exists() and not (folder.is_dir() and all(map(_is_whole, databases))):
            notices.append(
                f"databases of Dagster's {name} were damaged and are in {set_aside(folder)} now: "
                f"{loss}"
            )
    return notices


def _is_whole(path: Path) -> bool:
    """Whether it is an undamaged SQLite file, or a file beside one. A file that is locked or can't
    be read now doesn't count as damaged."""
    if path.is_dir():
        return False
    if path.suffix != ".db":
        return True
    try:
        with closing(
            sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_BUSY_S)
        ) as connection:
            is_filled = connection.execute("select count(*) from sqlite_schema").fetchone()[0] > 0
            return bool(
                is_filled and connection.execute("pragma quick_check(1)").fetchone()[0] == "ok"
            )
    except sqlite3.OperationalError as error:
        # A header of another format raises SQLITE_ERROR.
        return getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR
    except sqlite3.Error:
        return False


@contextmanager
def open_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Opens Dagster's instance, one process at a time: two that create its databases at the same
    moment fail, and a half created database looks damaged.

    Raises HomeError when Dagster's settings are invalid.
    """
    dagster_home = Path(os.environ["DAGSTER_HOME"])
    with hold_lock(dagster_home):
        if dagster_home.is_relative_to(home):
            for line in set_damaged_history_aside(dagster_home):
                log.warning(line)
        try:
            opened = dg.DagsterInstance.get()
        except Exception as error:  # a setting may make it import or read anything
            reason = " ".join(str(error.__cause__ or error).split())[:200]
            raise HomeError(
                f"Dagster cannot start with {dagster_home / 'dagster.yaml'} ({reason}): correct "
                "the file, and check its database. If the file is in the home, you can move it "
                "away: a new one is written"
            ) from error
    with opened as instance:
        yield instance


@contextmanager
def open_run_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Opens the instance for runs of this process, which it assigns to the UI's code location:
    `execute_in_process` has no parameter for that. Raises HomeError."""
    with open_instance(home) as instance:
        create = instance.create_run_for_job

        def create_in_location(job_def: dg.JobDefinition, **arguments: Any) -> dg.DagsterRun:
            origin = _CODE_LOCATION.get_job_origin(job_def.name)
            return create(job_def, remote_job_origin=origin, **arguments)

        # mypy refuses an assignment to a method
        setattr(instance, "create_run_for_job", create_in_location)  # noqa: B010
        yield instance


def execute_here(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    selection: Sequence[dg.AssetKey],
    *,
    tags: Mapping[str, str],
    config: Mapping[str, Any],
) -> str:
    """Run the selected assets of a job (all if `selection` is empty) in this process; returns the
    run's id.

    `JobDefinition.execute_in_process` doesn't use the job's executor, and only that one runs the
    steps after a step that failed when its outputs were there."""
    chosen = frozenset(selection)
    result = core_execute_in_process(
        run_config=config,
        job=InMemoryJob(job.get_subset(asset_selection=chosen) if chosen else job),
        instance=instance,
        output_capturing_enabled=False,
        raise_on_error=False,
        run_tags=tags,
        asset_selection=chosen,
    )
    return str(result.run_id)


def note_partitions(instance: dg.DagsterInstance, key: dg.AssetKey, partitions: Set[str]) -> bool:
    """Show these partitions of an asset as materialized, without a run, so that the events stay
    when runs are pruned. Returns whether one is new.

    Dagster's own call takes milliseconds per partition, so it writes the last one, and the earlier
    ones are copies of that row."""
    storage = instance.event_log_storage
    *earlier, last = sorted(partitions - storage.get_materialized_partitions(key)) or [""]
    if last:
        instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=last))
    if earlier and isinstance(storage, SqlEventLogStorage):
        events = SqlEventLogStorageTable
        newest = events.select().where(
            events.c.asset_key == key.to_string(), events.c.partition == last
        )
        with storage.index_connection() as connection:
            row = dict(
                connection.execute(newest.order_by(events.c.id.desc()).limit(1)).mappings().one()
            )
            del row["id"]
            copies = [
                row | {"partition": partition, "event": row["event"].replace(last, partition)}
                for partition in earlier
            ]
            connection.execute(events.insert(), copies)
    return last != ""


def find_settled(instance: dg.DagsterInstance) -> Set[dg.AssetKey]:
    """The assets that Dagster has an event of and no failed check. No public call returns either
    for all assets."""
    storage = instance.event_log_storage
    checks = AssetCheckExecutionsTable.c
    failed = set[str]()
    if isinstance(storage, SqlEventLogStorage):
        newest = select(func.max(checks.id)).group_by(checks.asset_key, checks.check_name)
        is_red = checks.execution_status == AssetCheckExecutionRecordStatus.FAILED.value
        with storage.index_connection() as connection:
            failed = set(
                connection.scalars(select(checks.asset_key).where(checks.id.in_(newest), is_red))
            )
    return {key for key in storage.all_asset_keys() if key.to_string() not in failed}


def end_dead_runs(instance: dg.DagsterInstance, homes: Mapping[str, Path]) -> int:
    """Fail this project's started runs that no process executes any more, so that Dagster tries
    them again; returns how many there were. `homes`: by shard.

    Dagster's default launcher can't check this: only the code server that started a process sees
    it end. A home that doesn't exist here is on another machine, whose launcher checks it."""
    # imported here, since it imports DuckDB: 60 MB in the daemon, which needs this module only for
    # its event log
    from home.folder import list_running

    started = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED], tags=PROJECT_TAGS)
    count = 0
    now_s = unix_now()
    for record in instance.get_run_records(started):
        run = record.dagster_run
        home = homes.get(record.dagster_run.tags.get(SHARD_TAG, ""))
        # a start in the future is from a clock that was ahead: such a run has recorded its process
        # long ago
        is_new = record.start_time is None or abs(now_s - record.start_time) < _NOTED_S
        if is_new or not (home and home.is_dir()) or run.run_id in list_running(home):
            continue
        now = instance.get_run_by_id(run.run_id)  # it may have ended since, and its process with it
        if now and now.status is dg.DagsterRunStatus.STARTED:
            instance.report_run_failed(run, _DEAD)
            count += 1
    return count


def redate_ticks(instance: dg.DagsterInstance) -> int:
    """Set the time of this project's ticks that are in the future to now; returns how many there
    were. They are from a clock that was ahead, and Dagster makes no tick before the newest one."""
    now_s = unix_now()
    latest_s = now_s + TOLERANCE.total_seconds()
    count = 0
    for state in instance.all_instigator_state():
        data: Any
        data = state.instigator_data
        location = state.origin.repository_origin
        if data is None or location.get_label() != _CODE_LOCATION.get_label():
            continue
        moments = {name: getattr(data, name) for name in data._fields if name.endswith("timestamp")}
        ahead = {name: now_s for name, moment in moments.items() if moment and moment > latest_s}
        if ahead:
            instance.update_instigator_state(state.with_data(data._replace(**ahead)))
        for tick in instance.get_ticks(
            state.instigator_origin_id, state.selector_id, after=latest_s
        ):
            instance.update_tick(tick._replace(tick_data=tick.tick_data._replace(timestamp=now_s)))
            count += 1
    return count


def retry_after_outage(instance: dg.DagsterInstance, run_id: str) -> None:
    """Have Dagster retry a run in which a step failed because Dagster's database was gone. Other
    runs with failed steps it doesn't retry (`retry_on_asset_or_op_failure`). Call it before the
    run ends."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        error = entry.get_dagster_event().step_failure_data.error
        while error and error.cls_name not in _OUTAGE:
            error = error.cause
        if error:
            instance.add_run_tags(run_id, {RETRY_ON_ASSET_OR_OP_FAILURE_TAG: "true"})


def prune_runs(home: Path, before: dt.datetime) -> int:
    """Delete this project's ended runs older than `before`, with their logs; returns how many.
    Dagster has no setting for it."""
    with open_instance(home) as instance:
        ended = dg.RunsFilter(statuses=FINISHED_STATUSES, created_before=before, tags=PROJECT_TAGS)
        runs = instance.get_runs(ended, limit=_MOST_PRUNED)
        events = instance.event_log_storage
        for run in runs:  # events first, so that an interrupted deletion finds the run again
            events.delete_events(run.run_id)
            instance.run_storage.delete_run(run.run_id)
        if runs and isinstance(events, SqlEventLogStorage):
            checks = AssetCheckExecutionsTable
            with events.index_connection() as connection:
                connection.execute(
                    checks.delete().where(checks.c.run_id.in_([run.run_id for run in runs]))
                )
    return len(runs)


def delete_runs(home: Path) -> int:
    """Delete all ended runs of this project, also from free pages of the home's databases; returns
    how many there were. Raises HomeError when another program uses a database."""
    count = 0
    while pruned := prune_runs(home, utc_now()):
        count += pruned
    dagster_home = Path(os.environ["DAGSTER_HOME"])
    for path in dagster_home.rglob("*.db") if dagster_home.is_relative_to(home) else ():
        try:
            with closing(sqlite3.connect(path, timeout=_BUSY_S)) as connection:
                connection.execute("vacuum")
                connection.execute("pragma wal_checkpoint(truncate)")
        except sqlite3.OperationalError as error:
            raise HomeError(
                f"{path} is in use ({error}): end `marketing-sync ui`, and try again"
            ) from None
    return count


@contextmanager
def web_server(home: Path, workspace: Path, refresh_ms: int) -> Iterator[ASGIApp]:
    """The application of `dagster-webserver`. That program itself would accept requests of other
    web pages, too."""
    # these take seconds to import, and one command needs them
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import WorkspaceFileTarget
    from dagster_webserver.app import create_app_from_workspace_process_context

    target = WorkspaceFileTarget([str(workspace)])
    with (
        open_instance(home) as instance,
        WorkspaceProcessContext(instance, target, version=dg.__version__) as context,
    ):
        yield create_app_from_workspace_process_context(context, live_data_poll_rate=refresh_ms)


class KeptOpenEventLog(SqliteEventLogStorage):
    """Dagster's event log with the files of the last runs kept open; `dagster.yaml` of the home
    names this class.

    By default Dagster opens, commits and closes a SQLite file for every event, which costs a night
    of 600 contacts 22 to 45 % more processor time. In WAL mode `synchronous = normal` can't corrupt
    a file. After a power loss the last events may be missing, but nothing that matters: responses
    are in the archive. Every file has one connection, which one thread uses at a time (the base
    class's lock)."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        self._found_tables = set[str]()
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Self:
        """A relative `base_dir` is inside Dagster's home, which Dagster doesn't pass to its
        storage."""
        return cls(
            str(Path(os.environ.get("DAGSTER_HOME", ""), config_value["base_dir"])), inst_data
        )

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock, self._open_engine(shard).connect() as connection, connection.begin():
            yield connection

    def _open_engine(self, shard: str) -> Engine:
        if shard not in self._engines:
            engine = create_engine(
                self.conn_string_for_shard(shard),
                poolclass=QueuePool,
                pool_size=2,
                max_overflow=0,
                connect_args={"timeout": _BUSY_S, "check_same_thread": False},
            )
            event.listen(
                engine,
                "connect",
                lambda connection, _: connection.execute("pragma synchronous = normal"),
            )
            self._engines[shard] = engine
            if shard not in self._initialized_dbs:
                self._initdb(engine)
                self._initialized_dbs.add(shard)
            while len(self._engines) > _KEPT_FILES:
                self._engines.popitem(last=False)[1].dispose()
        self._engines.move_to_end(shard)
        return self._engines[shard]

    def has_table(self, table_name: str) -> bool:
        """Dagster asks this for each event, and would open the index file each time. It never drops
        a table."""
        if table_name not in self._found_tables and super().has_table(table_name):
            self._found_tables.add(table_name)
        return table_name in self._found_tables

    def delete_events(self, run_id: str) -> None:
        """Deletes the run's file, too; Dagster would only empty it."""
        super().delete_events(run_id)
        self._initialized_dbs.discard(run_id)
        engine = self._engines.pop(run_id, None)
        if engine:
            engine.dispose()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path_for_shard(run_id)}{suffix}").unlink(missing_ok=True)

    def dispose(self) -> None:
        """Close the files."""
        while self._engines:
            self._engines.popitem()[1].dispose()
        super().dispose()
