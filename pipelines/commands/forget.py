"""`marketing-sync forget`: people who asked for it are taken out of everything. Without --apply it is a dry
run; nothing is requested."""

import sys
from pathlib import Path

import click

from home import exits, interrupts
from home.folder import prepare_home
from home.formatting import plural
from home.options import Option
from home.settings import Settings, SettingsError
from pipelines.commands import Arguments, command
from pipelines.commands.person import ACCOUNT, ADDRESS, CONTACT_ID, check_address
from pipelines.publishing import derived
from upkeep.erasing import delete_at_service, dry_run, is_over, people, unfinished
from upkeep.erasing import forget as forget_people
from warehouse.person import Person
from write_back.order import account_of
from write_back.push_report import result_lines


@command(
    ADDRESS,
    CONTACT_ID,
    Option("from", "a file with an address a line", str, Path, metavar="FILE"),
    ACCOUNT,
    Option("apply", "take them out (default: a dry run, which shows what would be)"),
    Option("also_at_service", "with --apply: delete their contacts at the service first, by a push"),
)
def forget(arguments: Arguments, settings: Settings) -> int:
    """Rows that totals hang on stay, with pseudonyms; keyed fingerprints keep the person from coming back.
    What an interrupted erasure left is done first. Exit code 1 when something could not be taken out."""
    prepare_home(settings.home, settings.lock_seconds)
    if arguments.also_at_service and not arguments.apply:
        raise click.UsageError("--also-at-service deletes at the service: give it with --apply")
    addresses, contacts = _wanted(arguments)
    left = unfinished(settings.home)
    if addresses or contacts:
        account = account_of(settings, arguments.account) if arguments.account or contacts else None
        person = people(settings, account, addresses, contacts)
    elif left is not None:
        person = Person(())
    else:
        raise click.UsageError("say who: an e-mail address, --contact-id or --from FILE")
    if not arguments.apply:
        places = dry_run(settings, person)
        for each in places:
            print(f"{each.place}: {each.rows:,}")
        print(
            f"{plural(sum(each.rows for each in places), 'row')} in {plural(len(places), 'place')}; a dry "
            "run: --apply takes them out"
        )
        return exits.DONE
    results = delete_at_service(settings, person) if arguments.also_at_service else []
    for result in results:
        print("\n".join(result_lines(result)))
    if any(result.shortfall for result in results):
        print(
            "not all contacts are deleted at the service, so nobody is forgotten yet: run this again",
            file=sys.stderr,
        )
        return exits.INCOMPLETE
    # whatever is killed goes on; an exception would come out of a library's callback as another
    with interrupts.end_at_once():
        places = forget_people(settings, person, derived(settings))
    for each in places:
        print(f"{each.place}: {each.rows:,} {each.outcome}")
    if not is_over(places):
        again = (
            "`marketing-sync forget --apply` tries again"
            if unfinished(settings.home)
            else "what they are in is listed above"
        )
        print(f"not all could be taken out: {again}", file=sys.stderr)
        return exits.INCOMPLETE
    print("forgotten; sync.erasures has the receipt")
    return exits.DONE


def _wanted(arguments: Arguments) -> tuple[list[str], list[int]]:
    lines = [arguments.address] if arguments.address else []
    if (path := vars(arguments)["from"]) is not None:
        try:
            lines += filter(None, map(str.strip, path.read_text(encoding="utf-8-sig").splitlines()))
        except (OSError, UnicodeDecodeError) as problem:
            raise SettingsError(
                f"{path} cannot be read ({problem}): it takes text with an address a line"
            ) from None
    for line in lines:
        check_address(line)
    return lines, [] if arguments.contact_id is None else [arguments.contact_id]
