"""Send one cheap request: whose key it is, and the rate limit.

Paced like all requests, and no part of the archive."""

import datetime as dt
import sys
from collections.abc import Callable, Sequence

from home import exits
from home.accounts import chosen, connections, explained
from home.identity import Recognition, is_same, known_owner, note_owner, owner_in
from home.options import JSON, Option
from home.output import Finding, Findings, emit
from home.settings import Settings, SettingsError
from marketing_api.client import Connection
from marketing_api.errors import MarketingApiError, OtherBusiness
from marketing_api.exchange import Response
from marketing_api.operations import account
from marketing_api.parsing import business_of
from marketing_api.redaction import plain
from pipelines.commands import Arguments, command, print_error, says_yes
from pipelines.commands.call import client_by_hand
from write_back.outbox.outbox import open_outbox

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
        "confirm that the key of this account now belongs to another business, and keep its name",
        str,
        metavar="ACCOUNT",
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


def _accept_business(arguments: Arguments, settings: Settings, accounts: Sequence[Connection]) -> int:
    """Exit code 1 when nobody agreed."""
    connection = chosen(settings, accounts, arguments.accept_business)
    known = known_owner(settings, connection.account)
    with client_by_hand(connection) as (client, _):
        told = owner_in(client.fetch(account.ME.bind()), connection)
    if is_same(known, told):
        print(
            f"{connection.account}: the key belongs to {told}, as the home knows it: there is "
            "nothing to confirm"
        )
        return exits.DONE
    with open_outbox(settings.home) as outbox:
        if left := outbox.open_count(connection.account):
            raise SettingsError(
                f"{left:,} requests to {known} are still open: send them with its key, or `marketing-sync "
                "push cancel`"
            )
    print(
        f"{connection.account}: the home holds the data of {known}; the key belongs to {told}",
        file=sys.stderr,
    )
    if not arguments.yes and not sys.stdin.isatty():
        raise SettingsError("this has to be confirmed: run it on a terminal, or with --yes")
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
