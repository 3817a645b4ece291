"""What a fleet of accounts needs: pods, hours, requests and storage, from figures that were measured on one
machine.

    python -m tests.benchmarks.bench_fleet [--shards 4 --accounts 20 --contacts 3000 --pods 4 [--took SECONDS
    --requests N]]

A model, no measurement: without numbers the table of docs/deployment.md (a test compares it), with them what
a first night of such a fleet takes; `--took` and `--requests` are a measured one, and the exit code is 1 when
it differs by more than a quarter."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass

#: Requests of an account beside those for each contact, and those: 1,345 for 600 contacts (README); 119,853
#: for 20 x 3,000 are 2 % less.
BASE, PER_CONTACT = 145, 2
#: A second with 20 accounts in a run: 300 is the service's limit, 96.2 % were used
#: (docs/decisions/archive-and-loading.md).
RATE_OF_AN_ACCOUNT, SHARE_USED = 15, 0.962
#: Of the requests of a first night, once the maximum age of 7 days is all that asks
#: (docs/decisions/crawl-plan.md).
LATER_NIGHT = 0.144
#: Kilobytes in the archive: 23 MB for 20,000 new responses, 2 MB where nothing changed
#: (docs/decisions/archive-and-loading.md).
NEW_KB, UNCHANGED_KB = 23_000 / 20_000, 2_000 / 20_000
#: A run of 20 accounts: resident memory in GB (docs/decisions/archive-and-loading.md); processor in s: 3.2
#: for 1,000 timelines, loaded.
GB_OF_A_RUN, PROCESSOR_S = 1.0, 0.0032
#: A run beside its requests, in s: the pod, compiling the models, the start of 20 accounts, models,
#: publishing. Assumed; with 40 contacts it took 140 on a busy two-core machine.
AROUND_S = 240
#: Dagster's events of a run in PostgreSQL, in MB: 1,310 rows (docs/deployment.md).
EVENTS_MB = 2.3
NIGHTS = 365


@dataclass(frozen=True)
class Fleet:
    """Accounts of one size, in shards that run `pods` at a time."""

    shards: int
    accounts: int  # of a shard
    contacts: int  # of an account
    pods: int

    def requests(self, share: float = 1.0) -> float:
        """Of one night; `share` of the requests for contacts."""
        return self.shards * self.accounts * (BASE + PER_CONTACT * self.contacts * share)

    def hours(self, share: float = 1.0) -> float:
        """Until the last shard of a night is through."""
        rate = self.accounts * RATE_OF_AN_ACCOUNT * SHARE_USED
        return (
            math.ceil(self.shards / self.pods) * (self.requests(share) / self.shards / rate + AROUND_S) / 3600
        )

    @property
    def processors(self) -> float:
        """Cores that are busy while requests leave."""
        return self.pods * self.accounts * RATE_OF_AN_ACCOUNT * PROCESSOR_S

    def archive_gb(self, changed: float) -> float:
        """That a year adds, when this share of the responses is new."""
        kilobytes = changed * NEW_KB + (1 - changed) * UNCHANGED_KB
        return (self.requests() * NEW_KB + (NIGHTS - 1) * self.requests(LATER_NIGHT) * kilobytes) / 1e6

    @property
    def events_gb(self) -> float:
        """Of Dagster's history in 90 days."""
        return self.shards * 90 * EVENTS_MB / 1e3

    def row(self) -> str:
        cells = (
            f"{self.shards * self.accounts:,}",
            f"{self.contacts:,}",
            f"{self.shards:,}",
            f"{self.pods:,}",
            f"{self.pods * GB_OF_A_RUN:.0f} GB, {self.processors:.0f}",
            f"{self.requests() / 1e6:.1f} M in {self.hours():.1f} h",
            f"{self.requests(LATER_NIGHT) / 1e6:.1f} M in {self.hours(LATER_NIGHT):.1f} h",
            f"{self.archive_gb(0.1):,.0f} to {self.archive_gb(1):,.0f} GB",
            f"{self.events_gb:,.1f} GB",
        )
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| accounts | contacts each | shards | pods at a time | memory, cores | first night | later nights | "
    "archive in a year "
    "| PostgreSQL, 90 days |"
)
SHOWN = (
    Fleet(1, 20, 10_000, 1),
    Fleet(25, 20, 10_000, 10),
    Fleet(250, 20, 10_000, 50),
    Fleet(250, 20, 50_000, 50),
)


def table() -> str:
    """As docs/deployment.md shows it."""
    return "\n".join([HEAD, "|" + "---|" * HEAD.count(" | ") + "---|", *(fleet.row() for fleet in SHOWN)])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("shards", 0), ("accounts", 20), ("contacts", 3000), ("pods", 4), ("requests", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--took", type=float, default=0.0)
    chosen = parser.parse_args()
    if not chosen.shards:
        print(table())
        return 0
    fleet = Fleet(chosen.shards, chosen.accounts, chosen.contacts, chosen.pods)
    print(f"a first night: {fleet.requests():,.0f} requests in {fleet.hours() * 3600:,.0f} s")
    pairs = [(chosen.took, fleet.hours() * 3600), (chosen.requests, fleet.requests())]
    misses = [abs(measured / expected - 1) for measured, expected in pairs if measured]
    print("".join(f"measured differs by {100 * miss:.0f} %\n" for miss in misses), end="")
    return int(any(miss > 0.25 for miss in misses))


if __name__ == "__main__":
    sys.exit(main())
