"""The models that follow from the declarations are up to date."""

from __future__ import annotations

from warehouse.model_files import found, render


def test_the_written_models_are_as_declared() -> None:
    assert found() == render(), "stale: make docs"
