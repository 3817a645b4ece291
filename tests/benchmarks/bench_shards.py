"""Many accounts in shards, each shard read by a process of its own: requests a second, memory a shard, and
the lake over all of them.

    python -m tests.benchmarks.bench_shards [--accounts 40] [--shards 4] [--contacts 300]

The service is another process on the same machine: all share its processors, which bound what is measured
here. Goals: no shard holds another's rows, every account is read to the end. Exit code 1 on a miss."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from marketing_api.sandbox.server import spawn
from tests.benchmarks.bench_accounts import LIMIT, NOW, Log, Samples


def configure(folder: Path, url: str, accounts: int, shards: int) -> dict[str, str]:
    """`accounts.toml` in the folder, and the environment with the keys."""
    table = '[accounts.a{0}]\nurl = "{1}"\nkey_env = "BENCH_KEY_{0}"\nshard = "s{2}"\n'
    (folder / "accounts.toml").write_text(
        "".join(table.format(number, url, number % shards) for number in range(accounts))
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MARKETING_")}
    keys = {f"BENCH_KEY_{number}": f"key-{number}" for number in range(accounts)}
    return (
        environment
        | keys
        | {"MARKETING_HOME": str(folder / "homes"), "MARKETING_LAKE_URL": str(folder / "lake")}
    )


def run(
    folder: Path, environment: dict[str, str], shards: int, *words: str
) -> tuple[float, float, list[float]]:
    """The command in every shard at once: seconds, seconds of processor, and the largest memory of each, in
    MB."""
    began = time.monotonic()
    processes, samples = [], []
    for number in range(shards):
        with (folder / f"s{number}.log").open("a") as log:
            command = [sys.executable, "-m", "pipelines.cli", *words]
            shard = environment | {"MARKETING_SHARD": f"s{number}"}
            processes.append(subprocess.Popen(command, cwd=folder, env=shard, stdout=log, stderr=log))
        samples.append(Samples(processes[-1].pid))
        samples[-1].start()
    processor = 0.0
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        processor += usage.ru_utime + usage.ru_stime
        if os.waitstatus_to_exitcode(status):
            print(f"a shard ended with {os.waitstatus_to_exitcode(status)}: {folder}")
    return time.monotonic() - began, processor, [max(each.memory) for each in samples]


def measure(accounts: int, shards: int, contacts: int, folder: Path) -> bool:
    """Whether every goal was met."""
    known = [
        word
        for number in range(accounts)
        for word in ("--account", f"a{number}=key-{number}:{number}:{contacts}")
    ]
    with spawn(*known, "--rate-limit", str(LIMIT), "--now", NOW) as url:
        environment = configure(folder, url, accounts, shards)
        print(
            f"{accounts} accounts of {contacts} contacts in {shards} shards, load {os.getloadavg()[0]:.1f} "
            "at the start"
        )
        log = Log(url)
        log.start()
        seconds, processor, memory = run(folder, environment, shards, "sync", "--reads-only")
        entries = log.whole()
    moments = sorted(entry["arrived"] for entry in entries)
    rate, refused = (
        len(moments) / (moments[-1] - moments[0]),
        sum(entry["status"] == 429 for entry in entries),
    )
    print(f"first night                {seconds:.0f} s, {len(entries):,} requests, {refused} refused")
    print(
        f"requests a second          {rate:.0f} = {100 * rate / (accounts * LIMIT):.0f} % of "
        f"{accounts} x {LIMIT}"
    )
    print(
        f"processor                  {processor:.0f} s = {1000 * processor / len(entries):.1f} ms a "
        "request, beside the service's"
    )
    print(f"memory of a shard          {', '.join(f'{each:.0f}' for each in memory)} MB")
    return _judge(folder / "homes", accounts, shards, contacts)


def _judge(homes: Path, accounts: int, shards: int, contacts: int) -> bool:
    is_well = True
    for number in range(shards):
        with duckdb.connect(str(homes / f"s{number}" / "warehouse.duckdb"), read_only=True) as connection:
            read = dict(
                connection.execute(
                    "select account, count(timeline_asked_at) from sync.contact_coverage group by 1"
                ).fetchall()
            )
        is_well &= read == {f"a{each}": contacts for each in range(accounts) if each % shards == number}
    print(f"each shard its accounts    {is_well} (all of them, to the end, and no other)")
    return is_well


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accounts", type=int, default=40)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--contacts", type=int, default=300)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return 0 if measure(chosen.accounts, chosen.shards, chosen.contacts, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
