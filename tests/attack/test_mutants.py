"""A few seconds of the mutated answers: what comes out of reading and loading them is declared, whole and
proven."""

from __future__ import annotations

import math
from typing import Any

import pytest

from marketing_api.operations import campaigns, lists, reputation
from tests.attack.corpus import Sample, corpus
from tests.attack.loading import SHRINK_LIMIT, Ground, loadable
from tests.attack.mutants import load_mutants, read_mutants
from tests.attack.oracle import Reading, judge
from tests.attack.proof import look
from tests.depth import DEEP
from tests.marketing_api.responses import enveloped
from tests.marketing_api.samples import SAMPLES

SEED = 7
MUTANTS = 3_000 if DEEP else 500


@pytest.mark.slow
def test_true_answers_pass() -> None:
    for sample in corpus():
        assert judge(sample.call, sample.body, Reading(sample.call, sample.body)) is None


@pytest.mark.deep
@pytest.mark.slow
def test_reading_a_mutated_answer_drops_and_invents_nothing() -> None:
    samples = corpus()
    tally = read_mutants(SEED, range(MUTANTS), math.inf, samples)
    assert tally.done == MUTANTS
    assert not tally.sizes, tally.failures


@pytest.mark.slow
def test_a_true_answer_again_changes_nothing() -> None:
    sample = next(each for each in loadable(corpus(), 1) if each.operation == "emailmarketing/getcontacts")
    assert Ground(sample).try_out(sample.body) == ("loaded", None)


@pytest.mark.deep
@pytest.mark.slow
def test_loading_a_mutated_answer_deletes_nothing_unproven() -> None:
    samples = tuple(
        each
        for each in corpus()
        if each.operation in ("emailmarketing/getcontacts", "reputation/direct", "reputation/stats")
    )
    tally = load_mutants(SEED, MUTANTS // 50, math.inf, samples, each=1)
    assert not tally.sizes, tally.failures


@pytest.mark.parametrize(
    ("clickers", "is_proof"),
    [
        ([], True),
        ({}, True),
        (["ann@x.com(1 click)"], True),
        ({"1": "ann@x.com(1 click)"}, True),
        ({"x": "ann@x.com(1 click)"}, False),
        ({"1": {"id": 7}}, False),
        ("ann@x.com(1 click)", False),
        (None, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["clickers", "CLICKERS"])
def test_the_oracle_takes_clickers_for_told_in_any_shape_of_a_list(
    name: str, clickers: Any, is_proof: bool
) -> None:
    clicks = [{"url": "u", name: clickers}]
    seen = look(campaigns.STATS.bind(id=1, type="standard"), {"campaign": {"stats": {}, "clicks": clicks}})
    assert seen.proves("campaign_clickers") is is_proof


def _sample(name: str) -> Sample:
    data, params = SAMPLES[name]
    return Sample(
        "samples",
        {"reputation/stats": reputation.STATS, "emailmarketing/getlist": lists.GETLIST}[name].bind(**params),
        enveloped(data),
    )


def test_an_empty_answer_is_loaded_as_every_night_does_it() -> None:
    ground = Ground(_sample("reputation/stats"))
    assert ground.try_out(enveloped({"stats": []})) == ("loaded", None)
    assert ground.has_shrunk
    assert ground._rolled_back(enveloped({"stats": []}), None)[1] == "review_stats: not spoken of"


def test_what_the_shrink_check_stops_has_to_be_proven_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ground = Ground(_sample("reputation/stats"))
    limits: list[float | None] = []
    rolled_back = ground._rolled_back
    monkeypatch.setattr(
        ground, "_rolled_back", lambda body, limit: [limits.append(limit), rolled_back(body, limit)][1]
    )
    assert ground.try_out(enveloped({"stats": {"Reviews": []}})) == ("loaded", None)
    assert limits == [SHRINK_LIMIT, None]
