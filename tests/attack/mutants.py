"""Mutated answers: does anything but a declared error come out of reading, is an entry lost or a value
invented, is a row deleted unproven?

python -m tests.attack.mutants --minutes 25 --seed 1            # both halves, one process
python -m tests.attack.mutants --seed 1 --reading 1000000       # so many answers
python -m tests.attack.mutants --seed 1 --only 4711             # replay one, and show it
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from tests.attack.corpus import Sample, corpus
from tests.attack.loading import Ground, loadable
from tests.attack.mutation import mutate
from tests.attack.oracle import Reading, judge

#: Answers read between two lines of figures.
_AT_A_TIME = 20_000


@dataclass
class Tally:
    """What came of the answers so far. `failures`: kind → (how many, the first numbers)."""

    done: int = 0
    refused: int = 0
    rejecting: int = 0
    slowest_s: float = 0.0
    took_s: float = 0.0
    failures: dict[str, list[int]] = field(default_factory=dict)
    sizes: Counter[str] = field(default_factory=Counter)

    def note(self, number: int, problem: str) -> None:
        self.sizes[problem] += 1
        self.failures.setdefault(problem, []).append(number)


@dataclass(frozen=True)
class Mutant:
    """One changed answer, the same for the same seed and number."""

    sample: Sample
    body: bytes
    changes: list[str]
    status: int


def mutant(seed: int, number: int, samples: tuple[Sample, ...]) -> Mutant:
    rng = random.Random(seed << 40 | number)
    sample = rng.choice(samples)
    body, changes = mutate(rng, sample, samples)
    return Mutant(
        sample,
        body,
        changes,
        200 if rng.random() < 0.95 else rng.choice((201, 302, 400, 401, 404, 408, 429, 500, 502)),
    )


def read_mutants(seed: int, numbers: range, until: float, samples: tuple[Sample, ...]) -> Tally:
    """Read those answers, or as many as there is time for (`until`, monotonic)."""
    tally, began = Tally(), time.monotonic()
    for number in numbers:
        made = mutant(seed, number, samples)
        reading = Reading(made.sample.call, made.body, made.status)
        problem = judge(made.sample.call, made.body, reading)
        tally.done += 1
        tally.refused += bool(reading.refusal)
        tally.rejecting += any(rows.rejected for rows in reading.rows)
        tally.slowest_s = max(tally.slowest_s, reading.took_s)
        if problem is not None:
            tally.note(number, f"{made.sample.operation}: {problem}")
        if number % 64 == 0 and time.monotonic() > until:
            break
    tally.took_s = time.monotonic() - began
    return tally


def load_mutants(
    seed: int,
    count: int,
    until: float,
    samples: tuple[Sample, ...],
    each: int = 2,
    only: int | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> Tally:
    """Load `count` answers, or as many as there is time for, spread evenly over `each` true answers of every
    operation."""
    tally, began = Tally(), time.monotonic()
    chosen = loadable(samples, each)
    for index, sample in enumerate(chosen):
        if only is not None and only % len(chosen) != index:
            continue
        ground, share = Ground(sample), time.monotonic() + (until - time.monotonic()) / (len(chosen) - index)
        for number in range(index, count, len(chosen)) if only is None else [only]:
            body, changes = mutate(random.Random(seed << 40 | 1 << 39 | number), sample, samples)
            started = time.monotonic()
            became, problem = ground.try_out(body)
            tally.done += 1
            tally.refused += became == "refused"
            tally.slowest_s = max(tally.slowest_s, time.monotonic() - started)
            if only is not None:
                print(
                    f"{sample.source}: {sample.call!r} {', '.join(changes)}",
                    sample.body.decode(),
                    body.decode("utf-8", "replace"),
                    sep="\n",
                )
            if problem is not None:
                tally.note(number, f"{sample.operation}: {problem}")
                say(f"{number}: {sample.operation}: {problem}")
            if time.monotonic() > share:
                break
        say(
            f"{index + 1} of {len(chosen)} true answers, {tally.done:,} mutated ones, "
            f"{time.monotonic() - began:.0f} s"
        )
    tally.took_s = time.monotonic() - began
    return tally


def described(tally: Tally, half: str) -> str:
    """A Markdown line of figures."""
    return (
        f"- {half}: {tally.done:,} answers, {tally.refused:,} refused, {tally.rejecting:,} with rejected "
        "entries, slowest "
        f"{tally.slowest_s * 1000:.0f} ms, {sum(tally.sizes.values())} failures, {tally.took_s:.0f} s"
    )


def attack(minutes: float, seed: int) -> str:
    """Mutated answers through reading and loading, half of the time each; AssertionError: what does not hold,
    and how to see it again."""
    samples = corpus()
    read = read_mutants(seed, range(1_000_000), time.monotonic() + 30 * minutes, samples)
    loaded = load_mutants(seed, 20_000, time.monotonic() + 30 * minutes, samples)
    problems = [*_problems(read, seed, "--only"), *_problems(loaded, seed, "--only-loading")]
    assert not problems, "\n".join(problems)
    return f"{described(read, 'reading')}\n{described(loaded, 'loading')}"


def _problems(tally: Tally, seed: int, option: str) -> list[str]:
    """What does not hold, the most frequent first, with the command that shows one of each."""
    return [
        f"{count:6} × {problem}; python -m tests.attack.mutants --seed {seed} {option} "
        f"{tally.failures[problem][0]}"
        for problem, count in tally.sizes.most_common(60)
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reading", type=int, default=1_000_000)
    parser.add_argument("--start", type=int, default=0, help="number of the first answer to read")
    parser.add_argument("--loading", type=int, default=20_000)
    parser.add_argument(
        "--each", type=int, default=2, help="true answers of every operation that loading begins with"
    )
    parser.add_argument("--only", type=int)
    parser.add_argument("--only-loading", type=int)
    chosen = parser.parse_args()
    samples = corpus()
    if chosen.only is not None:
        _show(mutant(chosen.seed, chosen.only, samples))
        return
    until = time.monotonic() + 60 * chosen.minutes
    if chosen.reading and chosen.only_loading is None:
        for first in range(chosen.start, chosen.start + chosen.reading, _AT_A_TIME):
            numbers = range(first, min(first + _AT_A_TIME, chosen.start + chosen.reading))
            read = read_mutants(chosen.seed, numbers, until, samples)
            print(
                described(read, f"reading from {first:,}"),
                *_problems(read, chosen.seed, "--only"),
                sep="\n",
                flush=True,
            )
            if time.monotonic() > until:
                break
    if chosen.loading:
        loaded = load_mutants(
            chosen.seed,
            chosen.loading,
            until,
            samples,
            chosen.each,
            chosen.only_loading,
            partial(print, flush=True),
        )
        print(described(loaded, "loading"), *_problems(loaded, chosen.seed, "--only-loading"), sep="\n")


def _show(made: Mutant) -> None:
    reading = Reading(made.sample.call, made.body, made.status)
    print(f"{made.sample.source}: {made.sample.call!r} HTTP {made.status}, {', '.join(made.changes)}")
    print(made.body.decode("utf-8", "replace")[:3000])
    for rows in reading.rows:
        print(rows.record.__name__, *rows.records, *rows.rejected, sep="\n  ")
    print(reading.refusal or reading.unexpected or "accepted", judge(made.sample.call, made.body, reading))


if __name__ == "__main__":
    main()
