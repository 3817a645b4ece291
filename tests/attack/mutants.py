"""Mutated answers: does anything but a declared error come out of reading, is an entry lost or a value
invented, is a row deleted unproven?"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.attack.corpus import Sample, corpus
from tests.attack.loading import Ground, loadable
from tests.attack.mutation import mutate
from tests.attack.oracle import Reading, judge


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
    seed: int, count: int, until: float, samples: tuple[Sample, ...], each: int = 2, only: int | None = None
) -> Tally:
    """Load `count` answers, or as many as there is time for, spread evenly over `each` true answers of every
    operation; or only one."""
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
                _show(Mutant(sample, body, changes, 200))
            if problem is not None:
                tally.note(number, f"{sample.operation}: {problem}")
            if time.monotonic() > share:
                break
    tally.took_s = time.monotonic() - began
    return tally


def described(tally: Tally, half: str) -> str:
    """A Markdown line of figures."""
    return (
        f"- {half}: {tally.done:,} answers, {tally.refused:,} refused, {tally.rejecting:,} with rejected "
        "entries, slowest "
        f"{tally.slowest_s * 1000:.0f} ms, {sum(tally.sizes.values())} failures, {tally.took_s:.0f} s"
    )


def attack(minutes: float, seed: int, only: str = "") -> str:
    """Mutated answers through reading and loading, half of the time each; AssertionError: what does not hold,
    and how to see it again: `only` is a half and a number, such as `reading 4711`."""
    samples = corpus()
    half, number = only.split() if only else ("", "0")
    first = int(number)
    if half == "reading":
        _show(mutant(seed, first, samples))
    read, loaded = Tally(), Tally()
    if half != "loading":
        numbers = range(first, first + 1 if half else 1_000_000)
        read = read_mutants(seed, numbers, time.monotonic() + 30 * minutes, samples)
    if half != "reading":
        until = time.monotonic() + 30 * minutes
        loaded = load_mutants(seed, 20_000, until, samples, only=first if half else None)
    problems = [*_problems(read, seed, "reading"), *_problems(loaded, seed, "loading")]
    assert not problems, "\n".join(problems)
    return f"{described(read, 'reading')}\n{described(loaded, 'loading')}"


def _problems(tally: Tally, seed: int, half: str) -> list[str]:
    """What does not hold, the most frequent first, with the command that shows one of each."""
    return [
        f"{count:6} × {problem}; python -m tests.attack mutants --seed {seed} --only '{half} "
        f"{tally.failures[problem][0]}'"
        for problem, count in tally.sizes.most_common(60)
    ]


def _show(made: Mutant) -> None:
    print(f"{made.sample.source}: {made.sample.call!r} HTTP {made.status}, {', '.join(made.changes)}")
    print(made.body.decode("utf-8", "replace")[:3000])
