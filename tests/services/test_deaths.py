"""One kill of the matrix (`tests.attack.deaths` has all): nothing is lost or doubled."""

import pytest

from tests.attack.deaths import CALM, kill, stand, tables


@pytest.mark.timeout(1200)
def test_a_night_outlives_its_code_server() -> None:
    with stand(1) as stood:
        stood.night(CALM)
        assert kill(stood, "code", "reading", tables(stood.dagster.homes / CALM))
