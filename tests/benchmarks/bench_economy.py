"""What the planner buys: sixty nights of a simulated account under four policies.

    python -m tests.benchmarks.bench_economy [--contacts 10000 100000 1000000] [--nights 60]

Timelines only, no HTTP. "In time": of the timelines that changed in the day before a night, the share that is
in the warehouse the next morning; "of stale": the same of all that differ from the warehouse; "left stale":
the share of contacts that are not in it as they are then, and for how long they have not been. Goals: with a
budget of a tenth of everybody at least 90 % of the oracle's share and three times that of oldest-first. Exit
code 1 on a miss."""

import argparse
import os
import sys

import numpy as np

from tests.simulators.simulated_account import SimulatedAccount, segment_mailings
from tests.simulators.simulated_nights import (
    Night,
    Policy,
    Run,
    everybody,
    oldest_first,
    oracle,
    planner,
)

_POLICIES: tuple[Policy, ...] = (everybody, oldest_first, planner, oracle)


def in_time(nights: list[Night]) -> float:
    """Of what changed in the day before, over all nights."""
    return sum(night.in_time for night in nights) / max(sum(night.changed for night in nights), 1)


def of_stale(nights: list[Night]) -> float:
    """Of all that was stale before each night."""
    return sum(night.found for night in nights) / max(sum(night.stale for night in nights), 1)


def compare(title: str, account: SimulatedAccount, nights: int, budget: int) -> dict[str, list[Night]]:
    """Print a line per policy; the nights by policy."""
    print(
        f"{title}: {len(account):,} contacts, {nights} nights, {budget:,} requests a night, load "
        f"{os.getloadavg()[0]:.1f}"
    )
    print("  policy        in time  of stale  left stale    for  requests  found by one  oldest  planning")
    found = {}
    for policy in _POLICIES:
        ran = found[policy.__name__] = Run(account, policy, budget).nights(nights)
        requests = sum(night.requests for night in ran)
        left = np.mean([night.stale - night.found for night in ran]) / len(account)
        print(
            f"  {policy.__name__:13} {in_time(ran):7.3f}  {of_stale(ran):8.3f}"
            f"  {left:10.3f}  {np.mean([night.stale_days for night in ran]):3.1f} d"
            f"  {requests / len(ran):8,.0f}  {sum(night.found for night in ran) / requests:12.2f}"
            f"  {max(night.oldest_days for night in ran):4.0f} d  "
            f"{np.mean([night.seconds for night in ran]):6.2f} s"
        )
    return found


def judge(what: str, value: float, goal: float) -> bool:
    """Print a figure with its goal; whether it is met."""
    is_met = value >= goal
    print(f"  {what}: {value:.3f} (goal >= {goal:g}){'' if is_met else '  MISSED'}")
    return is_met


def lists_mailed(contacts: int, nights: int) -> bool:
    """The main claim: campaigns list by list, uneven activity, our own pushes."""
    found = compare("campaigns list by list", segment_mailings(contacts, nights), nights, contacts // 10)
    ours, best, oldest = (in_time(found[name]) for name in ("planner", "oracle", "oldest_first"))
    return judge("in time, of the oracle's", ours / best, 0.9) & judge(
        "in time, times oldest-first", ours / oldest, 3
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--contacts", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--nights", type=int, default=60)
    chosen = parser.parse_args()
    missed = [size for size in chosen.contacts if not lists_mailed(size, chosen.nights)]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
