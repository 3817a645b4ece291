"""Who is asked, and in which order, where every contact costs a request of its own.

The only place that decides it: a planner that asks fewer people replaces these two functions and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from assets.known import Known


def timelines(known: Known) -> Sequence[int]:
    """Contact ids, the newest and active ones first, so that a run cut short has what is wanted most."""
    return known.contact_ids()


def coupons(known: Known) -> Sequence[str]:
    """Distinct e-mail addresses in the same order."""
    return known.addresses()
