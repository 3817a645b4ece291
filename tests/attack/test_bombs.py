from __future__ import annotations

import pytest

from tests.attack import bombs

QUICK, SLOW = ("gzip in gzip", "lists 100,000 deep"), ("a sheet of 600 MB that says 1 kB", "a line of 1 GB")


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.attack) for name in SLOW)])
@pytest.mark.slow
def test_a_bomb_takes_little_memory_and_time(name: str) -> None:
    assert bombs.meet(name).said
