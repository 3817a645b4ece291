"""What follows from the models and the declarations is up to date."""

import subprocess
import sys

import pytest

from docs.models import found, render


def test_the_written_models_are_as_declared() -> None:
    assert found() == render(), "stale: make docs"


@pytest.mark.slow
def test_what_dbt_compiles_is_as_the_models_are() -> None:
    """In a process of its own: dbt keeps state in its modules."""
    words = [sys.executable, "-m", "docs.models", "--check"]
    checked = subprocess.run(words, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, f"{checked.stdout}{checked.stderr}run `python -m docs.models`"
