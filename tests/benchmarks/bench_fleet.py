"""What a fleet of accounts needs: pods, hours, requests and storage, from figures that were measured on one
machine.

    python -m tests.benchmarks.bench_fleet [--shards 4 --accounts 20 --contacts 3000 --pods 4]

A model, no measurement: without numbers the table of docs/deployment.md (a test compares it), with them what
a first night of such a fleet takes. The figures were measured once with a fleet on one machine."""

import argparse
import math
from dataclasses import dataclass

#: Requests of an account beside those for each contact, and those: 1,345 for 600 contacts (README); 119,853
#: for 20 x 3,000 are 2 % less.
BASE, PER_CONTACT = 145, 2
#: A second with 20 accounts in a run: 300 is the service's limit, 96.2 % were used
#: (docs/decisions/warehouse.md).
RATE_OF_AN_ACCOUNT, SHARE_USED = 15, 0.962
#: Of the requests of a first night, once the maximum age of 7 days is all that asks
#: (docs/decisions/reading.md).
LATER_NIGHT = 0.144
#: Kilobytes in the archive: 23 MB for 20,000 new responses, 2 MB where nothing changed
#: (docs/decisions/warehouse.md).
NEW_KB, UNCHANGED_KB = 23_000 / 20_000, 2_000 / 20_000
#: Resident memory in GB, of a run and of each of its accounts: 0.40 with 2 accounts, 0.61 with 10,
#: 1.0 with 20 (docs/decisions/warehouse.md). Processor in s: 3.2 for 1,000 timelines, loaded.
GB_OF_A_RUN, GB_OF_AN_ACCOUNT, PROCESSOR_S = 0.34, 0.03, 0.0032
#: A run beside its requests, in s: start, models, publishing. Measured with 50 shards of 10
#: accounts of 300 contacts, 2 at a time on two busy cores: a first night, and one on which nothing changed. On
#: quiet ones it was 20.
AROUND_S, AROUND_LATER_S = 90, 55
#: Until a pod runs, in s. Assumed.
POD_S = 60
#: From the same two nights: Dagster's history of a run in PostgreSQL in MB at most, and connections.
EVENTS_MB, CONNECTIONS, CONNECTIONS_OF_A_RUN = 2.0, 5, 1
NIGHTS = 365


@dataclass(frozen=True)
class Fleet:
    """Accounts of one size, in shards that run `pods` at a time."""

    shards: int
    accounts: int  # of a shard
    contacts: int  # of an account
    pods: int
    pod_s: float = POD_S

    def requests(self, share: float = 1.0) -> float:
        """Of one night; `share` of the requests for contacts."""
        return self.shards * self.accounts * (BASE + PER_CONTACT * self.contacts * share)

    def hours(self, share: float = 1.0) -> float:
        """Until the last shard of a night is through."""
        rate = self.accounts * RATE_OF_AN_ACCOUNT * SHARE_USED
        around = self.pod_s + (AROUND_S if share == 1 else AROUND_LATER_S)
        return (
            math.ceil(self.shards / self.pods) * (self.requests(share) / self.shards / rate + around) / 3600
        )

    @property
    def gb_of_a_run(self) -> float:
        """Resident memory at most."""
        return GB_OF_A_RUN + GB_OF_AN_ACCOUNT * self.accounts

    @property
    def connections(self) -> int:
        """To PostgreSQL, at most: of the three programs, and of every run."""
        return CONNECTIONS + CONNECTIONS_OF_A_RUN * self.pods

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
            f"{self.pods * self.gb_of_a_run:.0f} GB, {self.processors:.0f}",
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("shards", 0), ("accounts", 20), ("contacts", 3000), ("pods", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = vars(parser.parse_args())
    if not chosen["shards"]:
        print(table())
        return
    fleet = Fleet(**chosen)
    print(f"a first night: {fleet.requests():,.0f} requests in {fleet.hours() * 3600:,.0f} s")


if __name__ == "__main__":
    main()
