"""The whole command against a sandbox that answers like a distant service: how near the limit, and how much
beside it.

    python -m tests.benchmarks.bench_sync [--contacts 600]

The floor is requests / limit. Goals: first to last request <= 1.05 x floor, the whole command <= 1.12 x
floor, at most 0.3 % of requests refused."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from marketing_api.sandbox.options import DEFAULT_KEY
from tests.dialects.server import spawn
from tests.pipelines.sandboxes import Sandbox

LIMIT = 15
LATENCY = ("--latency-ms", "150")


def command(url: str, home: Path, *arguments: str) -> float:
    """Run `marketing-sync` to its end; returns seconds."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MARKETING_")}
    environment |= {"MARKETING_API_URL": url, "MARKETING_API_KEY": DEFAULT_KEY, "MARKETING_HOME": str(home)}
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "marketing_sync", *arguments],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.monotonic() - began


def measure(contacts: int, home: Path) -> None:
    """One first night."""
    with spawn("--contacts", str(contacts), "--rate-limit", str(LIMIT), *LATENCY) as url:
        seconds = command(url, home, "sync", "--reads-only")
        log = Sandbox(url).asked()
    moments = sorted(entry["arrived"] for entry in log)
    span, floor = moments[-1] - moments[0], len(log) / LIMIT
    refused = sum(entry["status"] == 429 for entry in log)
    per_second = [
        sum(second <= moment - moments[0] < second + 1 for moment in moments)
        for second in range(int(span) + 1)
    ]
    print(f"requests per second     {per_second}")
    print(f"requests                {len(log)}, floor {floor:.1f} s")
    print(f"first to last request   {span:.1f} s = {span / floor:.3f} x floor (goal 1.05)")
    print(f"whole command           {seconds:.1f} s = {seconds / floor:.3f} x floor (goal 1.12)")
    print(f"refused                 {refused} = {100 * refused / len(log):.2f} % (goal 0.3 %)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contacts", type=int, default=600)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments.contacts, Path(folder))


if __name__ == "__main__":
    main()
