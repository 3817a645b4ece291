"""The tests that are marked as attacks, and those that look further with more time: `tests/depth.py`."""

import os
import subprocess
import sys

from tests.attack.places import ROOT
from tests.depth import NAME


def attack(minutes: float, seed: int) -> str:
    """AssertionError with what failed. Takes the time that it takes."""
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile"]
    command += ["-m", "attack or hypothesis or deep", f"--hypothesis-seed={seed}"]
    env = os.environ | {NAME: "1"}
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr[-5_000:]
    return ran.stdout.strip().splitlines()[-1]
