"""Answers as the service would give them, archived like real ones: what the tests of loading begin with."""

import datetime as dt
import itertools
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb

from marketing_api.exchange import Exchange, Outcome, Response, id_at
from marketing_api.operation import Call, Operation
from warehouse.archive.archive import Archive
from warehouse.loads.load import Load, LoadReport
from warehouse.sql import fetch_rows
from warehouse.tables import TABLES, Table
from warehouse.warehouse import Warehouse

#: A Monday morning; `minutes` of the tests count from here.
START = dt.datetime(2026, 3, 2, 8, 0, tzinfo=dt.UTC)


class Home:
    """A warehouse with its archive, and the short ways in which tests fill it."""

    def __init__(self, path: Path, zone: str = "UTC") -> None:
        self.path = path
        self.zone = zone
        self.archive = Archive(path / "archive")
        self.warehouse = Warehouse(path, self.archive, deadline_s=5)
        self._ids = itertools.count(1)

    def close(self) -> None:
        self.archive.close()

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """A reader that joins a writer keeps the file open for later writers of this process, too."""
        with ExitStack() as stack:
            with self.warehouse.open_for_writing():
                stack.enter_context(self.warehouse.open_for_reading())
            yield

    def answer(
        self,
        operation: Operation,
        data: Any,
        minutes: float = 0,
        account: str = "main",
        clock_ahead: float = 0,
        **params: Any,
    ) -> Response:
        """An archived answer with payload `data`, asked `minutes` after START by a clock that far ahead."""
        body = json.dumps({"response": {"header": {"status": "ok"}, "data": data}}).encode()
        question: Call = operation.bind(**params)
        asked_at = START + dt.timedelta(minutes=minutes)
        request_id = id_at(asked_at) + next(self._ids)
        asked_at += dt.timedelta(minutes=clock_ahead)
        self.archive.record_exchange(
            Exchange(request_id, account, question, asked_at, 0, 1, 200, Outcome.OK, None, body)
        )
        return Response(request_id, account, question, asked_at, body)

    def load(self, answers: Iterable[Response], *tables: Table, **options: Any) -> LoadReport:
        """Apply a load of these answers."""
        return self.warehouse.apply_load(self.event(answers, *tables, **options))

    def event(self, answers: Iterable[Response], *tables: Table, **options: Any) -> Load:
        """A load of these answers."""
        many = list(answers)
        account = many[0].account if many else "main"
        options = {"zone": self.zone, "logged_at": START + dt.timedelta(days=1), **options}
        return Load(
            account,
            "test",
            tuple(table.name for table in tables),
            tuple(answer.request_id for answer in many),
            **options,
        )

    def rows(self, table: Table | str, columns: str = "*", where: str = "true") -> list[dict[str, Any]]:
        """The table's rows, sorted by every column."""
        name = table if isinstance(table, str) else table.qualified
        found: list[dict[str, Any]] = self.warehouse.run_query(
            f"select {columns} from {name} where {where} order by all"
        ).to_pylist()
        return found

    def values(self, table: Table | str, column: str, where: str = "true") -> list[Any]:
        """One column of the rows."""
        return [row[column] for row in self.rows(table, column, where)]

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of all tables that follow from log and archive."""
        with self.warehouse.open_for_writing() as connection:
            return contents(connection)


def contents(connection: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables that follow from log and archive."""
    names = [table.qualified for table in TABLES.values()]
    kept = (
        "coverage",
        "readings",
        "contact_coverage",
        "rejected_records",
        "schema_changes",
        "known_shapes",
        "loads",
    )
    names += [f"sync.{name}" for name in kept]
    return {name: fetch_rows(connection, f"from {name} order by all") for name in names}
