"""Print everything stored about a person as JSON (access request).

Nothing is requested of the service."""

import json

import click

from home import exits
from home.folder import in_use, open_for_reading
from home.identity import account_in_home
from home.options import Option
from home.settings import Settings
from home.values import mailbox, whole
from marketing_sync.commands import declare_command
from warehouse.person import find_person, rows_about

#: Options of the commands that find a person.
ADDRESS = Option(
    "address", "the person's e-mail address", str, metavar="[ADDRESS]", is_positional=True
)
CONTACT_ID = Option(
    "contact_id", "their contact id, if they have no address", int, whole, metavar="ID"
)
ACCOUNT = Option("account", "look in this account only", str, metavar="ACCOUNT")


@declare_command(ADDRESS, CONTACT_ID, ACCOUNT, needs_keys=False)
def person(
    settings: Settings, address: str | None, contact_id: int | None, account: str | None
) -> int:
    """Prints the rows with one of the person's contact ids or addresses, from every table. Texts in
    the rows of other people are not searched."""
    if (address is None) == (contact_id is None):
        raise click.UsageError("name one person: add either an e-mail address or --contact-id")
    if address is not None:
        check_address(address)
    # each account has its own ids
    has_account = account or contact_id is not None
    chosen = account_in_home(settings, account) if has_account else None
    with in_use(settings.home), open_for_reading(settings) as connection:
        found = find_person(connection, chosen, address, contact_id)
        known = {
            "addresses": found.addresses,
            "contacts": [
                {"account": name, "contact_id": number} for name, number in found.contacts
            ],
            "rows": rows_about(connection, found, chosen),
        }
    print(json.dumps(known, default=str, indent=2, ensure_ascii=False))
    return exits.DONE


def check_address(text: str) -> None:
    """Raises click.UsageError unless the text is one e-mail address, and nothing else."""
    try:
        mailbox(text.strip())
    except ValueError:
        message = f"{text!r} is not an e-mail address; it looks like ann@example.com"
        raise click.UsageError(message) from None
