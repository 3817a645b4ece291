"""The only module that reaches into what Dagster does not document; each entry states why no public
interface will do.

`tests/pipelines/test_dagster_internals.py` names the version that this was written for, and fails
when a part of it has moved."""

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

#: As Dagster names what `marketing-sync ui` loads; the timeline, a job's list of runs and the
#: failure alert look for runs of it.
_CODE_LOCATION = RemoteRepositoryOrigin(
    location_origin_from_module_name(CODE_MODULE, None, None, CODE_LOCATION), "__repository__"
)
#: Tags of our runs.
OURS = {REPOSITORY_LABEL_TAG: _CODE_LOCATION.get_label()}
#: What the UI shows as whoever launched a run, instead of "Manually launched". The daemon leaves it
#: alone.
BY_THE_COMMAND = {"user": "marketing-sync sync", MAX_RETRIES_TAG: "0"}

#: Within so many seconds of its start a run has noted its process.
_NOTED_S = 60.0
_DEAD = (
    "the process of this run is gone: it was killed, ran out of memory, or its machine or "
    "container was stopped. What it received is kept, and the next attempt resumes from there"
)
#: Classes of errors by which a run's step fails when Dagster's database goes away.
_OUTAGE = {"OperationalError", "InterfaceError", "DagsterPostgresException"}


def set_damaged_history_aside(dagster_home: Path) -> list[str]:
    """Begin a new history where Dagster's files are damaged, so that a run is recorded all the
    same; returns what a person has to know."""
    lost = {
        "history": "the runs before now are not in the UI any more",
        "schedules": "turn its schedules and sensors on again in the UI",
    }
    notices = []
    for name, what in lost.items():
        folder = dagster_home / name
        if folder.exists() and not all(
            _is_whole(path)
            for path in (folder, *folder.glob("*.db"), *folder.glob("runs/index.db"))
        ):
            notices.append(
                f"databases of Dagster's {name} were damaged and are in {set_aside(folder)} now: "
                f"{what}"
            )
    return notices


