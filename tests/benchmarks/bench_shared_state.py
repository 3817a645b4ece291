"""Changes a second of the state that processes share: in a file, and in a Redis on this machine.

    python -m tests.benchmarks.bench_shared_state [--redis redis://127.0.0.1:6379/0] [--seconds 5]

Each change takes a slot of an unlimited rate, as a limiter does, for 1 and for 8 processes on one state.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from marketing_api.pacing import Schedule
from marketing_api.rate_limit import FileStore, RedisStore


def changes(path: Path, redis: str, seconds: float) -> tuple[int, float]:
    """How many, and the longest one in seconds."""
    state = RedisStore(redis, path) if redis else FileStore(path)

    def take(schedule: Schedule) -> None:
        schedule.reserve(state.now())

    count, longest = 0, 0.0
    before, end = time.monotonic(), time.monotonic() + seconds
    while before < end:
        state.apply(take)
        now = time.monotonic()
        count, longest, before = count + 1, max(longest, now - before), now
    return count, longest


def measure(redis: str, seconds: float, processes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        words = [
            "--path",
            str(Path(folder) / f"benchmark-{time.monotonic_ns()}"),
            "--redis",
            redis,
            "--seconds",
            str(seconds),
        ]
        command = [sys.executable, "-m", "tests.benchmarks.bench_shared_state", *words]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        figures = [each.communicate()[0].split() for each in running]
    total, longest = sum(int(count) for count, _ in figures) / seconds, max(float(one) for _, one in figures)
    print(
        f"{'Redis' if redis else 'file':<6}{processes} processes: {total:,.0f} changes/s, the longest took "
        f"{longest * 1000:.0f} ms",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--redis", default="", metavar="URL")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.path:
        print(*changes(chosen.path, chosen.redis, chosen.seconds))
        return
    for redis in dict.fromkeys(("", chosen.redis)):
        for processes in (1, 8):
            measure(redis, chosen.seconds, processes)


if __name__ == "__main__":
    main()
