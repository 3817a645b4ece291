"""Write all that is known about one person as a page and as JSON.

Nothing is requested of the service."""

import json
import os
from pathlib import Path

import click

from home import exits
from home.folder import reading
from home.formatting import plural
from home.options import Option
from home.settings import Settings, SettingsError, account_of
from home.values import whole
from marketing_api.clock import utc_now
from pipelines.commands import Arguments, command
from pipelines.report.render import environment, readable
from warehouse.disk import create, make_folder
from warehouse.person import Person, Section, find_person, known_of

_FILES = ("person.html", "person.json")


#: Who is meant, wherever somebody is looked for.
ADDRESS = Option("address", "the person's e-mail address", str, metavar="[ADDRESS]", is_positional=True)
CONTACT_ID = Option("contact_id", "their contact id, when no address is known", int, whole, metavar="ID")
ACCOUNT = Option("account", "look in this account only", str, metavar="ACCOUNT")


@command(
    ADDRESS,
    CONTACT_ID,
    ACCOUNT,
    Option("to", "folder for person.html and person.json", str, Path, metavar="DIR"),
    needs_keys=False,
)
def person(arguments: Arguments, settings: Settings) -> int:
    """Rows of every table with where they come from and when, also what was computed and what was sent.
    Where other people's rows name the person, only the text around the address is quoted."""
    _check(arguments)
    folder, account = arguments.to, arguments.account and account_of(settings, arguments.account)
    with reading(settings) as connection:
        found = find_person(connection, account, arguments.address, arguments.contact_id)
        sections = list(known_of(connection, found)) if found.addresses or found.contacts else []
    if not sections:
        print("nothing is known of this person")
        return exits.DONE
    made_at = utc_now()
    page = environment().get_template("person.html").render(person=found, sections=sections, made_at=made_at)
    document = {
        "made_at": made_at,
        "addresses": found.addresses,
        "contacts": found.contacts,
        "tables": [vars(each) for each in sections],
    }
    make_folder(folder)
    texts = (readable(page), json.dumps(document, default=str, indent=2, ensure_ascii=False))
    for name, text in zip(_FILES, texts, strict=True):
        with os.fdopen(create(folder / name), "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    print(_in_words(found, sections))
    print(f"{folder / _FILES[0]}: open it in a browser; {_FILES[1]} beside it has the same for programs")
    return exits.DONE


def _check(arguments: Arguments) -> None:
    if (arguments.address is None) == (arguments.contact_id is None):
        raise click.UsageError("say who: either an e-mail address or --contact-id")
    if arguments.address is not None:
        check_address(arguments.address)
    if arguments.to is None:
        raise click.UsageError("name the folder for the page: --to DIR")
    for path in (arguments.to / name for name in _FILES):
        if path.exists():
            raise SettingsError(f"{path} is there already: name another folder")


def check_address(text: str) -> None:
    """Raises click.UsageError."""
    if not all(text.strip().partition("@")):
        raise click.UsageError(f"{text!r} is not an e-mail address; it looks like ann@example.com")


def _in_words(found: Person, sections: list[Section]) -> str:
    about = [len(each.rows) for each in sections if each.is_about]
    quotes = sum(len(each.rows) for each in sections if not each.is_about)
    who = f"{plural(len(found.contacts), 'contact')}, {plural(len(found.addresses), 'address', 'addresses')}"
    return (
        f"{who}, {plural(sum(about), 'row')} in {plural(len(about), 'table')}; named in "
        f"{plural(quotes, 'other text')}"
    )
