"""Exchanges to record, and how tests look at what an archive holds."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from marketing_api.envelope import Body
from marketing_api.exchange import Exchange, Outcome, new_request_id
from marketing_api.operation import Call, Operation
from marketing_api.operations import find
from warehouse.archive.archive import Archive

NOON = dt.datetime(2026, 11, 20, 12, 0, tzinfo=dt.UTC)
#: For `Archive.find_reusable`: whenever it was asked.
ALWAYS = (dt.datetime.min.replace(tzinfo=dt.UTC), dt.datetime.max.replace(tzinfo=dt.UTC))
TIMELINE = find("emailmarketing/getcontacttimeline")


def question(contact_id: int = 1, operation: Operation = TIMELINE) -> Call:
    return operation.bind(id=contact_id)


def envelope(data: Any, remaining: int = 9) -> bytes:
    """A whole answer; the rate limit's state differs in every one."""
    limit = {"limit": "10", "requests": str(10 - remaining), "remaining": str(remaining)}
    return json.dumps({"response": {"header": {"status": "ok"}, "data": data}, "rate-limit": limit}).encode()


def exchange(
    body: Body = b"",
    asked: Call | None = None,
    *,
    at: dt.datetime = NOON,
    outcome: Outcome = Outcome.OK,
    account: str = "main",
    error: str | None = None,
) -> Exchange:
    status = 200 if outcome is not Outcome.UNREACHABLE else None
    return Exchange(new_request_id(), account, asked or question(), at, 3, 120, status, outcome, error, body)


def rows(archive: Archive) -> dict[int, dict[str, Any]]:
    """All sealed rows by id; a row that stands in two files is a mistake."""
    tables = [table for _, table in archive.list_exchanges()]
    found = pa.concat_tables(tables).to_pylist() if tables else []
    by_id = {row["request_id"]: row for row in found}
    assert len(by_id) == len(found)
    return by_id


def files(root: Path) -> list[str]:
    """Every file below `root`, without the ledger."""
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith("ledger.")
    )


def record(archive: Archive, *exchanges: Exchange) -> list[int]:
    """Record them; their ids."""
    for one in exchanges:
        archive.record_exchange(one)
    return [one.request_id for one in exchanges]


def bodies(archive: Archive, request_ids: list[int]) -> list[Body]:
    return [answer.body for answer in archive.responses(request_ids)]
