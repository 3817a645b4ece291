"""What the home keeps of runs in Dagster's own storage, and how: what reaches into Dagster for that is all here.

The event log keeps the files of the last runs open. As it comes, Dagster opens, commits and closes a SQLite file for each event: with
the several hundred events of a sync that is the larger part of a short run. In WAL mode `synchronous = normal` cannot corrupt a file
(after a power loss the last events may be missing). What must not be lost is in the archive, not here. `dagster.yaml` of the home names
this class.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.remote_origin import RemoteRepositoryOrigin
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.workspace.load import location_origin_from_module_name
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

_KEPT_FILES = 8  # a file per run, and the index
_BUSY_S = 60

#: As Dagster names what `marketing-sync ui` loads; the timeline, a job's list of runs and the failure alert look for runs of it.
_CODE_LOCATION = RemoteRepositoryOrigin(location_origin_from_module_name("pipelines.definitions", None, None), "__repository__")
#: What the UI shows as whoever launched a run, instead of "Manually launched".
BY_THE_COMMAND = {"user": "marketing-sync sync"}


@contextmanager
def instance_of_the_ui() -> Iterator[dg.DagsterInstance]:
    """Dagster's instance of `DAGSTER_HOME`, which files runs executed in this process under the UI's code location.

    `execute_in_process` has no parameter for that, and the instance offers nothing else to say it with.
    """
    with dg.DagsterInstance.get() as instance:
        create = instance.create_run_for_job

        def filed(job_def: dg.JobDefinition, **given: Any) -> dg.DagsterRun:
            return create(job_def, remote_job_origin=_CODE_LOCATION.get_job_origin(job_def.name), **given)

        setattr(instance, "create_run_for_job", filed)  # noqa: B010 (a plain assignment to a method is no type)
        yield instance


class KeptOpenEventLog(SqliteEventLogStorage):
    """One connection per file, used by one thread at a time (the base class's lock)."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> KeptOpenEventLog:
        """`base_dir` is taken from Dagster's home on, where it is relative: Dagster tells its storage nothing else of its place."""
        return cls(str(Path(os.environ.get("DAGSTER_HOME", ""), config_value["base_dir"])), inst_data)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock, self._engine(shard).connect() as connection, connection.begin():
            yield connection

    def _engine(self, shard: str) -> Engine:
        if shard not in self._engines:
            self._engines[shard] = _engine(self.conn_string_for_shard(shard))
            if shard not in self._initialized_dbs:
                self._initdb(self._engines[shard])
                self._initialized_dbs.add(shard)
            while len(self._engines) > _KEPT_FILES:
                self._engines.popitem(last=False)[1].dispose()
        self._engines.move_to_end(shard)
        return self._engines[shard]

    def dispose(self) -> None:
        """Close the files."""
        while self._engines:
            self._engines.popitem()[1].dispose()
        super().dispose()


def _engine(address: str) -> Engine:
    arguments = {"timeout": _BUSY_S, "check_same_thread": False}
    engine = create_engine(address, poolclass=QueuePool, pool_size=2, max_overflow=0, connect_args=arguments)
    event.listen(engine, "connect", lambda connection, _: connection.execute("pragma synchronous = normal"))
    return engine
