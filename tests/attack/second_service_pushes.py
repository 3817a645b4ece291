"""A seeded sweep of pushes: random accounts, forms of writes, faults, kills and files, judged by the second
service's own truth.

    python -m tests.attack.second_service_pushes --runs 10 [--seed 1] [--seconds 1200] [--rows 150] [--kinds
    activities …] [--keep FOLDER]

Each run syncs a home and pushes one file of every kind: plan, kills in the middle, on to the end, and once
more. Exit code 1 when anything is doubled, missing, changed without being asked for, said wrongly, or asked
of the service without need."""

from __future__ import annotations

import argparse
import copy
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.attack.second_service import sweep
from tests.independent import generate, push_files
from tests.independent.account import Account
from tests.independent.push_files import File
from tests.independent.pushes import Pushed, push, push_and_stop, spills
from tests.independent.runs import sync
from tests.independent.server import Service, serve
from tests.independent.variants import Variants, drawn, writing
from tests.independent.write_truth import differences

DRAWS: dict[str, Callable[[Account, random.Random, int], File]] = {
    "activities": push_files.activities,
    "tags": push_files.tags,
    "contacts": push_files.contacts,
}
#: A push is through when the same command sends nothing more; so often it may be needed.
ATTEMPTS = 5


def draw_variants(rng: random.Random) -> Variants:
    """Reads as in the other sweep but without outages, and never without a word about the limit (it would
    crawl)."""
    reads = replace(
        drawn(rng),
        missing=frozenset(),
        broken=frozenset(),
        rate_headers=True,
        envelope=True,
        timeline_cut=None,
    )
    return writing(rng, reads)


def judge(seed: int, rows: int, kinds: list[str], folder: Path) -> list[str]:
    """Everything wrong with the pushes of one seed."""
    rng = random.Random(seed)
    variants, place = draw_variants(rng), folder / f"seed-{seed}"
    zone = rng.choice(["drawn", "America/St_Johns", "Asia/Kathmandu", None])
    sizes = generate.Sizes(contacts=40, campaigns=1, posts=1, links=1, reviews=2, mentions=1, days=1)
    made = generate.account(seed, sizes, wild=rng.random() < 0.3, shared_ids=rng.random() < 0.7, zone=zone)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    print(f"seed {seed}: {variants.described()}", flush=True)
    with serve(made, variants, limit=rng.choice([60, 200, 500]), seed=seed) as service:
        found = []
        for kind in kinds:
            # Anew for each: a move names whom the push of contacts has just added.
            run = sync(
                service,
                place / "home",
                "--only",
                "business",
                "lists",
                "list_fields",
                "contacts",
                "--accept-shrink",
            )
            if run.code:
                return [*found, f"sync: exit code {run.code}, ends with {run.output[-1000:]}"]
            found += [
                f"{kind}: {wrong}" for wrong in _pushed(service, place, DRAWS[kind](made, rng, rows), rng)
            ]
        return found


def _pushed(service: Service, place: Path, file: File, rng: random.Random) -> Iterator[str]:
    """One file from its plan to its last word."""
    before, home = copy.deepcopy(service.account), place / "home"
    service.world.effects.clear()
    path = file.save(place / f"{file.kind}{rng.choice(['.csv', '.csv', '.xlsx', '.parquet'])}")
    command = [file.kind, "--from", str(path)]
    runs = [push(service, home, *command)]
    if runs[0].requests:
        yield f"the plan sent {runs[0].requests} requests"
    kills = [
        push_and_stop(service, home, rng.randint(1, 40), *command, "--apply")
        for _ in range(rng.choice([0, 1, 3]))
    ]
    for _ in range(ATTEMPTS):
        runs.append(push(service, home, *command, "--apply"))
        if not runs[-1].requests:
            break
    else:
        yield f"the same file still sends {runs[-1].requests} requests: {runs[-1]}"
    yield from (
        f"exit code {run.code}: {run}" for run in runs[1:] if run.code != int(bool(file.unknown or file.bad))
    )
    yield from differences(before, service.world, file)
    yield from spills(service, before, home, *runs, *kills)
    print(f"    {file.kind} {len(file.rows)} rows, {len(kills)} kills, {_told(runs)}", flush=True)


def _told(runs: list[Pushed]) -> str:
    return ", ".join(f"{run.requests} requests in {run.seconds:.0f} s" for run in runs[1:])


def attack(minutes: float, seed: int) -> str:
    """One file of every kind for one seed after another, while there is time."""
    return sweep(minutes, seed, lambda each, folder: judge(each, 150, list(DRAWS), folder))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the others count on from it")
    parser.add_argument("--seconds", type=float, default=1500, help="begin no further run after so long")
    parser.add_argument("--kinds", nargs="+", choices=list(DRAWS), default=list(DRAWS))
    parser.add_argument("--rows", type=int, default=150, help="good rows per file")
    parser.add_argument(
        "--keep", type=Path, help="folder for the runs that disagree (default: a temporary one)"
    )
    chosen = parser.parse_args()
    folder = chosen.keep or Path(tempfile.mkdtemp(prefix="sweep-write-back-"))
    began, bad, done = time.monotonic(), 0, 0
    for seed in range(chosen.seed, chosen.seed + chosen.runs):
        if time.monotonic() - began > chosen.seconds:
            break
        found, done = judge(seed, chosen.rows, chosen.kinds, folder), done + 1
        bad += bool(found)
        for line in found:
            print("    WRONG " + line.replace("\n", "\n    "), flush=True)
        if not found:
            shutil.rmtree(folder / f"seed-{seed}")
    print(f"{done} runs, {bad} with discrepancies" + (f", kept in {folder}" if bad else " (goal: 0)"))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
