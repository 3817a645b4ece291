"""Nobody is subscribed again by the way: the one rule of which status may be sent about whom.

Whatever could subscribe somebody passes `decide`, with the statuses that the service showed just before
(`kinds`), or that are known when a push is planned. Pure: who is looked up, and when, is not decided here.
"""

from collections.abc import Collection
from typing import NamedTuple

ACTIVE, UNCONFIRMED = "active", "unconfirmed"
#: Statuses that count, too, of whom somebody has taken off a list since.
REFUSING = frozenset({"unsubscribed", "bounced"})
#: Why somebody keeps a status, or is not put on a list.
LEFT = "unsubscribed, bounced or unconfirmed: left so without --resubscribe"
LEFT_ON_TARGET = (
    "the address is on the list that it would be moved to, and not active there: left where it is"
)

#: How far mails reach whoever has the status. Any other one, known or not, keeps them away.
_REACH = {ACTIVE: 2, UNCONFIRMED: 1}


def subscribes(status: str | None) -> bool:
    """Whether somebody could be subscribed by being given the status."""
    return status in _REACH


def is_raised(now: str | None, wanted: str | None) -> bool:
    """Whether the status makes mails reach somebody whom they do not reach now. None, of `now`: a status that
    nobody knows."""
    return _REACH.get(wanted or "", 0) > _REACH.get(now or "", 0)


class Decision(NamedTuple):
    """`status`: what is to be sent, None: none. `is_left`: it was wanted, and would have subscribed somebody
    again."""

    status: str | None
    is_left: bool = False


def decide(present: Collection[str | None], wanted: str | None, *, may_raise: bool = False) -> Decision:
    """`present`: the statuses of those with the address on the list, none when there is nobody; `wanted`:
    None where the status is to stay as it is; `may_raise`: a person has chosen that switch for this one
    sending."""
    if not present:
        return Decision(wanted or ACTIVE)
    if wanted is None or set(present) == {wanted}:
        return Decision(None)
    is_left = not may_raise and any(is_raised(now, wanted) for now in present)
    return Decision(None if is_left else wanted, is_left)
