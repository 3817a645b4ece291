"""Many accounts read by one process, each under its own limit, and one of them failing.

    python -m tests.benchmarks.bench_accounts [--accounts 20] [--contacts 800]

The service is another process on the same machine: both share its processors. Goals: at least 95 % of accounts × 15 requests a
second once contacts are asked, which is most of a night (the start, with its small reads and loads, is told apart), memory flat (the
last third of the run under 1.15 × the second), and one account with a wrong key fails alone. Exit code 1 on a miss.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import duckdb

from marketing_api.sandbox.cli import spawn
from tests.benchmarks.bench_sync import asked

LIMIT = 15
EDGE_S = 5  # seconds at the end that are not judged: accounts that are through
_SINGLE = ("emailmarketing/getcontacttimeline", "emailmarketing/getcoupon")


class Memory(threading.Thread):
    """Samples a process's resident size, in MB."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._path = Path(f"/proc/{pid}/statm")
        self.samples: list[float] = []

    def run(self) -> None:
        while True:
            try:
                self.samples.append(int(self._path.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6)
            except (OSError, IndexError):
                return
            time.sleep(0.5)


def configure(folder: Path, url: str, count: int) -> dict[str, str]:
    """`accounts.toml` in the folder, and the environment with the keys; the last account's key is wrong."""
    tables = [f'[accounts.a{number}]\nurl = "{url}"\nkey_env = "BENCH_KEY_{number}"\n' for number in range(count + 1)]
    (folder / "accounts.toml").write_text("".join(tables))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MARKETING_")}
    keys = {f"BENCH_KEY_{number}": f"key-{number}" for number in range(count)} | {f"BENCH_KEY_{count}": "wrong"}
    return environment | keys | {"MARKETING_HOME": str(folder / "home")}


def sync(folder: Path, environment: dict[str, str]) -> tuple[int, float, float, list[float]]:
    """Exit code, seconds, seconds of processor and memory of one first night."""
    began = time.monotonic()
    with (folder / "log").open("w") as log:
        command = [sys.executable, "-m", "pipelines.cli", "sync", "--reads-only"]
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        memory = Memory(process.pid)
        memory.start()
        _, status, usage = os.wait4(process.pid, 0)
    memory.join()
    return os.waitstatus_to_exitcode(status), time.monotonic() - began, usage.ru_utime + usage.ru_stime, memory.samples


def measure(count: int, contacts: int, folder: Path) -> bool:
    """Whether every goal was met."""
    accounts = [word for number in range(count) for word in ("--account", f"a{number}=key-{number}:{number}:{contacts}")]
    with spawn(*accounts, "--rate-limit", str(LIMIT)) as url:
        environment = configure(folder, url, count)
        load = os.getloadavg()[0]
        code, seconds, processor, memory = sync(folder, environment)
        log = asked(url)
    counted = Counter(int(entry["arrived"]) for entry in log if entry["status"] == 200)
    moments = sorted(counted)
    single = Counter(int(entry["arrived"]) for entry in log if entry["status"] == 200 and entry["operation"] in _SINGLE)
    begun = next(second for second in moments if single[second] >= 0.9 * counted[second] >= count)
    full = [counted[second] for second in range(begun, moments[-1] - EDGE_S)]
    full = full[: int(len(full) * 0.9)]  # some accounts are through before others
    rate = sum(full) / len(full)
    third = len(memory) // 3
    growth = max(memory[2 * third :]) / max(memory[third : 2 * third])
    with duckdb.connect(str(folder / "home" / "warehouse.duckdb"), read_only=True) as connection:
        read = dict(connection.execute("select account, count(timeline_asked_at) from sync.contact_coverage group by 1").fetchall())
    whole = sum(read.get(f"a{number}", 0) == contacts for number in range(count))
    print(f"{count} accounts of {contacts} contacts, load {load:.1f} at the start, {seconds:.0f} s, {len(log):,} requests")
    tens = [sum(counted[second] for second in range(first, first + 10)) // 10 for first in range(moments[0], moments[-1], 10)]
    print(f"a second, by ten seconds   {' '.join(map(str, tens))}")
    print(f"processor                  {processor:.0f} s = {1000 * processor / len(log):.1f} ms a request, loads and start included")
    print(f"start                      {begun - moments[0]} s until contacts are asked of all")
    print(f"requests per second        {rate:.0f} = {100 * rate / (count * LIMIT):.1f} % of {count * LIMIT} (goal 95 %)")
    print(f"resident memory            {max(memory):.0f} MB, last third {growth:.2f} x the second (goal 1.15)")
    print(f"accounts read to the end   {whole} of {count}, exit code {code} (goal: all, 1 for the one that fails)")
    return rate >= 0.95 * count * LIMIT and growth <= 1.15 and whole == count and code == 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accounts", type=int, default=20)
    parser.add_argument("--contacts", type=int, default=800)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return 0 if measure(chosen.accounts, chosen.contacts, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
