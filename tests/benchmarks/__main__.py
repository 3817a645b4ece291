"""Runs every benchmark of this folder, each in a process of its own: what `make bench` does. Names choose some of them.

python -m tests.benchmarks [pacing client …]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """The number of benchmarks that failed."""
    every = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    chosen = sys.argv[1:] or every
    if unknown := set(chosen) - set(every):
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(every)}", file=sys.stderr)
        return len(unknown)
    failed = 0
    for name in chosen:
        print(f"--- {name}", flush=True)
        failed += bool(subprocess.run([sys.executable, "-m", f"tests.benchmarks.bench_{name}"], check=False).returncode)
    return failed


if __name__ == "__main__":
    sys.exit(main())
