"""An archive's folder, and a large body on its way into it."""

from pathlib import Path

import pytest

from tests.warehouse.exchanges import envelope


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    path = tmp_path / "spool.json"
    path.write_bytes(envelope({"items": list(range(20_000))}))
    return path
