"""Requests and responses as values, shared by client, archive and reader.

An Exchange is one request with its outcome (one row of the archive); a Response is a whole,
successful one."""

import datetime as dt
import os
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from marketing_api.clock import steady_seconds, unix_now
from marketing_api.envelope import Body, Envelope, read_envelope
from marketing_api.errors import AuthenticationFailed
from marketing_api.operation import Call
from marketing_api.redaction import Secret

#: Bytes of one response, unpacked: a listing of a million contacts has some hundred million.
BODY_LIMIT = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Connection:
    """One account and how to reach it. `url` up to and including `/1`; `max_rate` in requests per
    second; `body_limit` in bytes; `budget_url`: the Redis through which machines share its rate
    limit; `key_error`: why there is no key; it is raised instead of sending."""

    account: str
    url: str
    key: Secret
    max_rate: float | None = None
    timezone: str | None = None
    body_limit: int = BODY_LIMIT
    budget_url: Secret | None = None
    key_error: AuthenticationFailed | None = None


class Outcome(StrEnum):
    OK = "ok"  # whole envelope, header ok, payload in its place
    REFUSED = "refused"  # whole envelope, header error
    RATE_LIMITED = "rate_limited"
    BROKEN = "broken"  # 5xx, HTML, cut JSON
    UNREACHABLE = "unreachable"  # no connection, reset, time-out


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request: times in UTC and whole milliseconds; `error` says what went wrong, without key
    or address."""

    request_id: int
    account: str
    call: Call
    requested_at: dt.datetime
    waited_ms: int  # in the pacing queue
    took_ms: int  # from sending to the last byte
    http_status: int | None
    outcome: Outcome
    error: str | None
    #: As received, in UTF-8 and with every occurrence of the key replaced; b"" when none came or it
    #: is secret.
    body: Body = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # they are not archived
    opened: Envelope | None = field(default=None, repr=False, compare=False)  # of this very body


@dataclass(frozen=True)
class Response:
    """A whole response to a call, from the service or from the archive. `opened`: its envelope, if
    the client has opened and checked it."""

    request_id: int
    account: str
    call: Call
    requested_at: dt.datetime
    body: Body = field(repr=False)
    opened: Envelope | None = field(default=None, repr=False, compare=False)

    @cached_property
    def envelope(self) -> Envelope:
        """ValueError when the body is no whole JSON object."""
        envelope = self.opened or read_envelope(self.body)
        if envelope.flaw:
            raise ValueError(envelope.flaw)
        return envelope


class _RequestIds:
    """Microseconds << 10 | a number of the process. The clock is only read for the first id; later
    ids follow from the steady clock.

    Two parallel processes make the same id if they draw the same of 1,024 numbers in the same
    microsecond."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0  # in microseconds, like all times here except the ids
        self._lead = min(round(unix_now() * 1e6), _LATEST) - _unix_microseconds()
        self.draw_process_number()

    def draw_process_number(self) -> None:
        """The number of this process; a forked child has to draw its own."""
        self._own = secrets.randbits(10)

    def next_id(self) -> int:
        """A positive 63-bit number, larger than all earlier ids of this process and than all ids
        that `exceed` received."""
        with self._lock:
            self._last = max(self._last + 1, self._lead + _unix_microseconds())
            return self._last << 10 | self._own

    def exceed(self, request_id: int) -> None:
        """Make all later ids larger than this one. Callers that open an archive pass its largest
        id. So requests are in the order of their ids, even if the machine's clock was set back."""
        with self._lock:
            next_microsecond = (request_id >> 10) + 1
            self._lead = max(self._lead, next_microsecond - _unix_microseconds())


def _unix_microseconds() -> int:
    return round(steady_seconds() * 1e6)


#: A clock beyond 2112 counts as this: ids have to fit into 63 bits.
_LATEST = 1 << 52
_ids = _RequestIds()
os.register_at_fork(after_in_child=_ids.draw_process_number)
new_request_id = _ids.next_id
exceed_request_id = _ids.exceed


def order_of(request_id: int) -> float:
    """The id as seconds. The difference of two ids of one home is the time between them, even if
    the clock was wrong; while it is right, these are unix seconds."""
    return (request_id >> 10) / 1e6


def id_at(moment: dt.datetime) -> int:
    """About the id that a request of that moment has, if the clock was right: for notes from the
    time before there were ids."""
    return round(moment.timestamp() * 1e6) << 10
