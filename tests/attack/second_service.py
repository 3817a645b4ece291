"""A seeded sweep: random accounts under random combinations of variants, each synced once by the real command
line.

    python -m tests.attack.second_service --runs 20 [--seed 1] [--seconds 1200] [--nights 2] [--bold]
    [--keep FOLDER]

Every run is judged as in `tests/independent`; a run with discrepancies leaves its home and its `case.pickle`
in the folder, so that `python -m tests.independent.compare HOME/warehouse.duckdb case.pickle` shows the same
again. Exit code 1 when any run disagrees."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from tests.independent import generate, nights
from tests.independent.runs import discrepancies, save, sync
from tests.independent.server import Service, serve
from tests.independent.truth import Case
from tests.independent.variants import Variants, bold, drawn


def draw_case(seed: int, *, is_bold: bool) -> tuple[Case, int]:
    """An account, its variants and the limit of requests per second."""
    rng = random.Random(seed)
    variants = bold(rng) if is_bold else drawn(rng)
    # Without any report of the limit a tool stays at its careful start: keep those accounts small.
    is_silent = variants.rate_place == "none" and not variants.rate_headers
    sizes = (
        generate.Sizes.nothing()
        if rng.random() < 0.05
        else generate.Sizes(contacts=8 if is_silent else rng.choice([1, 12, 40]))
    )
    zone = rng.choice(["drawn", "drawn", None])
    made = generate.account(
        seed,
        sizes,
        wild=rng.random() < 0.5,
        strange=variants.strange_networks,
        shared_ids=rng.random() < 0.5,
        zone=zone,
    )
    return Case(made, variants), rng.choice([60, 200, 500])


def may_fail(variants: Variants) -> bool:
    return bool(variants.missing or variants.broken)


def judge(seed: int, folder: Path, *, is_bold: bool = False, is_second: bool = False) -> list[str]:
    """Sync one drawn account, and once more after a day; what is wrong afterwards."""
    case, limit = draw_case(seed, is_bold=is_bold)
    place = folder / f"seed-{seed}"
    shutil.rmtree(place, ignore_errors=True)  # of an earlier sweep: this must be a first night
    place.mkdir(parents=True)
    with serve(case.account, case.variants, limit=limit, seed=seed) as service:
        run = sync(service, place / "home")
        found = discrepancies(service, place / "home", run, may_fail=may_fail(case.variants))
        if is_second and not found and _has_life(case):
            found = _second_night(service, place / "home", seed)
        asked, refused = len(service.log.entries), service.log.share(429)
    print(
        f"seed {seed}: {'DIFFERS' if found else 'agrees'}, {run.seconds:.0f} s, {asked} requests, "
        f"{refused:.1%} refused, limit {limit}"
    )
    print(f"    {case.variants.described()}", flush=True)
    save(case, place)
    (place / "output.txt").write_text(run.output)
    return found


def _has_life(case: Case) -> bool:
    """Enough of everything to change, and nothing that is out of reach."""
    return len(case.account.members) > 5 and not case.down and bool(case.account.campaigns)


def _second_night(service: Service, home: Path, seed: int) -> list[str]:
    first = nights.night(service, [])
    nights.pass_a_day(service.account, random.Random(seed))
    run = sync(service, home)
    second = nights.night(service, first[1])
    found = [] if run.code == 0 else [f"second night: exit code {run.code}, ends with: {run.output[-1500:]}"]
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        return found + [
            f"second night: {difference}" for difference in nights.differences(connection, first, second)
        ]


def attack(minutes: float, seed: int) -> str:
    """Accounts of one seed after another while there is time, every second one two nights long."""
    return sweep(minutes, seed, lambda each, folder: judge(each, folder, is_second=each % 2 == 0))


def sweep(minutes: float, seed: int, judged: Callable[[int, Path], list[str]]) -> str:
    """Judge one seed after another while there is time, at least one; AssertionError with what is wrong of
    each."""
    end, done, wrong = time.monotonic() + 60 * minutes, 0, []
    with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
        while not done or time.monotonic() < end:
            wrong += [f"seed {seed + done}: {line}" for line in judged(seed + done, Path(folder))]
            shutil.rmtree(Path(folder) / f"seed-{seed + done}")
            done += 1
    assert not wrong, "\n".join(wrong)
    return f"{done} runs from seed {seed} on, none with discrepancies"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the others count on from it")
    parser.add_argument("--seconds", type=float, default=1800, help="begin no further run after so long")
    parser.add_argument("--nights", type=int, choices=[1, 2], default=1)
    parser.add_argument("--bold", action="store_true", help="deviations too that nobody has reported yet")
    parser.add_argument(
        "--keep", type=Path, help="folder for the runs that disagree (default: a temporary one)"
    )
    chosen = parser.parse_args()
    folder = chosen.keep or Path(tempfile.mkdtemp(prefix="sweep-"))
    began, bad, done = time.monotonic(), 0, 0
    for seed in range(chosen.seed, chosen.seed + chosen.runs):
        if time.monotonic() - began > chosen.seconds:
            break
        found, done = judge(seed, folder, is_bold=chosen.bold, is_second=chosen.nights > 1), done + 1
        bad += bool(found)
        for line in found:
            print("    " + line.replace("\n", "\n    "), flush=True)
        if not found:
            shutil.rmtree(folder / f"seed-{seed}")
    print(f"{done} runs, {bad} with discrepancies" + (f", kept in {folder}" if bad else ""))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
