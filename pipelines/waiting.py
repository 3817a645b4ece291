"""Says who is waited for when another program has the warehouse open. Not here: the waiting (`warehouse.connection`)."""

from __future__ import annotations

import os
import sys
import threading

from warehouse.errors import Holder

_told: set[Holder] = set()
_lock = threading.Lock()


def tell(holder: Holder) -> None:
    """One line on standard error for each program, however many threads wait for it; none when it is this one."""
    with _lock:
        if holder.pid == os.getpid() or holder in _told:
            return
        _told.add(holder)
    print(f"marketing-sync: waiting for {holder}, which has the warehouse open", file=sys.stderr, flush=True)
