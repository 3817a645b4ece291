"""The way to the service for a push: one account's client, under the account's limit, with every request in the archive.

Not here: what is sent through it (`send`, `verify`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from marketing_api.client import Client, Connection
from marketing_api.exchange import Exchange
from marketing_api.pace import Pace, pace_path
from pipelines.service import connections
from pipelines.settings import Settings, SettingsError
from pipelines.write_back.reporting.result import Spent
from warehouse.archive import Archive

#: The account when none is configured: the sandbox's.
SANDBOX_ACCOUNT = "main"
#: What the service allows, unless an account reports or a person sets another figure.
RATE = 15.0


@dataclass(frozen=True)
class Channel:
    """An open way to one account."""

    client: Client

    @property
    def spent(self) -> Spent:
        """So far."""
        statistics = self.client.statistics
        return Spent(statistics.requests, statistics.waited_s)


@contextmanager
def open_channel(settings: Settings, account: str) -> Iterator[Channel]:
    """For as long as the context lasts; nothing is asked by opening it. Raises SettingsError for an account that is not configured."""
    with connections(settings) as accounts:
        connection = _connection(accounts, account)
        pace = Pace(pace_path(connection.url, connection.key), cap=connection.max_rate)
        spool = settings.home / "tmp"
        spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (
            Archive(settings.home / "archive") as archive,
            tempfile.TemporaryDirectory(dir=spool) as folder,
            Client(connection, pace, record=lambda exchange: archive.record(_bare(exchange)), spool=Path(folder)) as client,
        ):
            yield Channel(client)


def account_of(settings: Settings, name: str | None) -> str:
    """The account of this name, or the only one there is. Raises SettingsError."""
    names = [connection.account for connection in settings.accounts] or [SANDBOX_ACCOUNT]
    if name in names:
        return str(name)
    if name is None and len(names) == 1:
        return names[0]
    raise SettingsError(f"say which account with --account: {', '.join(names)}")


def rate_of(settings: Settings, account: str) -> float:
    """Requests a second to reckon with in a plan, which asks nobody."""
    caps = [connection.max_rate for connection in settings.accounts if connection.account == account] or [settings.max_rate]
    return min(RATE, caps[0] or RATE)


def _connection(accounts: tuple[Connection, ...], name: str) -> Connection:
    for connection in accounts:
        if connection.account == name:
            return connection
    raise SettingsError(f"there is no account {name} any more; configured are {', '.join(each.account for each in accounts)}")


def _bare(exchange: Exchange) -> Exchange:
    """What a push reads is as of the middle of its own changes: kept without its body, it is never taken for a sync's answer."""
    return replace(exchange, body=b"") if exchange.question.operation.is_read else exchange
