"""A few seconds of the mutated answers: what comes out of reading and loading them is declared, whole and proven."""

from __future__ import annotations

import time

from tests.attack.corpus import corpus
from tests.attack.loading import Ground, loadable
from tests.attack.mutants import load_mutants, read_mutants
from tests.attack.oracle import Reading, judge

SEED = 7


def test_true_answers_pass() -> None:
    for sample in corpus():
        assert judge(sample.call, sample.body, Reading(sample.call, sample.body)) is None


def test_reading_a_mutated_answer_drops_and_invents_nothing() -> None:
    tally = read_mutants(SEED, range(3_000), time.monotonic() + 8, corpus())
    assert tally.done > 200
    assert not tally.sizes, tally.failures


def test_a_true_answer_again_changes_nothing() -> None:
    sample = next(each for each in loadable(corpus(), 1) if each.operation == "emailmarketing/getcontacts")
    assert Ground(sample).try_out(sample.body) == ("loaded", None)


def test_loading_a_mutated_answer_deletes_nothing_unproven() -> None:
    samples = tuple(each for each in corpus() if each.operation in ("emailmarketing/getcontacts", "reputation/direct", "reputation/stats"))
    tally = load_mutants(SEED, 60, time.monotonic() + 8, samples, each=1)
    assert not tally.sizes, tally.failures
