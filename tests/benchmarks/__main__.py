"""Runs every benchmark of this folder, each in a process of its own: what `make bench` does. Names choose
some of them.

python -m tests.benchmarks [pacing sync …]

They measure. What compares with a truth is `tests/attack`, whom both ask is `tests/simulators`.
"""

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """The number of benchmarks that failed."""
    files = sorted(Path(__file__).parent.glob("bench_*.py"))
    every = {path.stem.removeprefix("bench_"): path.stem for path in files}
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
