"""What passed between us and the service: values only, shared by client, archive and reader.

An Exchange is one request and whatever came back (one row of the archive); an Answer is a whole, successful one.
"""

from __future__ import annotations

import datetime as dt
import itertools
import time
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from marketing_api.operation import Question


class Outcome(StrEnum):
    """How one request ended."""

    OK = "ok"  # whole envelope, header ok, payload in its place
    REFUSED = "refused"  # whole envelope, header error
    RATE_LIMITED = "rate_limited"
    BROKEN = "broken"  # 5xx, HTML, cut JSON
    UNREACHABLE = "unreachable"  # no connection, reset, time-out


#: A small body is held in memory; one over the client's spool limit stands in a file (plain JSON) that its owner removes.
Body = bytes | Path


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request: times in UTC and whole milliseconds; `error` says what went wrong, without key or address."""

    request_id: int
    account: str
    question: Question
    requested_at: dt.datetime
    waited_ms: int  # in the pacing queue
    took_ms: int  # from sending to the last byte
    http_status: int | None
    outcome: Outcome
    error: str | None
    body: Body = field(repr=False)  # as received, with every occurrence of the key replaced; b"" when none came or it is secret


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer to a question, fresh from the service or from the archive."""

    request_id: int
    account: str
    question: Question
    requested_at: dt.datetime
    body: Body = field(repr=False)


_counter = itertools.count()


def new_request_id() -> int:
    """A positive 63-bit number that grows with time (microseconds << 10 | counter): ids of later requests are larger."""
    return (time.time_ns() // 1000) << 10 | (next(_counter) & 1023)
