"""Every test of loading keeps its file open."""

import pytest


@pytest.fixture(autouse=True)
def _file_stays_open(request: pytest.FixtureRequest) -> None:
    if "home" in request.fixturenames:
        request.getfixturevalue("kept_open")
