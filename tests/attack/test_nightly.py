"""Every attack is a job of the nightly workflow."""

from pathlib import Path

import yaml

from tests.attack.__main__ import attacks

WORKFLOW = Path(__file__).parents[2] / ".github/workflows/nightly.yml"


def test_every_attack_runs_at_night() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    assert jobs["attack"]["strategy"]["matrix"]["name"] == sorted(attacks())