def _is_whole(path: Path) -> bool:
    """A folder, or a SQLite file without damage; one that is locked, or that the system does not
    let us read now, is not called damaged."""
    if path.suffix != ".db" or not path.is_file():
        return path.suffix != ".db" and path.is_dir()
    try:
        with closing(
            sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_BUSY_S)
        ) as connection:
            is_filled = connection.execute("select count(*) from sqlite_schema").fetchone()[0] > 0
            return bool(
                is_filled and connection.execute("pragma quick_check(1)").fetchone()[0] == "ok"
            )
    except sqlite3.OperationalError as problem:
        return (
            getattr(problem, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR
        )  # which a header of another format raises
    except sqlite3.Error:
        return False


@contextmanager
def open_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Dagster's instance. One process at a time opens it: two that create Dagster's databases at
    the same moment fail, and a database that is half created looks damaged.

    HomeError when Dagster's settings are none.
    """
    own = Path(os.environ["DAGSTER_HOME"])
    with hold_lock(own):
        for line in set_damaged_history_aside(own) if own.is_relative_to(home) else ():
            log.warning(line)
        try:
            opened = dg.DagsterInstance.get()
        except Exception as problem:  # whatever a setting makes it import or read
            reason = " ".join(str(problem.__cause__ or problem).split())[:200]
            raise HomeError(
                f"Dagster cannot begin with {own / 'dagster.yaml'} ({reason}): correct it, and see "
                "that its database can be reached. One in the home is written again once you move "
                "it away"
            ) from problem
    with opened as instance:
        yield instance


@contextmanager
def instance_of_the_ui(home: Path) -> Iterator[dg.DagsterInstance]:
    """The instance, which files runs of this process under the UI's code location:
    `execute_in_process` has no parameter for that. Raises HomeError."""
    with open_instance(home) as instance:
        create = instance.create_run_for_job

        def create_filed(job_def: dg.JobDefinition, **given: Any) -> dg.DagsterRun:
            return create(
                job_def, remote_job_origin=_CODE_LOCATION.get_job_origin(job_def.name), **given
            )

        setattr(instance, "create_run_for_job", create_filed)  # noqa: B010 (a plain assignment to a method is no type)
        yield instance


def execute_here(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    selection: Sequence[dg.AssetKey],
    *,
    tags: Mapping[str, str],
    config: Mapping[str, Any],
) -> str:
    """Run the selected assets of a job (all when there are none) in this process; the run's id.

    `JobDefinition.execute_in_process` does the same, but for the job's own executor: that one alone
    runs what is behind a step that failed after it had brought its outputs."""
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


def note_partitions(instance: dg.DagsterInstance, key: dg.AssetKey, partitions: Set[str]) -> None:
    """Show these partitions of an asset as materialized, by no run: such events stay when runs are
    pruned.

    Dagster's own call takes milliseconds for each: of many it writes one, and the others are copies
    of that row."""
    storage = instance.event_log_storage
    *others, last = sorted(partitions - storage.get_materialized_partitions(key)) or [""]
    if last:
        instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=last))
    if others and isinstance(storage, SqlEventLogStorage):
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
                row | {"partition": other, "event": row["event"].replace(last, other)}
                for other in others
            ]
            connection.execute(events.insert(), copies)


def find_settled(instance: dg.DagsterInstance) -> Set[dg.AssetKey]:
    """The assets that Dagster shows something of, and no failed check: no public call says either
    of all at once."""
    storage, checks = instance.event_log_storage, AssetCheckExecutionsTable.c
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
    """Fail our started runs in these homes (by shard) that no process executes, so that Dagster
    tries them again; how many. Dagster's default launcher cannot look: only the code server that
    started a process sees it end. A home that is not there is on another machine, whose launcher
    looks."""
    # Not above: it brings DuckDB, 60 MB to the daemon, which imports this module for its event log
    # only.
    from home.folder import list_running

    started = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED], tags=OURS)
    count, now_s = 0, unix_now()
    for record in instance.get_run_records(started):
        run, home = record.dagster_run, homes.get(record.dagster_run.tags.get(SHARD_TAG, ""))
        # one that a clock dated ahead began at an unknown moment, and has noted its process long
        # ago
        is_new = record.start_time is None or abs(now_s - record.start_time) < _NOTED_S
        if is_new or not (home and home.is_dir()) or run.run_id in list_running(home):
            continue
        now = instance.get_run_by_id(run.run_id)  # it may have ended since, and its process with it
        if now and now.status is dg.DagsterRunStatus.STARTED:
            instance.report_run_failed(run, _DEAD)
            count += 1
    return count


def redate_ticks(instance: dg.DagsterInstance) -> int:
    """Date our ticks that are still to come now; how many. A clock that was ahead noted them, and
    until then Dagster makes no other: schedules continue after their newest tick, sensors after
    their last one."""
    now_s = unix_now()
    latest_s, count = now_s + TOLERANCE.total_seconds(), 0
    for state in instance.all_instigator_state():
        data: Any
        data, whose = state.instigator_data, state.origin.repository_origin
        if data is None or whose.get_label() != _CODE_LOCATION.get_label():
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
    """Have Dagster try a run again of which a step failed by its database: otherwise it leaves
    alone what a step refused (`retry_on_asset_or_op_failure`). To be called before the run ends."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        error = entry.get_dagster_event().step_failure_data.error
        while error and error.cls_name not in _OUTAGE:
            error = error.cause
        if error:
            instance.add_run_tags(run_id, {RETRY_ON_ASSET_OR_OP_FAILURE_TAG: "true"})


def prune_runs(home: Path, before: dt.datetime) -> int:
    """Delete our ended runs from before then, with their logs; how many. Dagster has no such
    setting."""
    with open_instance(home) as instance:
        ended = dg.RunsFilter(statuses=FINISHED_STATUSES, created_before=before, tags=OURS)
        runs = instance.get_runs(ended, limit=_MOST_PRUNED)
        events = instance.event_log_storage
        for run in runs:  # events first: a run whose events are gone is found again
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
    """Delete all ended runs of ours, and leave nothing of them in free pages of the home's
    databases; return how many there were. Raises HomeError where another program uses these."""
    count = 0
    while pruned := prune_runs(home, utc_now()):
        count += pruned
    own = Path(os.environ["DAGSTER_HOME"])
    for path in own.rglob("*.db") if own.is_relative_to(home) else ():
        try:
            with closing(sqlite3.connect(path, timeout=_BUSY_S)) as connection:
                connection.execute("vacuum")
                connection.execute("pragma wal_checkpoint(truncate)")
        except sqlite3.OperationalError as problem:
            raise HomeError(
                f"{path} is in use ({problem}): end `marketing-sync ui`, and try again"
            ) from None
    return count


@contextmanager
def web_server(home: Path, workspace: Path, refresh_ms: int) -> Iterator[ASGIApp]:
    """The application of `dagster-webserver`, which as a program takes requests of other web pages,
    too."""
    from dagster._core.workspace.context import (
        WorkspaceProcessContext,
    )  # each takes seconds to import, and one command needs them
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

    As it comes, Dagster opens, commits and closes a SQLite file for each event: 22 to 45 % more
    processor time of a night of 600 contacts. In WAL mode `synchronous = normal` cannot corrupt a
    file; after a power loss the last events may be missing: what must not be lost is in the
    archive, not here. A connection per file, used by one thread at a time (the base class's
    lock)."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Self:
        """`base_dir` is taken from Dagster's home on, where it is relative: Dagster gives its
        storage nothing else of its place."""
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

    def delete_events(self, run_id: str) -> None:
        """The run's file goes, too: Dagster empties it."""
        super().delete_events(run_id)
        self._initialized_dbs.discard(run_id)
        if engine := self._engines.pop(run_id, None):
            engine.dispose()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path_for_shard(run_id)}{suffix}").unlink(missing_ok=True)

    def dispose(self) -> None:
        """Close the files."""
        while self._engines:
            self._engines.popitem()[1].dispose()
        super().dispose()
