"""The way to the service for a push: one account's client, under the account's limit, with every request in the archive.

Not here: what is sent through it (`sending`, `verification`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from marketing_api.client import Client, Connection
from marketing_api.exchange import Exchange
from marketing_api.rate_limit import RateLimiter
from pipelines.accounts import connections
from pipelines.settings import Settings, SettingsError
from pipelines.write_back.result import Spent
from warehouse.archive import Archive
from warehouse.archive.disk import Workspace


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
    """For as long as the context lasts; opening it sends nothing. Raises SettingsError for an account that is not configured."""
    with connections(settings) as accounts:
        connection = _connection(accounts, account)
        limiter = RateLimiter.shared(connection.url, connection.key, cap=connection.max_rate)
        with (
            Archive(settings.home / "archive") as archive,
            closing(Workspace(settings.home / "tmp" / "spool")) as spool,
            Client(connection, limiter, record=lambda exchange: archive.record(_bare(exchange)), spool=spool.folder()) as client,
        ):
            yield Channel(client)


def _connection(accounts: tuple[Connection, ...], name: str) -> Connection:
    for connection in accounts:
        if connection.account == name:
            return connection
    raise SettingsError(f"there is no account {name} any more; configured are {', '.join(each.account for each in accounts)}")


def _bare(exchange: Exchange) -> Exchange:
    """What a push reads is as of the middle of its own changes: kept without its body, it is never taken for a sync's answer."""
    return replace(exchange, body=b"") if exchange.call.operation.is_read else exchange
