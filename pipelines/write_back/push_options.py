"""What can be typed of each kind of push: its help and options, for the command and the Dagster job.

Apart from what else is known about a kind (`kinds`), so that `--help` imports nothing of what a push needs.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pipelines.options import ACCOUNT, PUSH, SOURCE, Option
from pipelines.settings import whole


class PushOptions(NamedTuple):
    """`help`: what it does, a colon, its columns. `example`: the query that the launchpad begins with, about nobody until it is changed.
    Its comment is SQL's, as Dagster's defaults have none of YAML; without `: ` and ` #` it is shown without quotes."""

    help: str
    example: str
    options: tuple[Option, ...]


def _push(help: str, example: str, *own: Option) -> PushOptions:
    return PushOptions(help, example, (*SOURCE, *PUSH, *own, ACCOUNT))


#: Kind → what can be typed, in the order in which they are listed.
PUSH_OPTIONS: Mapping[str, PushOptions] = {
    "contacts": _push(
        "add contacts to lists, or change their status and custom fields: columns email, list_id (or list), status, ip_address, and any"
        " custom field by its label or id",
        "/* change the address and the list */ select 'ada@example.com' as email, list_id, 'active' as status"
        " from source.lists where name = 'Newsletter'",
        Option("clear_empty", "an empty cell empties its custom field (default: leaves it)"),
    ),
    "tags": _push(
        "tag contacts: columns email or contact_id, tag (several with commas), action (add or remove)",
        "/* change the address and the tag */ select distinct email, 'vip' as tag from source.contacts where email = 'ada@example.com'",
    ),
    "activities": _push(
        "write into contacts' timelines: columns email or contact_id, description, datetime",
        "/* change the address and the text */ select distinct email, 'In the shop' as description, '2026-01-31 10:00' as datetime"
        " from source.contacts where email = 'ada@example.com'",
    ),
    "moves": _push(
        "move contacts from one list to another: columns email or contact_id, from, to",
        '/* change the address and the lists */ select email, name as "from", \'Events\' as "to"'
        " from source.contacts join source.lists using (account, list_id) where email = 'ada@example.com' and name = 'Newsletter'",
    ),
    "deletions": _push(
        "delete contacts from lists: columns email or contact_id, list_id; asks for the number of requests",
        "/* change the address and the list */ select email, list_id"
        " from source.contacts join source.lists using (account, list_id) where email = 'ada@example.com' and name = 'Newsletter'",
        Option("yes", "do not ask for the number of rows", in_ui="`confirmed_rows`, since nobody can be asked"),
        Option(
            "confirmed_rows",
            "how many rows you agree to delete: the number that the dry run shows",
            holds=int,
            read=whole,
            default=0,
            in_command="--yes, or the number typed when it is asked for",
        ),
    ),
}
