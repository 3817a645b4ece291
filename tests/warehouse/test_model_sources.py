"""The staging views follow from the declarations."""

from __future__ import annotations

from warehouse.model_sources import FOLDER, render


def test_the_staging_views_are_as_declared() -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert found == render(), "stale: python -m warehouse.model_sources"
