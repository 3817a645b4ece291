"""What the readers of single values make of generated texts, against the oracle of
`tests.marketing_api.records.spellings`.

    python -m tests.attack.readers [--texts 200000] [--seed 1] [--reader NAME …]

Goals: of every reader's texts (spellings of a meaning, near misses, changed and random ones) none is read as
what it does not say, no spelling is refused, and nothing but a ValueError is raised."""

from __future__ import annotations

import argparse
import sys
import time

from tests.marketing_api.records.spellings import READERS, check

_SHOWN = 5


def attack(minutes: float, seed: int) -> str:
    """Ten thousand texts a minute for each reader; AssertionError with the first faults of each."""
    texts = int(10_000 * minutes)
    found = {name: list(check(reader, texts, seed)) for name, reader in READERS.items()}
    faults = [f"{name}: {line}" for name, lines in found.items() for line in lines[:_SHOWN]]
    assert not faults, f"seed {seed}, {texts} texts:\n" + "\n".join(faults)
    return f"{texts:,} texts for each of {len(READERS)} readers, 0 faults"


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
