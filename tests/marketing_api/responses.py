"""Whole answers of the service, made of the data that a sample shows, and what is read out of them."""

import datetime as dt
import json
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from marketing_api import parsing, validation
from marketing_api.envelope import Body
from marketing_api.exchange import Response
from marketing_api.operation import Operation
from marketing_api.records.fields import Record, Unread

ZONE = ZoneInfo("America/New_York")
DAY = dt.date(2026, 3, 9)
AnyRecord = TypeVar("AnyRecord", bound=Record)


def enveloped(data: Any, *, status: str = "ok", **beside: Any) -> bytes:
    """The body with `data` in its envelope; `beside` stands at the top level."""
    header = {"status": status, "dataType": "array", "limit": "10"}
    return json.dumps({"response": {"header": header, "data": data}, **beside}).encode()


def response(operation: Operation, data: Any, /, **params: Any) -> Response:
    return of_body(operation, enveloped(data), **params)


def of_body(operation: Operation, body: Body, /, **params: Any) -> Response:
    return Response(1, "main", operation.bind(**params), dt.datetime(2026, 3, 9, 12, tzinfo=dt.UTC), body)


def read(operation: Operation, data: Any, /, **params: Any) -> list[parsing.Rows]:
    """What comes out of an answer, after the check that the client makes."""
    made = response(operation, data, **params)
    validation.check_response(made.call, 200, {}, made.envelope)
    return list(parsing.parse_rows(made, ZONE, DAY))


def records(record: type[AnyRecord], operation: Operation, data: Any, /, **params: Any) -> list[AnyRecord]:
    """The records of one type; nothing may have been set aside."""
    rows = read(operation, data, **params)
    assert not [each for batch in rows for each in batch.rejected + batch.flawed]
    return [
        each for batch in rows if batch.record is record for each in batch.records if isinstance(each, record)
    ]


def rejected(operation: Operation, data: Any, /, **params: Any) -> list[Unread]:
    return [each for batch in read(operation, data, **params) for each in batch.rejected]


def flawed(operation: Operation, data: Any, /, **params: Any) -> list[Unread]:
    """The entries that are records without a value which could not be read."""
    return [each for batch in read(operation, data, **params) for each in batch.flawed]


def utc(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
