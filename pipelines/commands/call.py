"""`marketing-sync call OPERATION [name=value…]`: any operation, validated before it costs a request; writes ask first."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import msgspec

from marketing_api import operations
from marketing_api.client import Client, Connection
from marketing_api.errors import InvalidCall, OutcomeUnknown
from marketing_api.exchange import Exchange
from marketing_api.operation import Call
from marketing_api.rate_limit import RateLimiter
from marketing_api.transport import Received
from pipelines import exits
from pipelines.service import connections
from pipelines.settings import Settings, SettingsError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The operation, its parameters, the account, `--yes`, `--xml`."""
    parser.add_argument("operation", help="e.g. emailmarketing/getcontact; all are in docs/operations.md")
    parser.add_argument("parameters", nargs="*", default=[], metavar="name=value", help="parameters, e.g. id=12 or fields[3]=London")
    parser.add_argument("--account", help="which account, when several are configured")
    parser.add_argument("--yes", action="store_true", help="do not ask before a write")
    parser.add_argument("--xml", action="store_true", help="show the answer to a read as the service writes it in XML")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the payload as JSON; 1 when nothing was sent, since nobody agreed to a write."""
    call = operations.find(arguments.operation).bind(**_parameters(arguments.parameters))
    with connections(settings) as accounts:
        connection = _chosen(accounts, arguments.account)
        if not call.operation.is_read and not (arguments.yes or _agreed(call, connection)):
            print("nothing was sent", file=sys.stderr)
            return exits.INCOMPLETE
        return _call(call, connection, is_xml=arguments.xml)


def _call(call: Call, connection: Connection, *, is_xml: bool) -> int:
    limiter = RateLimiter.shared(connection.url, connection.key, cap=connection.max_rate)
    with tempfile.TemporaryDirectory() as spool, Client(connection, limiter, record=_forget, spool=Path(spool)) as client:
        if is_xml:
            return _print_xml(client.fetch_xml(call))
        try:
            response = client.fetch(call) if call.operation.is_read else client.write(call)
        except OutcomeUnknown as problem:
            print(f"marketing-sync: {problem}\nLook whether it took effect before you send it again.", file=sys.stderr)
            return exits.INCOMPLETE
        body = response.body.read_bytes() if isinstance(response.body, Path) else response.body
    document = msgspec.json.decode(body)
    payload = document.get("response", document).get("data", document) if isinstance(document, dict) else document
    print(json.dumps(payload, indent=2, ensure_ascii=False))
    return exits.DONE


def _print_xml(received: Received) -> int:
    """As it came. Whether the service refused is told by the HTTP status and by the envelope's own word."""
    body = received.body.read_bytes() if isinstance(received.body, Path) else received.body
    print(body.decode("utf-8", "replace"))
    return exits.INCOMPLETE if received.status != 200 or b"<status>error</status>" in body else exits.DONE


def _parameters(words: list[str]) -> dict[str, object]:
    """`name=value` words as keyword values; `fields[3]=London` collects into the map `fields`."""
    values: dict[str, object] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise InvalidCall(f"{word!r} is not name=value")
        if name.endswith("]") and "[" in name:
            name, _, key = name[:-1].partition("[")
            group = values.setdefault(name, {})
            if not isinstance(group, dict):
                raise InvalidCall(f"{name} is given both as a value and as a map")
            group[key] = value
        else:
            values[name] = value
    return values


def _chosen(accounts: tuple[Connection, ...], name: str | None) -> Connection:
    for connection in accounts:
        if name == connection.account or (name is None and len(accounts) == 1):
            return connection
    raise SettingsError(f"say which account with --account: {', '.join(connection.account for connection in accounts)}")


def _agreed(call: Call, connection: Connection) -> bool:
    shown = ", ".join(f"{name}={value}" for name, value in call.shown.items())
    print(f"{call.operation.name} ({call.operation.effect.value}) on account {connection.account}: {shown}", file=sys.stderr)
    try:
        return input("Send it? [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, RuntimeError):  # nobody is there, or standard input is closed
        return False


def _forget(exchange: Exchange) -> None:
    """Calls by hand are not part of the archive."""
