"""How many small requests a second one process can make when no limit holds it back.

    python -m tests.benchmarks.bench_client [--requests 10000]

The server is another process that answers at once. Goal: more than 1,300 a second.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from marketing_api.client import Client, Connection, Secret
from marketing_api.operations import account
from marketing_api.rate_limit import RateLimiter
from tests.simulators.limited_server import serving


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=10_000)
    count = parser.parse_args().requests
    with serving("--limit", "100000", "--no-delays") as (url, _), tempfile.TemporaryDirectory() as folder:
        limiter = RateLimiter(Path(folder) / "pace")
        with Client(
            Connection("main", url, Secret("a-key")),
            limiter,
            record=lambda exchange: None,
            spool=Path(folder),
        ) as client:
            client.fetch(account.ME.bind())
            began, cpu = time.monotonic(), time.process_time()
            answered = sum(1 for _ in client.fetch_many(account.ME.bind() for _ in range(count)))
            seconds = time.monotonic() - began
            cpu = time.process_time() - cpu
            began = time.monotonic()
            for _ in range(count):
                limiter.wait()
            slot = (time.monotonic() - began) / count
    print(
        f"{answered / seconds:,.0f} requests/s, {cpu / answered * 1e6:.0f} µs CPU each; a slot costs "
        f"{slot * 1e6:.0f} µs"
    )


if __name__ == "__main__":
    main()
