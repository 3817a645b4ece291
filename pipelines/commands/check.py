"""`marketing-sync check`: one request per account, and what to do when it fails."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from assets.account_session import business_of
from marketing_api.client import Client, Connection
from marketing_api.errors import MarketingApiError
from marketing_api.exchange import Exchange
from marketing_api.foreign_text import plain
from marketing_api.operations import account
from marketing_api.pace import Pace, pace_path
from pipelines import exits
from pipelines.service import connections, explained
from pipelines.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None: everything is configured."""


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print a line per account; 0 when all answered."""
    codes = []
    with connections(settings) as accounts:
        if settings.is_sandbox:
            print(
                "no key is configured, so this checks the embedded sandbox; MARKETING_API_KEY and MARKETING_API_URL name the real account"
            )
        for connection in accounts:
            codes.append(_check(connection))
    return max(codes)


def _check(connection: Connection) -> int:
    pace = Pace(pace_path(connection.url, connection.key), cap=connection.max_rate)
    with tempfile.TemporaryDirectory() as spool, Client(connection, pace, record=_forget, spool=Path(spool)) as client:
        try:
            answer = client.ask(account.ME.bind())
        except MarketingApiError as problem:
            print(f"{connection.account}: not connected: {plain(explained(connection, problem))}")
            return exits.WRONG_USE
    business = business_of(answer)
    name = business.business_name if business else "an account without a name"
    print(f"{connection.account}: connected as {plain(name)}, limit {pace.limit:,.15g}/s")
    return exits.DONE


def _forget(exchange: Exchange) -> None:
    """A check leaves nothing behind."""
