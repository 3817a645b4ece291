"""Refusals that mean "there is nothing": a service may answer so for every address without coupons.

Belongs here: when a refusal is taken for that, and the words. It never deletes anything: absence is proven by a whole answer alone. What
was learnt in earlier runs is read off `sync.requests` (`Known.refused_as_nothing`), so that a rebuild keeps it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from marketing_api.errors import Refused
from marketing_api.fan_out import Failure

#: Different addresses that have to be refused alike, and the part of all refusals that they have to be.
FEWEST, SHARE = 20, 0.9
#: The part of them that may have coupons: more says that the refusal means something else.
CONTRADICTING = 0.01


def refused_as_nothing(failures: Sequence[Failure], asked: int, with_coupons: Collection[str]) -> int | None:
    """The errorCode by which nearly all of a run's refusals say "nothing"; None when nothing says that they do.

    `asked`: questions that were answered or refused.
    """
    refused = {_address(failure): failure.error.code for failure in failures if isinstance(failure.error, Refused)}
    if not refused or len(failures) >= asked:
        return None
    code, count = Counter(refused.values()).most_common(1)[0]
    contradicting = sum(refused[address] == code for address in refused.keys() & set(with_coupons))
    is_alike = code is not None and count >= FEWEST and count >= SHARE * len(refused)
    return code if is_alike and contradicting <= CONTRADICTING * count else None


def is_nothing(failure: Failure, codes: Collection[int]) -> bool:
    return isinstance(failure.error, Refused) and failure.error.code in codes


def words(failures: Sequence[Failure], code: int, asked: int) -> str:
    """Said once, in the run that learns it."""
    count = sum(is_nothing(failure, {code}) for failure in failures)
    return (
        f"the service refuses {count:,} of {asked:,} addresses with errorCode {code}: taken as addresses without coupons, asked again at "
        "their turn; coupons that are stored stay"
    )


def _address(failure: Failure) -> str:
    return failure.call.params.get("email", failure.call.key).strip().lower()
