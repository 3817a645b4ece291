"""Three kills of the matrix (`tests.attack.deaths`): the run is made up for, and nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attack.deaths import CALM, Stand, kill, stand, tables


@pytest.fixture(scope="module")
def stood() -> Iterator[Stand]:
    with stand(1) as found:
        found.night(CALM)
        yield found


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("program", "stage"), [("code", "reading"), ("postgres", "loading"), ("worker", "models")]
)
def test_a_night_outlives(stood: Stand, program: str, stage: str) -> None:
    assert kill(stood, program, stage, tables(stood.dagster.homes / CALM))
