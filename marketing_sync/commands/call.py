"""Call one operation of the service; asks before a write.

Manual requests are paced like all others, and aren't archived."""

import json
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from home import exits
from home.accounts import choose_account, explain_refusal, open_connections
from home.failures import explain_error
from home.folder import in_use
from home.identity import Recognition
from home.options import ACCOUNT, Option
from home.settings import Settings
from marketing_api import operations
from marketing_api.client import Client, Connection
from marketing_api.contact_lookup import Directory
from marketing_api.errors import InvalidCall, MarketingApiError, OutcomeUnknown
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.rate_limit import RateLimiter
from marketing_sync.commands import ask_yes_no, declare_command, print_error
from write_back.refusals import find_refusal
from write_back.single_write import find_raised

#: The first pause before a retry. All tries together take less than two seconds, since the user
#: waits.
_FIRST_PAUSE_S = 0.03


@declare_command(
    click.Argument(
        ["operation"], help="e.g. emailmarketing/getcontact; docs/operations.md lists them all"
    ),
    click.Argument(
        ["parameters"], nargs=-1, metavar="[NAME=VALUE]...", help="e.g. id=12 or fields[3]=London"
    ),
    ACCOUNT,
    Option("yes", "don't ask before a write"),
    Option(
        "resubscribe",
        "with --yes: let a status make an unsubscribed, bounced or unconfirmed person active",
    ),
)
def call(
    settings: Settings,
    operation: str,
    parameters: Sequence[str],
    account: str | None,
    yes: bool,
    resubscribe: bool,
) -> int:
    """Prints the response as JSON. A write that you don't confirm isn't sent (exit code 1)."""
    call = operations.find(operation).bind(**_read_parameters(parameters))
    with in_use(settings.home), open_connections(settings) as accounts:
        connection = choose_account(settings, accounts, account)
        with open_client(connection, Recognition(settings, connection)) as (client, _):
            try:
                if not call.operation.is_read:
                    raised = find_raised(call, Directory(client.fetch))
                    reason = _find_unsent_reason(
                        call, connection, raised, is_agreed=yes, may_resubscribe=resubscribe
                    )
                    if reason:
                        return print_error(f"nothing was sent: {reason}", exits.INCOMPLETE)
                    client.fetch(operations.account.ME.bind())
                return _print_response(client, call)
            except MarketingApiError as error:
                refusal = None if call.operation.is_read else find_refusal(str(error))
                advice = refusal.remedy_of_call if refusal else ""
                remedy = f"\nto do: {advice}" if advice else ""
                return print_error(
                    f"{explain_refusal(connection, error)}{remedy}",
                    explain_error(error)[1],
                )


def _print_response(client: Client, call: Call) -> int:
    try:
        response = client.fetch(call) if call.operation.is_read else client.write(call)
    except OutcomeUnknown as error:
        return print_error(
            f"{error}\nCheck whether it took effect before you send it again.", exits.INCOMPLETE
        )
    print(json.dumps(response.envelope.document, indent=2, ensure_ascii=False))
    return exits.DONE


@contextmanager
def open_client(
    connection: Connection,
    accept: Callable[[Response], object] = lambda _: None,
) -> Iterator[tuple[Client, RateLimiter]]:
    """A client for manual requests: paced like all, with short pauses before retries; nothing is
    archived."""
    limiter = RateLimiter.share_limit(connection)
    with (
        tempfile.TemporaryDirectory() as spool,
        Client(
            connection,
            limiter,
            record=lambda _: None,
            spool=Path(spool),
            accept=accept,
            first_pause=_FIRST_PAUSE_S,
        ) as client,
    ):
        yield client, limiter


def _read_parameters(words: Sequence[str]) -> dict[str, object]:
    """`name=value` words as keyword values; `fields[3]=London` collects into the map `fields`."""
    values: dict[str, object] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise InvalidCall(f"{word!r} is not a parameter: write NAME=VALUE, like id=12")
        if name.endswith("]") and "[" in name:
            name, _, key = name[:-1].partition("[")
            group = values.setdefault(name, {})
            if not isinstance(group, dict):
                raise InvalidCall(
                    f"{name} is both a value and a map: write either {name}=… or {name}[KEY]=…"
                )
            group[key] = value
        else:
            values[name] = value
    return values


def _find_unsent_reason(
    call: Call,
    connection: Connection,
    raised: Collection[str],
    *,
    is_agreed: bool,
    may_resubscribe: bool,
) -> str:
    """Why the write isn't sent; empty when the user agrees to it. `raised`: see `find_raised`."""
    statuses = " and ".join(sorted(raised))
    if is_agreed:
        if not raised or may_resubscribe:
            return ""
        return (
            f"this person is {statuses} on some list, and the request would subscribe them again; "
            "add --resubscribe if they have asked for it"
        )
    parameters = ", ".join(f"{name}={value}" for name, value in call.public_params.items())
    lines = [
        f"{call.operation.name} ({call.operation.effect.value}) on account {connection.account}: "
        f"{parameters}"
    ]
    if raised:
        lines.append(f"This person is {statuses} on some list: the request subscribes them again.")
    print(*lines, sep="\n", file=sys.stderr)
    return "" if ask_yes_no("Send it? [y/N] ") else "you did not confirm it; in scripts, add --yes"
