from __future__ import annotations

import pytest

from tests.attack import bombs


@pytest.mark.parametrize("name", ["gzip in gzip", "lists 100,000 deep", "a sheet of 600 MB that says 1 kB", "a line of 1 GB"])
def test_a_bomb_takes_little_memory_and_time(name: str) -> None:
    assert bombs.meet(name).said
