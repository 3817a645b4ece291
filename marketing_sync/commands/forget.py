"""Erase people from the home (GDPR); a dry run without --apply.

Nothing is requested of the service."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from home import exits, interrupts
from home.door import archive_of
from home.folder import in_use, prepare_home
from home.formatting import count_of
from home.identity import account_in_home
from home.options import Option
from home.settings import Settings, SettingsError
from marketing_sync.commands import declare_command, print_error
from marketing_sync.commands.person import ADDRESS, CONTACT_ID, check_address
from pipelines.publishing import after_erasure
from upkeep.erasing import count_places, find_people, forget_people, read_work_list
from warehouse.archive.suppression import lift_person
from warehouse.forgetting import Person

_NOT_REACHED = (
    "not searched; delete people there yourself: the service, backups in other folders, files that "
    "you exported or pushed, your SQL, activations.toml, and outputs of notebooks"
)
_ALSO_ERASED = (
    "--apply also deletes all logs and runs in Dagster, and all stored responses: a checkpoint of "
    "the tables replaces them"
)
_UNKNOWN = (
    "nobody in the home has this address or id: check the spelling. --apply nevertheless deletes "
    "stored responses and logs, and later syncs leave the person out"
)


@declare_command(
    ADDRESS,
    CONTACT_ID,
    Option("from", "a file with one address per line", str, Path, metavar="FILE"),
    Option("account", "the account of the contact id", str, metavar="ACCOUNT"),
    Option("apply", "erase them (default: a dry run, which shows what would be erased)"),
    Option("lift", "read and push these people again; erased data does not come back"),
    needs_keys=False,
)
def forget(
    settings: Settings,
    address: str | None,
    contact_id: int | None,
    from_: Path | None,
    account: str | None,
    apply: bool,
    lift: bool,
) -> int:
    """Deletes their rows, also from earlier figures. A checkpoint of the tables replaces all stored
    responses. Keyed hashes prevent later syncs from bringing people back. An interrupted erasure
    is completed first. The exit code is 1 if data could not be erased everywhere."""
    prepare_home(settings.home, settings.lock_seconds)
    if lift and apply:
        raise click.UsageError("--lift and --apply exclude each other; use one of them")
    addresses = list(_read_addresses(address, from_))
    if account and contact_id is None:
        raise click.UsageError(
            "--account needs --contact-id; addresses are erased in all accounts, without --account"
        )
    people = _find_people(settings, account, addresses, contact_id, resumes=not lift)
    if lift:
        return _lift_people(settings, people)
    if not apply:
        return _show_places(settings, people)
    # A killed erasure is resumed. An exception would be lost in a library's callback.
    with interrupts.end_at_once():
        places = forget_people(settings, people, after_erasure(settings))
    for place in places:
        print(f"{place.place}: {place.rows:,} {place.outcome}")
    print(_NOT_REACHED)
    if all(place.is_reached for place in places):
        print("forgotten; the next sync or publish adds the receipt to sync.erasures")
        return exits.DONE
    return print_error(
        "some places were not erased; run `marketing-sync forget --apply` to try again",
        exits.INCOMPLETE,
    )


def _show_places(settings: Settings, people: Sequence[Person]) -> int:
    places = count_places(settings, people)
    for place in places:
        print(f"{place.place}: {place.rows:,}")
    rows = count_of(sum(place.rows for place in places), "row")
    print(f"{rows} in {count_of(len(places), 'place')}; a dry run: --apply erases them")
    print(_ALSO_ERASED)
    strangers = sum(not person.contacts for person in people)
    if not places:
        print(_UNKNOWN)
    elif strangers:
        print(
            f"the home has no contact for {strangers:,} of "
            f"{count_of(len(people), 'person', 'people')}: check the spelling"
        )
    return exits.DONE


def _lift_people(settings: Settings, people: Sequence[Person]) -> int:
    with in_use(settings.home):
        lifted = sum(lift_person(archive_of(settings.home), person) for person in people)
    if not lifted:
        return print_error(
            "nobody with this address or id was forgotten; nothing was changed", exits.INCOMPLETE
        )
    print(f"{count_of(lifted, 'person', 'people')} will be read again; the next sync requests them")
    return exits.DONE


def _find_people(
    settings: Settings,
    account: str | None,
    addresses: Sequence[str],
    contact_id: int | None,
    *,
    resumes: bool,
) -> list[Person]:
    """The people with these addresses or the contact id. Without both, nobody if the command
    `resumes` an interrupted erasure. Raises click.UsageError if there is none."""
    contact = None if contact_id is None else (account_in_home(settings, account), contact_id)
    if addresses or contact:
        return find_people(settings, addresses, contact)
    if resumes and read_work_list(settings.home) is not None:
        return []
    raise click.UsageError("no person is given; add an e-mail address, --contact-id or --from FILE")


def _read_addresses(typed: str | None, path: Path | None) -> Iterator[str]:
    """Raises SettingsError, or click.UsageError."""
    try:
        text = path.read_text(encoding="utf-8-sig") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path} cannot be read ({error}): give a text file with one address per line"
        ) from None
    for line in filter(None, [typed, *map(str.strip, text.splitlines())]):
        check_address(line)
        yield line
