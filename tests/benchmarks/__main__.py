"""Runs every benchmark of this folder, each in a process of its own: what `make bench` does. Names choose
some of them.

python -m tests.benchmarks [pacing client …]

`bench_NAME` measure, `check_NAME` compare: what takes too long for a test.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """The number of benchmarks that failed."""
    stems = [
        path.stem
        for kind in ("bench", "check")
        for path in sorted(Path(__file__).parent.glob(f"{kind}_*.py"))
    ]
    every = {stem.partition("_")[2]: stem for stem in stems}
    chosen = sys.argv[1:] or list(every)
    if unknown := set(chosen) - set(every):
        print(
            f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(every)}", file=sys.stderr
        )
        return len(unknown)
    failed = 0
    for name in chosen:
        print(f"--- {name}", flush=True)
        failed += bool(
            subprocess.run([sys.executable, "-m", f"tests.benchmarks.{every[name]}"], check=False).returncode
        )
    return failed


if __name__ == "__main__":
    sys.exit(main())
