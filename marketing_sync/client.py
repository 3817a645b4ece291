"""The service for programs of your own: calls by the name of the operation, validated, under the
account's rate limit, repeated where that is safe (docs/python.md).

Not here: what a sync adds to it, the archive and the warehouse."""

import datetime as dt
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from marketing_api import operations
from marketing_api.client import Client as _Client
from marketing_api.client import Connection, Secret
from marketing_api.errors import InvalidCall
from marketing_api.operation import Operation
from marketing_api.operations import account
from marketing_api.paging import Listing
from marketing_api.parsing import parse_rows
from marketing_api.rate_limit import RateLimiter
from marketing_api.records.fields import Record
from marketing_api.service_address import normalize_address

#: Names as in the reference of tables, values as Python has them.
Row = dict[str, Any]
_TIMES: dict[Any, Callable[[str], dt.date]] = {
    kind: read
    for plain, read in ((dt.datetime, dt.datetime.fromisoformat), (dt.date, dt.date.fromisoformat))
    for kind in (plain, plain | None)
}


class Client:
    """One account of the service. Thread-safe; a context manager.

        with Client("https://HOST/1", key) as client:
            client.get("app/me")
            for contact in client.rows("emailmarketing/getcontacts", listid=12):
                print(contact["email"], contact["registered_at"])

    Without address and key, those of `MARKETING_API_URL` and `MARKETING_API_KEY`; one of them alone
    is refused, so that a key never goes to another address than its own. `max_rate`: requests a
    second, below the service's limit, which every program of this user on this machine that uses
    the same key shares, a sync included. `timezone` overrides what the account reports. Raises
    errors.InvalidCall."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        max_rate: float | None = None,
        timezone: str | None = None,
    ) -> None:
        if url is None and key is None:
            url, key = os.environ.get("MARKETING_API_URL"), os.environ.get("MARKETING_API_KEY")
        if not url or not key:
            raise InvalidCall(
                "address and key belong together: pass both, or neither and set MARKETING_API_URL "
                "and MARKETING_API_KEY"
            )
        try:
            address = normalize_address(url)
        except ValueError as problem:
            raise InvalidCall(f"the address of the service: {problem}", parameter="url") from None
        connection = Connection("main", address, Secret(key), max_rate, timezone)
        self._open = ExitStack()
        spool = Path(self._open.enter_context(tempfile.TemporaryDirectory()))
        limiter = RateLimiter.share_limit(connection)
        self._client = self._open.enter_context(
            _Client(connection, limiter, record=lambda _: None, spool=spool)
        )

    def get(self, operation: str | Operation, **parameters: Any) -> Any:
        """What a read returned, decoded and as the service words it: the payload of its response.

        Raises errors.InvalidCall before anything is sent when the parameters do not fit; Refused,
        NotAvailable, AuthenticationFailed, or a Transient error after all tries."""
        call = find_operation(operation, is_read=True).bind(**parameters)
        return self._client.fetch(call).envelope.decode_payload(call.operation)

    def rows(
        self, operation: str | Operation, *, record: str = "", **parameters: Any
    ) -> Iterator[Row]:
        """The entries of a read, of all its pages and each once, in the service's order.

        Values are read from every form in which the service writes them: numbers are numbers, times
        are datetimes in UTC. Members that have no name here are in `extra`; entries that cannot be
        read are left out. `record`: which of the operation's records, where a response has several
        kinds; the first otherwise. Raises as `get`."""
        found = find_operation(operation, is_read=True)
        kind = _find_record(found, record)
        found.bind(**parameters)
        zone = self.timezone  # first: a wrong key is told there
        known: set[str] = set()
        for response in Listing(found, parameters).pages(self._client.fetch):
            today = response.requested_at.astimezone(zone).date()
            for batch in parse_rows(response, zone, today):
                for each in batch.records if batch.record is kind else ():
                    text = repr(each) if found.is_paged else ""
                    if not text or text not in known:
                        known.add(text)
                        yield _make_row(each)

    def send(self, operation: str | Operation, **parameters: Any) -> Any:
        """What a write returned. It is sent again only where it certainly took no effect.

        Raises as `get`, and errors.OutcomeUnknown where nobody can tell: look before you send it
        again. For lists of people `marketing-sync push` keeps an outbox, which does that by
        itself."""
        call = find_operation(operation, is_read=False).bind(**parameters)
        return self._client.write(call).envelope.decode_payload(call.operation)

    @cached_property
    def timezone(self) -> dt.tzinfo:
        """Of the account: times without a zone are in it. One request, once."""
        given = self._client.connection.timezone
        if given is None:
            response = self._client.fetch(account.ME.bind())
            rows = parse_rows(response, dt.UTC, response.requested_at.date())
            businesses = (
                each
                for batch in rows
                for each in batch.records
                if isinstance(each, account.Business)
            )
            given = next((each.timezone for each in businesses), None)
        with suppress(ZoneInfoNotFoundError, ValueError):
            return ZoneInfo(given or "UTC")
        return dt.UTC

    @property
    def requests(self) -> int:
        """Sent so far."""
        return self._client.statistics.requests

    @property
    def waited_s(self) -> float:
        """Seconds spent waiting for the rate limit, over all threads."""
        return self._client.statistics.waited_s

    def close(self) -> None:
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _find_record(operation: Operation, name: str) -> type[Record]:
    kinds = {each.__name__: each for each in operation.records}
    if not kinds:
        raise InvalidCall(f"{operation.name} has no records: use `get`")
    if name not in ("", *kinds):
        had = f"it has {', '.join(kinds)}"
        raise InvalidCall(f"{operation.name} has no records {name}: {had}", parameter="record")
    return kinds[name] if name else next(iter(kinds.values()))


def _make_row(record: Record) -> Row:
    """Times and dates are texts in a record, since Arrow reads them fastest."""
    row: Row = {}
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        if isinstance(value, str) and field.annotation in _TIMES:
            value = _TIMES[field.annotation](value)
        row[name] = value
    return row | ({"extra": record.extra} if record.extra else {})


def find_operation(operation: str | Operation, *, is_read: bool) -> Operation:
    """Raises InvalidCall when there is none of that name, or it is called by another method."""
    found = operations.find(operation) if isinstance(operation, str) else operation
    if found.is_read and not is_read:
        raise InvalidCall(
            f"{found.name} is a read: use `get`{' or `rows`' if found.records else ''}"
        )
    if is_read and not found.is_read:
        raise InvalidCall(f"{found.name} is a write: use `send`")
    return found
