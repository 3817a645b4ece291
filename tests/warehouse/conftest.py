"""Fixtures of the warehouse's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.warehouse.answering import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """An empty warehouse and its archive."""
    home = Home(tmp_path)
    yield home
    home.close()
