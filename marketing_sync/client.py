"""The service's client for your own programs: validated calls by the operation's name, within the
account's rate limit, retried where that is safe (docs/python.md).

Not here: what a sync adds, the archive and the warehouse."""

import datetime as dt
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from zoneinfo import ZoneInfo

from marketing_api import operations
from marketing_api.client import Client as _Client
from marketing_api.client import Connection, Secret
from marketing_api.errors import InvalidCall
from marketing_api.operation import Operation
from marketing_api.operations import account
from marketing_api.paging import Listing
from marketing_api.parsing import business_of, parse_rows
from marketing_api.rate_limit import RateLimiter
from marketing_api.records.fields import Record
from marketing_api.service_address import normalize_address

#: Column names as in the reference of tables, with Python values.
Row = dict[str, Any]
_TIMES: dict[Any, Callable[[str], dt.date]] = {
    dt.datetime: dt.datetime.fromisoformat,
    dt.datetime | None: dt.datetime.fromisoformat,
    dt.date: dt.date.fromisoformat,
    dt.date | None: dt.date.fromisoformat,
}


class Client:
    """One account of the service. Thread-safe; a context manager.

        with Client("https://HOST/1", key) as client:
            client.get("app/me")
            for contact in client.rows("emailmarketing/getcontacts", listid=12):
                print(contact["email"], contact["registered_at"])

    Without address and key, it uses `MARKETING_API_URL` and `MARKETING_API_KEY`. Pass both or
    neither, so that a key is never sent to another address than its own. `max_rate`: requests per
    second, below the service's limit, which all programs of this user on this machine share if
    they use the same key, also a sync. `timezone` overrides what the account reports. Raises
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
            url = os.environ.get("MARKETING_API_URL")
            key = os.environ.get("MARKETING_API_KEY")
        if not url or not key:
            raise InvalidCall(
                "address and key belong together: pass both, or neither and set MARKETING_API_URL "
                "and MARKETING_API_KEY"
            )
        try:
            address = normalize_address(url)
        except ValueError as error:
            raise InvalidCall(f"the address of the service: {error}", parameter="url") from None
        connection = Connection("main", address, Secret(key), max_rate, timezone)
        self._open = ExitStack()
        spool = Path(self._open.enter_context(tempfile.TemporaryDirectory()))
        limiter = RateLimiter.share_limit(connection)
        self._client = self._open.enter_context(
            _Client(connection, limiter, record=lambda _: None, spool=spool)
        )

    def get(self, operation: str | Operation, **parameters: Any) -> Any:
        """What a read returned: the decoded payload of its response, with the service's names.

        Raises errors.InvalidCall before anything is sent when the parameters do not fit; Refused,
        NotAvailable, AuthenticationFailed, or a Transient error after all tries."""
        call = find_operation(operation, is_read=True).bind(**parameters)
        return self._client.fetch(call).envelope.decode_payload(call.operation)

    def rows(
        self, operation: str | Operation, *, record: str = "", **parameters: Any
    ) -> Iterator[Row]:
        """The entries of all pages of a read, without duplicates, in the service's order.

        Values are parsed from every form in which the service writes them: numbers are numbers,
        times are datetimes in UTC. Unknown fields are in `extra`; entries that can't be parsed are
        left out. `record`: the name of a record of the operation, if its response has several
        kinds; by default the first. Raises as `get`."""
        called = find_operation(operation, is_read=True)
        kind = _find_record(called, record)
        called.bind(**parameters)
        zone = self.timezone  # first, since it reports a wrong key
        seen: set[str] = set()
        for response in Listing(called, parameters).pages(self._client.fetch):
            today = response.requested_at.astimezone(zone).date()
            for batch in parse_rows(response, zone, today):
                for entry in batch.records if batch.record is kind else ():
                    text = repr(entry) if called.is_paged else ""
                    if not text or text not in seen:
                        seen.add(text)
                        yield _make_row(entry)

    def send(self, operation: str | Operation, **parameters: Any) -> Any:
        """What a write returned. It is retried only where it certainly took no effect.

        Raises as `get`, and errors.OutcomeUnknown where that is unclear: check before you send it
        again. For lists of people use `marketing-sync push`, whose outbox checks by itself."""
        call = find_operation(operation, is_read=False).bind(**parameters)
        return self._client.write(call).envelope.decode_payload(call.operation)

    @cached_property
    def timezone(self) -> dt.tzinfo:
        """The account's time zone, which its times without a zone are in. Sends one request at
        most."""
        zone_name = self._client.connection.timezone
        if zone_name is None:
            business = business_of(self._client.fetch(account.ME.bind()))
            zone_name = business.timezone if business else None
        return ZoneInfo(zone_name or "UTC")

    @property
    def requests(self) -> int:
        """Requests sent so far."""
        return self._client.statistics.requests

    @property
    def waited_s(self) -> float:
        """Seconds spent waiting for the rate limit, over all threads."""
        return self._client.statistics.waited_s

    def close(self) -> None:
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _find_record(operation: Operation, name: str) -> type[Record]:
    kinds = {record.__name__: record for record in operation.records}
    if not kinds:
        raise InvalidCall(f"{operation.name} has no records: use `get`")
    if name not in ("", *kinds):
        advice = f"it has {', '.join(kinds)}"
        raise InvalidCall(f"{operation.name} has no records {name}: {advice}", parameter="record")
    return kinds[name] if name else next(iter(kinds.values()))


def _make_row(record: Record) -> Row:
    """The record's fields; times and dates are texts in a record, since Arrow reads them
    fastest."""
    row: Row = {}
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        if isinstance(value, str) and field.annotation in _TIMES:
            value = _TIMES[field.annotation](value)
        row[name] = value
    return row | ({"extra": record.extra} if record.extra else {})


def find_operation(operation: str | Operation, *, is_read: bool) -> Operation:
    """The operation of that name. Raises InvalidCall when there is none, or when it needs the other
    method."""
    found = operations.find(operation) if isinstance(operation, str) else operation
    if found.is_read and not is_read:
        raise InvalidCall(
            f"{found.name} is a read: use `get`{' or `rows`' if found.records else ''}"
        )
    if is_read and not found.is_read:
        raise InvalidCall(f"{found.name} is a write: use `send`")
    return found
