"""Tables in memory, for properties of any sequence of loads: each example is rolled back by the next."""

import datetime as dt
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb

from marketing_api.exchange import Response
from marketing_api.operation import Operation
from marketing_api.parsing import parse_rows
from tests.warehouse.answering import START, contents
from warehouse.loads.apply import apply_tables
from warehouse.loads.load import Load
from warehouse.loads.staging import stage_responses
from warehouse.sql import fetch_rows
from warehouse.tables import Table

_ids = itertools.count(1)


def answer(operation: Operation, data: Any, minutes: float, **params: Any) -> Response:
    """An answer whose payload is `data`, asked so long after START."""
    body = json.dumps({"response": {"header": {"status": "ok"}, "data": data}}).encode()
    return Response(next(_ids), "main", operation.bind(**params), START + dt.timedelta(minutes=minutes), body)


class Tables:
    """`fresh` empties them again."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def fresh(self) -> "Tables":
        self.connection.rollback()
        self.connection.begin()
        return self

    def load(
        self,
        responses: Sequence[Response],
        *filled: Table,
        zone: str = "UTC",
        **options: Any,
    ) -> None:
        """What `Warehouse.apply_load` does."""
        load = Load(
            "main",
            "test",
            tuple(table.name for table in filled),
            tuple(response.request_id for response in responses),
            zone,
            **options,
        )
        staged = stage_responses(responses, filled, ZoneInfo(zone), parse_rows, Path)
        apply_tables(self.connection, load, staged)

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """Without the numbers of requests, which depend on how an answer was cut into pages."""
        coverage = fetch_rows(
            self.connection, "select * exclude (last_request) from sync.coverage order by all"
        )
        shapes = fetch_rows(
            self.connection, "select * exclude (first_request) from sync.known_shapes order by all"
        )
        return contents(self.connection) | {"sync.coverage": coverage, "sync.known_shapes": shapes}

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return fetch_rows(self.connection, sql)
