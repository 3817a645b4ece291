"""An account whose service is a function: no sockets, but a real archive and warehouse."""

import datetime as dt
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from assets.account_session import AccountSession
from assets.checkpoint import Checkpoints
from marketing_api.client import Connection, Failure
from marketing_api.clock import ServiceClock
from marketing_api.errors import AuthenticationFailed, MarketingApiError, Stopped
from marketing_api.exchange import Exchange, Outcome, Response, new_request_id
from marketing_api.operation import Call
from marketing_api.operations import account
from marketing_api.redaction import Secret
from tests.marketing_api.samples import BUSINESS
from warehouse.archive.archive import Archive
from warehouse.warehouse import Warehouse

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
#: The `data` of the response to a call, or the error that the client reports instead.
Respond = Callable[[Call], Any]


class FakeClient:
    """The part of `marketing_api.client.Client` that assets use. `calls`: what was requested, in order."""

    def __init__(
        self, connection: Connection, *_: Any, record: Callable[[Exchange], Exchange], **__: Any
    ) -> None:
        self.connection = connection
        self.clock = ServiceClock()
        self.statistics = SimpleNamespace(waited_s=0.0, requests=0)
        self.calls: list[Call] = []
        self.respond: Respond = lambda call: BUSINESS
        self._record = record
        self._is_stopped = threading.Event()

    def fetch(self, call: Call) -> Response:
        if self._is_stopped.is_set():
            raise Stopped("stopped")
        self.calls.append(call)
        self.statistics.requests += 1
        data = BUSINESS if call.operation is account.ME else self.respond(call)
        if isinstance(data, MarketingApiError):
            raise data
        body = json.dumps({"response": {"header": {"status": "ok"}, "data": data}}).encode()
        name = self.connection.account
        sent = Exchange(new_request_id(), name, call, NOW, 0, 1, 200, Outcome.OK, None, body)
        kept = self._record(sent)
        return Response(kept.request_id, name, call, NOW, body)

    def fetch_many(
        self, calls: Iterable[Call], *, known: Callable[[Call], Any] = lambda call: None, urgency: int = 0
    ) -> Iterator[Response | Failure]:
        del urgency
        for call in calls:
            if (found := known(call)) is not None:
                yield found
                continue
            try:
                yield self.fetch(call)
            except (AuthenticationFailed, Stopped):
                raise
            except MarketingApiError as error:
                yield Failure(call, error)

    def stop(self) -> None:
        self._is_stopped.set()


class Account:
    """One account of a home, and what a run has of it."""

    def __init__(self, home: Path, respond: Respond, name: str = "main") -> None:
        self.home = home
        self.archive = Archive(home / "archive")
        self.warehouse = Warehouse(home, self.archive, deadline_s=5)
        self.checkpoints = Checkpoints(self.archive)
        planner: Any = SimpleNamespace(now=None, export_plan=lambda: None)
        recognition: Any = SimpleNamespace(is_known=True, note_identity=lambda: None)
        self.session = AccountSession(
            Connection(name, "http://service.invalid/1", Secret("key")), self.warehouse,
            limiter=SimpleNamespace(), spool=home, recognition=recognition, budget=None,
            fallback_zone="UTC", now=lambda: NOW, planner=planner,
        )  # type: ignore[arg-type] # fmt: skip
        self.client: Any = self.session.client
        self.client.respond = respond

    def open(self, *assets: str) -> "Account":
        self.session.prepare_reuse(assets, self.checkpoints)
        self.session.request_identity()
        self.client.calls.clear()
        return self

    @property
    def requested(self) -> list[str]:
        """The operations that were requested, each with the parameters given, in order."""
        return [
            " ".join([call.operation.name, *(f"{name}={value}" for name, value in call.params.items())])
            for call in self.client.calls
        ]
