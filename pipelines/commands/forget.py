"""Erase people from everything that is stored about them; a dry run without --apply.

Nothing is requested of the service, except with --also-at-service."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from home import exits, interrupts
from home.accounts import choose_account, open_connections
from home.door import archive_of
from home.folder import in_use, prepare_home
from home.formatting import count_of
from home.identity import Recognition
from home.options import Option
from home.settings import Settings, SettingsError, account_of
from marketing_api.errors import Refused
from marketing_api.operations import account as operations
from pipelines.commands import Arguments, declare_command, print_error, says_yes
from pipelines.commands.call import client_by_hand
from pipelines.commands.person import ACCOUNT, ADDRESS, CONTACT_ID, check_address
from pipelines.publishing import after_erasure
from upkeep.erasing import count_places, find_people, forget_people, read_work_list
from warehouse.archive.suppression import lift_person
from warehouse.forgetting import Person
from write_back.deletion import Deletion, read_list_ids
from write_back.outbox.store import sender_lock

_NOT_REACHED = (
    "not reached, delete them there yourself: backups in other folders, files that you exported or pushed, "
    "and outputs of notebooks"
)


@declare_command(
    ADDRESS,
    CONTACT_ID,
    Option("from", "a file with one address per line", str, Path, metavar="FILE"),
    ACCOUNT,
    Option("apply", "erase them (default: a dry run, which shows what would be erased)"),
    Option("lift", "let them be read and sent again from now on; what was erased does not come back"),
    Option("also_at_service", "with --apply: delete their contacts at the service first; asks before"),
    Option("yes", "with --also-at-service: do not ask"),
    needs_keys="also_at_service",
)
def forget(arguments: Arguments, settings: Settings) -> int:
    """Rows about them are deleted, and keyed fingerprints keep them from coming back. Figures of the past
    lose them. Stored responses are dropped: a checkpoint of the tables replaces them. An interrupted erasure
    is finished first. Exit code 1 when a place was not reached."""
    prepare_home(settings.home, settings.lock_seconds)
    if arguments.also_at_service and not arguments.apply:
        raise click.UsageError("--also-at-service deletes at the service: give it with --apply")
    if arguments.lift and arguments.apply:
        raise click.UsageError("give either --lift or --apply")
    people = _find_people(arguments, settings)
    if arguments.lift:
        return _lift_people(settings, people)
    if not arguments.apply:
        return _show_places(settings, people)
    if arguments.also_at_service and (why := _delete_at_service(arguments, settings, people)):
        return print_error(f"nobody is forgotten yet: {why}", exits.INCOMPLETE)
    # whatever is killed resumes; an exception would come out of a library's callback as another
    with interrupts.end_at_once():
        places = forget_people(settings, people, after_erasure(settings))
    for each in places:
        print(f"{each.place}: {each.rows:,} {each.outcome}")
    print(_NOT_REACHED)
    if all(each.is_reached for each in places):
        print("forgotten; sync.erasures has the receipt")
        return exits.DONE
    again = "`marketing-sync forget --apply` tries again"
    return print_error(f"not everything could be erased: {again}", exits.INCOMPLETE)


def _show_places(settings: Settings, people: Sequence[Person]) -> int:
    places = count_places(settings, people)
    for each in places:
        print(f"{each.place}: {each.rows:,}")
    found = count_of(sum(each.rows for each in places), "row")
    print(f"{found} in {count_of(len(places), 'place')}; a dry run: --apply erases them")
    return exits.DONE


def _lift_people(settings: Settings, people: Sequence[Person]) -> int:
    with in_use(settings.home):
        lifted = sum(lift_person(archive_of(settings.home), person) for person in people)
    if not lifted:
        return print_error("nobody with this address or id was forgotten", exits.INCOMPLETE)
    print(f"{count_of(lifted, 'person', 'people')} will be read again; the next sync requests them")
    return exits.DONE


def _delete_at_service(arguments: Arguments, settings: Settings, people: Sequence[Person]) -> str:
    """Why not everybody is known to be gone from the service, or nothing."""
    contacts = [contact for person in people for contact in person.contacts]
    addresses = [address for person in people for address in person.addresses]
    known = {account for account, _ in contacts} or {account_of(settings, arguments.account)}
    with open_connections(settings) as accounts:
        for account in sorted(known):
            ids = {contact_id for name, contact_id in contacts if name == account}
            connection = choose_account(settings, accounts, account)
            with (
                sender_lock(settings.home, account),  # what is being sent now may add them again
                client_by_hand(connection, Recognition(settings, connection)) as (client, _),
            ):
                client.fetch(operations.ME.bind())
                deletion = Deletion(client, ids, addresses, read_list_ids(settings, account, ids))
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
    count = count_of(len(listed), "contact")
    question = f"Delete {count} of account {account} at the service? This cannot be undone. [y/N] "
    if not arguments.yes and not says_yes(question):
        return "nothing was deleted at the service, since nobody agreed"
    if why := deletion.delete_contacts(listed):
        return f"account {account}: {count} may still be at the service ({why}); run the same command again"
    print(f"{account}: {count} deleted, and listed by the service no more")
    return ""


def _find_people(arguments: Arguments, settings: Settings) -> list[Person]:
    """Who is to be forgotten; nobody further where an interrupted erasure is to be finished."""
    addresses = list(_read_addresses(arguments.address, vars(arguments)["from"]))
    contacts = [] if arguments.contact_id is None else [arguments.contact_id]
    if addresses or contacts:
        account = account_of(settings, arguments.account) if arguments.account or contacts else None
        return find_people(settings, account, addresses, contacts)
    if arguments.lift or read_work_list(settings.home) is None:
        raise click.UsageError("say who: an e-mail address, --contact-id or --from FILE")
    return []


def _read_addresses(typed: str | None, path: Path | None) -> Iterator[str]:
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
