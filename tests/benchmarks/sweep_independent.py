"""A seeded sweep: random accounts under random combinations of variants, each synced once by the real command line.

    python -m tests.benchmarks.sweep_independent --runs 20 [--seed 1] [--seconds 1200] [--keep FOLDER]

Every run is judged as in `tests/independent`; a run with discrepancies leaves its home and its `case.pickle` in the folder, so that
`python -m tests.independent.compare HOME/warehouse.duckdb case.pickle` shows the same again. Exit code 1 when any run disagrees.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.independent import generate
from tests.independent.runs import discrepancies, save, sync
from tests.independent.server import serve
from tests.independent.truth import Case
from tests.independent.variants import Variants, drawn


def draw_case(seed: int) -> tuple[Case, int]:
    """An account, its variants and the limit of requests per second."""
    rng = random.Random(seed)
    variants = drawn(rng)
    # Without any report of the limit a tool stays at its careful start: keep those accounts small.
    is_silent = variants.rate_place == "none" and not variants.rate_headers
    sizes = generate.Sizes.nothing() if rng.random() < 0.05 else generate.Sizes(contacts=8 if is_silent else rng.choice([1, 12, 40]))
    zone = rng.choice(["drawn", "drawn", None])
    made = generate.account(
        seed, sizes, wild=rng.random() < 0.5, strange=variants.strange_networks, shared_ids=rng.random() < 0.5, zone=zone
    )
    return Case(made, variants), rng.choice([60, 200, 500])


def may_fail(variants: Variants) -> bool:
    return bool(variants.missing or variants.broken)


def judge(seed: int, folder: Path) -> list[str]:
    """Sync one drawn account; what is wrong afterwards."""
    case, limit = draw_case(seed)
    place = folder / f"seed-{seed}"
    shutil.rmtree(place, ignore_errors=True)  # of an earlier sweep: this must be a first night
    place.mkdir(parents=True)
    with serve(case.account, case.variants, limit=limit, seed=seed) as service:
        run = sync(service, place / "home", patience=240)
        found = discrepancies(service, place / "home", run, may_fail=may_fail(case.variants))
        asked, refused = len(service.log.entries), service.log.share(429)
    print(f"seed {seed}: {'DIFFERS' if found else 'agrees'}, {run.seconds:.0f} s, {asked} requests, {refused:.1%} refused, limit {limit}")
    print(f"    {case.variants.described()}", flush=True)
    save(case, place)
    (place / "output.txt").write_text(run.output)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the others count on from it")
    parser.add_argument("--seconds", type=float, default=1800, help="begin no further run after so long")
    parser.add_argument("--keep", type=Path, help="folder for the runs that disagree (default: a temporary one)")
    chosen = parser.parse_args()
    folder = chosen.keep or Path(tempfile.mkdtemp(prefix="sweep-"))
    began, bad, done = time.monotonic(), 0, 0
    for seed in range(chosen.seed, chosen.seed + chosen.runs):
        if time.monotonic() - began > chosen.seconds:
            break
        found, done = judge(seed, folder), done + 1
        bad += bool(found)
        for line in found:
            print("    " + line.replace("\n", "\n    "), flush=True)
        if not found:
            shutil.rmtree(folder / f"seed-{seed}")
    print(f"{done} runs, {bad} with discrepancies" + (f", kept in {folder}" if bad else ""))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
