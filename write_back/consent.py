"""Nobody is subscribed again by the way: the one rule of which status may be sent about whom.

Whatever could subscribe somebody passes `decide_status`, with the statuses that the service showed
just before (`kinds`, `call`), or that are known when a push is planned. A status counts on
whichever list a person has it, under the same address or the same contact id. Pure: who is looked
up, and when, is not decided here."""

from collections.abc import Collection
from itertools import chain
from typing import NamedTuple

ACTIVE = "active"
UNCONFIRMED = "unconfirmed"
#: Statuses that count, too, of whom somebody has taken off a list since.
REFUSING = frozenset({"unsubscribed", "bounced"})
#: Why somebody keeps a status, or is not put on a list.
LEFT = "unsubscribed, bounced or unconfirmed on some list: left so without --resubscribe"

#: How far mails reach whoever has the status. Any other one, known or not, keeps them away.
_REACH = {ACTIVE: 2, UNCONFIRMED: 1}


def may_subscribe(status: str | None) -> bool:
    """Whether somebody could be subscribed by being given the status."""
    return status in _REACH


def is_raised(now: str | None, requested: str | None) -> bool:
    """Whether the status makes mails reach somebody whom they do not reach now. None, of `now`: a
    status that nobody knows."""
    return _REACH.get(requested or "", 0) > _REACH.get(now or "", 0)


class Decision(NamedTuple):
    """`status`: what is to be sent, None: none. `is_left`: it was requested, and would have
    subscribed somebody again."""

    status: str | None
    is_left: bool = False


def decide_status(
    present: Collection[str | None],
    requested: str | None,
    *,
    elsewhere: Collection[str | None] = (),
    may_raise: bool = False,
) -> Decision:
    """`present`: the statuses of those with the address on the list, none when a request would add
    somebody; `elsewhere`: those that the person has on other lists; `requested`: None where the
    status is to stay as it is; `may_raise`: a person has chosen that switch for this one
    sending."""
    status = requested if present else requested or ACTIVE
    if status is None or set(present) == {status}:
        return Decision(None)
    is_left = not may_raise and any(is_raised(now, status) for now in chain(present, elsewhere))
    return Decision(None if is_left else status, is_left)
