"""What the readers of single values make of generated texts, against the oracle of
`tests.marketing_api.records.spellings`.

    python -m tests.benchmarks.check_readers [--texts 200000] [--seed 1] [--reader NAME …]

Goals: of every reader's texts (spellings of a meaning, near misses, changed and random ones) none is read as
what it does not say, no spelling is refused, and nothing but a ValueError is raised."""

from __future__ import annotations

import argparse
import sys
import time

from tests.marketing_api.records.spellings import READERS, check

_SHOWN = 5


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=200_000, help="for each reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reader", nargs="+", choices=list(READERS), default=list(READERS))
    chosen = parser.parse_args()
    found = 0
    for name in chosen.reader:
        began = time.monotonic()
        faults = list(check(READERS[name], chosen.texts, chosen.seed))
        print(
            f"{name}: {chosen.texts:,} texts, {len(faults)} faults (goal 0), "
            f"{time.monotonic() - began:.0f} s",
            flush=True,
        )
        for line in faults[:_SHOWN]:
            print(f"  {line}")
        found += len(faults)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
