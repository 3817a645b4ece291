"""A sample of many accounts: the hostile one fails alone, and is named."""

from __future__ import annotations

import math
from pathlib import Path

from tests.attack.crowd import many_accounts


def test_one_hostile_account_costs_the_others_nothing(tmp_path: Path) -> None:
    assert many_accounts(tmp_path, ["429, Retry-After ten years"], count=2, contacts=10, limit=0, factor=200.0, most=math.inf)
