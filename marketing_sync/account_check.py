"""Checks an account's address, key and business with one cheap request.

Requests are paced like all others, and aren't archived."""

import datetime as dt
import sys
from collections.abc import Callable

from assets.checkpoint import Checkpoints
from assets.sources import SOURCE_ASSETS
from home import exits
from home.accounts import choose_account, explain_refusal, open_connections
from home.identity import find_difference, known_owner, note_owner, owner_in
from home.loading import open_archive
from home.output import Finding
from home.settings import Settings, SettingsError
from marketing_api.client import Connection
from marketing_api.errors import MarketingApiError, OtherBusiness
from marketing_api.exchange import Response
from marketing_api.operations import account
from marketing_api.parsing import business_of
from marketing_api.redaction import plain
from marketing_sync.commands import ask_yes_no, print_error
from marketing_sync.commands.call import open_client
from write_back.outbox.outbox import open_outbox

#: The subject of findings about whose data the home contains, and whether it is the sandbox's.
IDENTITY = "identity"


def accept_business(settings: Settings, account_name: str, *, is_agreed: bool) -> int:
    """Record that the account is another business now, or has another address, if the user agrees:
    by `is_agreed`, or on the terminal. Returns the exit code, 1 when they don't agree. Raises
    SettingsError."""
    with open_connections(settings) as accounts:
        connection = choose_account(settings, accounts, account_name)
        known = known_owner(settings, connection.account)
        with open_client(connection) as (client, _):
            found = owner_in(client.fetch(account.ME.bind()), settings, connection)
    difference = find_difference(known, found)
    if not difference:
        print(
            f"{connection.account}: this is {found}, as the home knows it: there is nothing to "
            "confirm"
        )
        return exits.DONE
    with open_outbox(settings.home) as outbox:
        open_count = outbox.open_count(connection.account)
        if open_count:
            raise SettingsError(
                f"{open_count:,} requests to {known} are still open: send them with its key and "
                "address, or drop them with `marketing-sync push cancel`"
            )
    print(
        f"{connection.account}: {difference}: the home has the data of {known}, but {found} "
        "responds",
        file=sys.stderr,
    )
    if not is_agreed and not sys.stdin.isatty():
        raise SettingsError("this needs your confirmation: run it on a terminal, or add --yes")
    if not (is_agreed or ask_yes_no("Continue with this one under the same name? [y/N] ")):
        return print_error("nothing was changed: you did not confirm it", exits.INCOMPLETE)
    with open_archive(settings.home) as archive:
        Checkpoints(archive).end_assets(SOURCE_ASSETS)  # a sync of the other one is not resumed
    note_owner(settings, connection.account, found)
    print(f"{connection.account}: from now on, this is {found}")
    return exits.DONE


def check_account(
    connection: Connection, accept: Callable[[Response], object] = lambda _: None
) -> tuple[Finding, dt.timedelta]:
    """Sends one cheap request. Returns whether address and key are right, or what to do, and how
    far the service's clock is ahead."""
    subject = "account"
    skew = dt.timedelta()
    try:
        with open_client(connection, accept) as (client, limiter):
            business = business_of(client.fetch(account.ME.bind()))
            name = business.business_name if business else "an account without a name"
            text = f"connected as {name}, limit {limiter.limit:,.15g}/s"
            return Finding(subject, True, f"{connection.account}: {plain(text)}"), client.clock.skew
    except OtherBusiness as error:
        subject = IDENTITY
        text = str(error)
    except MarketingApiError as error:
        text = f"not connected: {explain_refusal(connection, error)}"
    return Finding(subject, False, f"{connection.account}: {plain(text)}"), skew
