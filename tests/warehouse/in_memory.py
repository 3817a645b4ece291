"""Tables in memory, for properties of any sequence of loads: each example is a transaction that the next one
rolls back."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import duckdb

from marketing_api.exchange import Response
from marketing_api.operation import Operation
from marketing_api.parsing import parse_rows
from tests.warehouse.answering import START, contents
from warehouse.loads.apply import apply_tables
from warehouse.loads.load import Load
from warehouse.loads.staging import LastLoaded, Staged, are_current, heads_of, stage_responses
from warehouse.sql import fetch_rows
from warehouse.tables import Table

_ids = itertools.count(1)
NOTHING: Mapping[int, LastLoaded] = MappingProxyType({})


def answer(operation: Operation, data: Any, minutes: float, **params: Any) -> Response:
    """An answer whose payload is `data`, asked so long after START."""
    body = json.dumps({"response": {"header": {"status": "ok"}, "data": data}}).encode()
    return Response(next(_ids), "main", operation.bind(**params), START + dt.timedelta(minutes=minutes), body)


class Tables:
    """`fresh` empties them again."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def fresh(self) -> Tables:
        self.connection.rollback()
        self.connection.begin()
        return self

    def load(
        self,
        responses: Sequence[Response],
        *filled: Table,
        zone: str = "UTC",
        said: Mapping[int, LastLoaded] = NOTHING,
        **options: Any,
    ) -> None:
        """What `Warehouse.apply_load` does; `said` was compared with before."""
        load = Load(
            "main",
            "test",
            tuple(table.name for table in filled),
            tuple(response.request_id for response in responses),
            zone,
            **options,
        )

        def staging(said: Mapping[int, LastLoaded]) -> Staged:
            by_id = {response.request_id: response for response in responses}
            read = partial(map, by_id.__getitem__)
            return stage_responses(
                heads_of(responses, filled), read, filled, ZoneInfo(zone), parse_rows, Path, said
            )

        staged = staging(said)
        if not are_current(self.connection, "main", staged.assumed):
            staged = staging(NOTHING)
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
