"""The one rule that decides which status may be sent, so that nobody is subscribed again as a side
effect.

Every request that could subscribe a person passes `decide_status`, with the statuses that the
service showed just before (`kinds`, `call`) or that were known when a push was planned. A status
counts on any list of the person, under the same address or the same contact id. Not here: when a
person is looked up."""

from collections.abc import Collection
from itertools import chain
from typing import NamedTuple

ACTIVE = "active"
UNCONFIRMED = "unconfirmed"
#: Statuses that still count after a person was taken off a list.
REFUSING = frozenset({"unsubscribed", "bounced"})
#: Why a person keeps a status, or is not put on a list.
LEFT = "unsubscribed, bounced or unconfirmed on some list: left so without --resubscribe"

#: How many mails reach a person with the status. No mails reach a person with any other one.
_REACH = {ACTIVE: 2, UNCONFIRMED: 1}


def may_subscribe(status: str | None) -> bool:
    """Whether the status could subscribe a person."""
    return status in _REACH


def is_raised(now: str | None, requested: str | None) -> bool:
    """Whether mails would reach a person that they do not reach now. `now` None: an unknown
    status."""
    return _REACH.get(requested or "", 0) > _REACH.get(now or "", 0)


class Decision(NamedTuple):
    """`status`: what is sent; None: no status. `is_left`: a status was requested that would have
    subscribed the person again."""

    status: str | None
    is_left: bool = False


def decide_status(
    present: Collection[str | None],
    requested: str | None,
    *,
    elsewhere: Collection[str | None] = (),
    may_raise: bool = False,
) -> Decision:
    """`present`: the statuses of the contacts with the address on the list; none when a request
    would add the person; `elsewhere`: the person's statuses on other lists; `requested`: None if
    the status stays; `may_raise`: a user has given `--resubscribe` for this push."""
    status = requested if present else requested or ACTIVE
    if status is None or set(present) == {status}:
        return Decision(None)
    is_left = not may_raise and any(is_raised(now, status) for now in chain(present, elsewhere))
    return Decision(None if is_left else status, is_left)
