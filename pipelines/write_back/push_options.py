"""What can be typed of each kind of push: its help and options, for the command and the Dagster job.

Apart from what else is known about a kind (`kinds`), so that `--help` imports nothing of what a push needs.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pipelines.options import ACCOUNT, PUSH, SOURCE, Option
from pipelines.settings import whole


class PushOptions(NamedTuple):
    """`help`: what it does, a colon, its columns."""

    help: str
    options: tuple[Option, ...]


def _push(help: str, *own: Option) -> PushOptions:
    return PushOptions(help, (*SOURCE, *PUSH, *own, ACCOUNT))


#: Kind → what can be typed, in the order in which they are listed.
PUSH_OPTIONS: Mapping[str, PushOptions] = {
    "contacts": _push(
        "add contacts to lists, or change their status and custom fields: columns email, list_id (or list), status, ip_address, and any"
        " custom field by its label or id",
        Option("clear_empty", "an empty cell empties its custom field (default: leaves it)"),
    ),
    "tags": _push("tag contacts: columns email or contact_id, tag (several with commas), action (add or remove)"),
    "activities": _push("write into contacts' timelines: columns email or contact_id, description, datetime"),
    "moves": _push("move contacts from one list to another: columns email or contact_id, from, to"),
    "deletions": _push(
        "delete contacts from lists: columns email or contact_id, list_id; asks for the number of requests",
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
