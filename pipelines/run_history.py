"""Dagster's own event log, with the files of the last runs kept open.

As it comes, Dagster opens, commits and closes a SQLite file for each event: with the several hundred events of a sync that is
the larger part of a short run. In WAL mode `synchronous = normal` cannot corrupt a file (after a power loss the last events
may be missing). What must not be lost is in the archive, not here. `dagster.yaml` of the home names this class.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

_KEPT_FILES = 8  # a file per run, and the index
_BUSY_S = 60


class KeptOpenEventLog(SqliteEventLogStorage):
    """One connection per file, used by one thread at a time (the base class's lock)."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> KeptOpenEventLog:
        return cls(inst_data=inst_data, **config_value)

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
