"""Whether an account's address, key and business are the right ones, by one cheap request.

Requests are paced like all others; none of them is kept in the archive."""

import datetime as dt
import sys
from collections.abc import Callable

from assets.checkpoint import Checkpoints
from assets.sources import SOURCE_ASSETS
from home import exits
from home.accounts import choose_account, explain_refusal, open_connections
from home.door import open_archive
from home.identity import find_difference, known_owner, note_owner, owner_in
from home.output import Finding
from home.settings import Settings, SettingsError
from marketing_api.client import Connection
from marketing_api.errors import MarketingApiError, OtherBusiness
from marketing_api.exchange import Response
from marketing_api.operations import account
from marketing_api.parsing import business_of
from marketing_api.redaction import plain
from marketing_sync.commands import print_error, says_yes
from marketing_sync.commands.call import client_by_hand
from write_back.outbox.outbox import open_outbox

#: What a finding is about that says that the home holds another business's data, or is of the other
#: kind.
IDENTITY = "identity"


def accept_business(settings: Settings, account_name: str, *, is_agreed: bool) -> int:
    """Note that the account is another business now, or has another address, once a person agreed:
    by `is_agreed`, or asked on the terminal. Returns the exit code, 1 when nobody agreed. Raises
    SettingsError."""
    with open_connections(settings) as accounts:
        connection = choose_account(settings, accounts, account_name)
        known = known_owner(settings, connection.account)
        with client_by_hand(connection) as (client, _):
            found = owner_in(client.fetch(account.ME.bind()), settings, connection)
    if not (why := find_difference(known, found)):
        print(
            f"{connection.account}: this is {found}, as the home knows it: there is nothing to "
            "confirm"
        )
        return exits.DONE
    with open_outbox(settings.home) as outbox:
        if left := outbox.open_count(connection.account):
            raise SettingsError(
                f"{left:,} requests to {known} are still open: send them with its key and address, "
                "or drop them with `marketing-sync push cancel`"
            )
    print(
        f"{connection.account}: {why}: the home holds the data of {known}, and {found} responds",
        file=sys.stderr,
    )
    if not is_agreed and not sys.stdin.isatty():
        raise SettingsError("this has to be confirmed: run it on a terminal, or with --yes")
    if not (is_agreed or says_yes("Go on under the same name with this one? [y/N] ")):
        return print_error("nothing was changed", exits.INCOMPLETE)
    with open_archive(settings.home) as archive:
        Checkpoints(archive).end_assets(SOURCE_ASSETS)  # a sync of the other one is not resumed
    note_owner(settings, connection.account, found)
    print(f"{connection.account}: is {found} from now on")
    return exits.DONE


def check_account(
    connection: Connection, accept: Callable[[Response], object] = lambda _: None
) -> tuple[Finding, dt.timedelta]:
    """One cheap request: whether address and key are right, and what to do where they are not; how
    far the service's clock is ahead."""
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
        text = f"not connected: {explain_refusal(connection, problem)}"
    return Finding(what, False, f"{connection.account}: {plain(text)}"), skew
