"""Whose turn it is: the fewest askings tonight that keep every deadline from now on, if every coming night does as much.

Pure functions of columns. Not here: which of them are asked (`order`).
"""

from __future__ import annotations

import numpy as np

from assets.planning.candidates import DAY_S, Flags, Floats, Ints

#: A night is the unit: what is asked within half a day of its deadline is in time, wherever in the night it stands.
GRACE_S = DAY_S / 2


def nights_left(deadline: Floats, now: float) -> Ints:
    """How many nights each may still be left out: 0 is due tonight, as is what is late already."""
    found = np.floor((deadline - now + GRACE_S) / DAY_S)
    return np.maximum(found, 0).astype(np.int64)


def turn_size(nights: Ints, asked_tonight: int = 0) -> int:
    """The least constant rate that asks everything in time, for tonight: the maximum over h of (due within h nights) / (h + 1).

    That is the processor demand criterion of earliest-deadline-first scheduling (Baruah, Rosier and Howell 1990) with one question as
    the unit of work. So the guarantee costs about the same every night, although a first sync asks everybody at once. Rounded down,
    or a single question would be asked every night; what is due tonight is always among them. `asked_tonight`: done already by an
    earlier run of this night, in whose place nothing need be asked.
    """
    if not len(nights):
        return 0
    due = np.cumsum(np.bincount(nights)) + asked_tonight
    slots = np.arange(1, len(due) + 1)
    return max(0, int(np.max(due // slots)) - asked_tonight, int((nights == 0).sum()))


def is_tonight(asked: Floats, now: float) -> Flags:
    """Asked by an earlier run of the same night."""
    found: Flags = asked > now - GRACE_S
    return found
