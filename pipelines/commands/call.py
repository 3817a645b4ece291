"""`marketing-sync call` and `check`: requests by hand. They are paced like all others, and no part of the
archive."""

import datetime as dt
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from assets.account_session import business_of
from home import exits
from home.accounts import connections, explained
from home.failures import explain
from home.identity import Recognition, is_same, known_owner, note_owner, owner_in
from home.options import ACCOUNT, JSON, Option
from home.output import Finding, Findings, emit
from home.settings import Settings, SettingsError, account_named
from marketing_api import operations
from marketing_api.client import Client, Connection
from marketing_api.errors import InvalidCall, MarketingApiError, OtherBusiness, OutcomeUnknown
from marketing_api.exchange import Exchange, Response
from marketing_api.operation import Call
from marketing_api.operations import account
from marketing_api.rate_limit import RateLimiter, RequestBudget
from marketing_api.redaction import plain
from pipelines.commands import Arguments, command, print_error
from write_back.outbox.outbox import Outbox, outbox_path
from write_back.refusals import known

#: Seconds; all tries together take less than two, since a person waits.
_FIRST_PAUSE = 0.03
#: What a finding is about that says that the home holds another business's data, or is of the other kind.
IDENTITY = "identity"
_NO_KEY = (
    "no key is configured, so this checks the embedded sandbox; MARKETING_API_KEY and "
    "MARKETING_API_URL "
    "name the real account\n"
)


@command(
    Option(
        "accept_business",
        "the home's data is to go on under this name with the business that its key belongs to now",
        str,
        metavar="NAME",
    ),
    Option("yes", "with --accept-business: do not ask"),
    JSON,
)
def check(arguments: Arguments, settings: Settings) -> int:
    """One line per account, with what to do about those that do not respond, or are another business than the
    home knows."""
    found = []
    with connections(settings) as accounts:
        if arguments.accept_business is not None:
            return _accept_business(arguments, settings, accounts)
        print(end=_NO_KEY if settings.is_sandbox and not arguments.json else "")
        for connection in accounts:
            found.append(greeting(connection, Recognition(settings, connection))[0])
            print(end="" if arguments.json else f"{found[-1].text}\n")
    is_well = all(each.is_well for each in found)
    if arguments.json:
        emit(Findings(is_well, found))
    return exits.DONE if is_well else exits.WRONG_USE


def _named(accounts: Sequence[Connection], name: str | None) -> Connection:
    """Raises SettingsError."""
    by_name = {each.account: each for each in accounts}
    return by_name[account_named(name, list(by_name))]


def _accept_business(arguments: Arguments, settings: Settings, accounts: Sequence[Connection]) -> int:
    """Exit code 1 when nobody agreed."""
    connection = _named(accounts, arguments.accept_business)
    known = known_owner(settings, connection.account)
    with client_by_hand(connection) as (client, _):
        told = owner_in(client.fetch(account.ME.bind()), connection)
    if is_same(known, told):
        print(
            f"{connection.account}: the key belongs to {told}, as the home knows it: there is "
            "nothing to confirm"
        )
        return exits.DONE
    with Outbox(outbox_path(settings.home)) as outbox:
        if left := len(outbox.open(connection.account)):
            raise SettingsError(
                f"{left:,} requests to {known} are still open: send them with its key, or `marketing-sync "
                "push cancel`"
            )
    print(
        f"{connection.account}: the home holds the data of {known}; the key belongs to {told}",
        file=sys.stderr,
    )
    if not arguments.yes and not sys.stdin.isatty():
        raise SettingsError("that has to be confirmed: run it on a terminal, or with --yes")
    if not (arguments.yes or says_yes("Go on under the same name with this one? [y/N] ")):
        return print_error("nothing was changed", exits.INCOMPLETE)
    note_owner(settings, connection.account, told)
    print(f"{connection.account}: is {told} from now on")
    return exits.DONE


