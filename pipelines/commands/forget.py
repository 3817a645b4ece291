"""Erase people from everything that is stored about them; a dry run without --apply.

Nothing is requested of the service, except with --also-at-service."""

from collections.abc import Iterator
from pathlib import Path

import click

from home import exits, interrupts
from home.accounts import chosen, connections
from home.folder import prepare_home
from home.formatting import plural
from home.identity import Recognition
from home.options import Option
from home.settings import Settings, SettingsError, account_of
from marketing_api.errors import Refused
from marketing_api.operations import account as operations
from pipelines.commands import Arguments, command, print_error, says_yes
from pipelines.commands.call import client_by_hand
from pipelines.commands.person import ACCOUNT, ADDRESS, CONTACT_ID, check_address
from pipelines.publishing import derived
from upkeep.erasing import dry_run, is_over, people, unfinished
from upkeep.erasing import forget as forget_people
from warehouse.person import Person
from write_back.deletion import Deletion, read_list_ids
from write_back.outbox.store import sender_lock


@command(
    ADDRESS,
    CONTACT_ID,
    Option("from", "a file with one address per line", str, Path, metavar="FILE"),
    ACCOUNT,
    Option("apply", "erase them (default: a dry run, which shows what would be erased)"),
    Option("also_at_service", "with --apply: delete their contacts at the service first; asks before"),
    Option("yes", "with --also-at-service: do not ask"),
    needs_keys="also_at_service",
)
def forget(arguments: Arguments, settings: Settings) -> int:
    """Rows that totals depend on stay, with pseudonyms; keyed fingerprints keep the person from coming back.
    An interrupted erasure is finished first. Exit code 1 when something could not be erased."""
    prepare_home(settings.home, settings.lock_seconds)
    if arguments.also_at_service and not arguments.apply:
        raise click.UsageError("--also-at-service deletes at the service: give it with --apply")
    person = _meant(arguments, settings)
    if not arguments.apply:
        places = dry_run(settings, person)
        for each in places:
            print(f"{each.place}: {each.rows:,}")
        found = plural(sum(each.rows for each in places), "row")
        print(f"{found} in {plural(len(places), 'place')}; a dry run: --apply erases them")
        return exits.DONE
    if arguments.also_at_service and (why := _delete_at_service(arguments, settings, person)):
        return print_error(f"nobody is forgotten yet: {why}", exits.INCOMPLETE)
    # whatever is killed resumes; an exception would come out of a library's callback as another
    with interrupts.end_at_once():
        places = forget_people(settings, person, derived(settings))
    for each in places:
        print(f"{each.place}: {each.rows:,} {each.outcome}")
    if is_over(places):
        print("forgotten; sync.erasures has the receipt")
        return exits.DONE
    is_left = unfinished(settings.home) is not None
    again = "`marketing-sync forget --apply` tries again" if is_left else "the places are listed above"
    return print_error(f"not everything could be erased: {again}", exits.INCOMPLETE)


def _delete_at_service(arguments: Arguments, settings: Settings, person: Person) -> str:
    """Why not everybody is known to be gone from the service, or nothing."""
    known = {account for account, _ in person.contacts} or {account_of(settings, arguments.account)}
    with connections(settings) as accounts:
        for account in sorted(known):
            ids = {contact_id for name, contact_id in person.contacts if name == account}
            connection = chosen(settings, accounts, account)
            with (
                sender_lock(settings.home, account),  # what is being sent now may add them again
                client_by_hand(connection, Recognition(settings, connection)) as (client, _),
            ):
                client.fetch(operations.ME.bind())
                deletion = Deletion(client, ids, person.addresses, read_list_ids(settings, account, ids))
                if why := _delete_listed(arguments, account, deletion):
                    return why
    return ""


def _delete_listed(arguments: Arguments, account: str, deletion: Deletion) -> str:
    try:
        listed = deletion.find_listed()
    except Refused as refusal:
        return f"account {account}: {refusal}; run the same command again"
    if not listed:
        print(f"{account}: the service lists none of them")
        return ""
    count = plural(len(listed), "contact")
    question = f"Delete {count} of account {account} at the service? This cannot be undone. [y/N] "
    if not arguments.yes and not says_yes(question):
        return "nothing was deleted at the service, since nobody agreed"
    if why := deletion.delete(listed):
        return f"account {account}: {count} may still be at the service ({why}); run the same command again"
    print(f"{account}: {count} deleted, and listed by the service no more")
    return ""


def _meant(arguments: Arguments, settings: Settings) -> Person:
    """Who is to be forgotten; nobody further where an interrupted erasure is to be finished."""
    addresses = list(_addresses(arguments.address, vars(arguments)["from"]))
    contacts = [] if arguments.contact_id is None else [arguments.contact_id]
    if addresses or contacts:
        account = account_of(settings, arguments.account) if arguments.account or contacts else None
        return people(settings, account, addresses, contacts)
    if unfinished(settings.home) is None:
        raise click.UsageError("say who: an e-mail address, --contact-id or --from FILE")
    return Person(())


def _addresses(typed: str | None, path: Path | None) -> Iterator[str]:
    """Raises SettingsError, or click.UsageError."""
    try:
        text = path.read_text(encoding="utf-8-sig") if path else ""
    except (OSError, UnicodeDecodeError) as problem:
        raise SettingsError(
            f"{path} cannot be read ({problem}): it takes text with one address per line"
        ) from None
    for line in filter(None, [typed, *map(str.strip, text.splitlines())]):
        check_address(line)
        yield line