def greeting(
    connection: Connection, accept: Callable[[Response], object] = lambda _: None
) -> tuple[Finding, dt.timedelta]:
    """One cheap request: whether address and key are right, and what to do where they are not; how far the
    service's clock is ahead."""
    what, skew = "account", dt.timedelta()
    try:
        with client_by_hand(connection, accept) as (client, limiter):
            business = business_of(client.fetch(account.ME.bind()))
            name = business.business_name if business else "an account without a name"
            text = f"connected as {name}, limit {limiter.limit:,.15g}/s"
            return Finding(what, True, f"{connection.account}: {plain(text)}"), client.clock.skew
    except OtherBusiness as problem:
        what, text = IDENTITY, str(problem)
    except MarketingApiError as problem:
        text = f"not connected: {explained(connection, problem)}"
    return Finding(what, False, f"{connection.account}: {plain(text)}"), skew


@command(
    click.Argument(["operation"], help="e.g. emailmarketing/getcontact; all are in docs/operations.md"),
    click.Argument(
        ["parameters"], nargs=-1, metavar="[NAME=VALUE]...", help="e.g. id=12 or fields[3]=London"
    ),
    ACCOUNT,
    Option("yes", "do not ask before a write"),
)
def call(arguments: Arguments, settings: Settings) -> int:
    """Prints the payload as JSON; exit code 1 when nothing was sent because nobody agreed to a write."""
    call = operations.find(arguments.operation).bind(**_parameters(arguments.parameters))
    with connections(settings) as accounts:
        connection = _named(accounts, arguments.account)
        if not call.operation.is_read and not (arguments.yes or _agreed(call, connection)):
            return print_error("nothing was sent", exits.INCOMPLETE)
        with client_by_hand(connection, Recognition(settings, connection)) as (client, _):
            try:
                if not call.operation.is_read:
                    client.fetch(account.ME.bind())
                return _print(client, call)
            except MarketingApiError as problem:
                refusal = None if call.operation.is_read else known(str(problem))
                remedy = f"\nto do: {refusal.remedy}" if refusal else ""
                return print_error(
                    f"marketing-sync: {explained(connection, problem)}{remedy}", explain(problem)[1]
                )


def _print(client: Client, call: Call) -> int:
    try:
        response = client.fetch(call) if call.operation.is_read else client.write(call)
    except OutcomeUnknown as problem:
        return print_error(
            f"marketing-sync: {problem}\nCheck whether it took effect before you send it again.",
            exits.INCOMPLETE,
        )
    body = response.body
    document = msgspec.json.decode(body.read_bytes() if isinstance(body, Path) else body)
    if isinstance(document, dict):
        document = document.get("response", document).get("data", document)
    print(json.dumps(document, indent=2, ensure_ascii=False))
    return exits.DONE


@contextmanager
def client_by_hand(
    connection: Connection,
    accept: Callable[[Response], object] = lambda _: None,
    record: Callable[[Exchange], Exchange | None] = lambda _: None,
    budget: RequestBudget | None = None,
) -> Iterator[tuple[Client, RateLimiter]]:
    """Paced as all, with short pauses before another try; its requests leave nothing behind."""
    limiter = RateLimiter.shared(connection)
    with (
        tempfile.TemporaryDirectory() as spool,
        Client(
            connection,
            limiter,
            record=record,
            spool=Path(spool),
            accept=accept,
            budget=budget,
            first_pause=_FIRST_PAUSE,
        ) as client,
    ):
        yield client, limiter


def _parameters(words: Sequence[str]) -> dict[str, object]:
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


def _agreed(call: Call, connection: Connection) -> bool:
    shown = ", ".join(f"{name}={value}" for name, value in call.shown.items())
    print(
        f"{call.operation.name} ({call.operation.effect.value}) on account {connection.account}: {shown}",
        file=sys.stderr,
    )
    return says_yes("Send it? [y/N] ")


def says_yes(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except (EOFError, RuntimeError):  # no terminal, or standard input is closed
        return False
