"""The simulated shop, whose `informed` policy is the bound for the planner: what it foresees must be what
happens."""

from __future__ import annotations

import numpy as np
import pytest

from marketing_api.sandbox.seed import DAY
from tests.simulators.simulated_account import START, SimulatedAccount
from tests.simulators.simulated_nights import Run, everybody, informed, oldest_first, oracle
from tests.simulators.simulated_shop import calibration, shop_year

_NIGHTS = 30


@pytest.fixture(scope="module")
def shop() -> SimulatedAccount:
    return shop_year(2000, _NIGHTS)


def test_what_is_foreseen_happens_as_often(shop: SimulatedAccount) -> None:
    tenths = calibration(shop, _NIGHTS)
    for tenth in tenths:
        # Four standard errors, of changes that are independent.
        noise = 4 * np.sqrt(tenth.foreseen * (1 - tenth.foreseen) / max(tenth.count, 1))
        assert abs(tenth.foreseen - tenth.happened) <= noise + 1e-9, tenth
    assert tenths[0].count > 40_000
    assert tenths[-1].count > 4_000


def test_the_informed_is_between_chance_and_the_oracle(shop: SimulatedAccount) -> None:
    share = {}
    for policy in (everybody, oldest_first, informed, oracle):
        nights = Run(shop, policy, 200).nights(10)
        share[policy] = sum(night.in_time for night in nights) / sum(night.changed for night in nights)
    assert share[oldest_first] < share[informed] <= share[oracle] < share[everybody] == 1


def test_only_days_between_nights_are_foreseen(shop: SimulatedAccount) -> None:
    assert shop.foreseen is not None
    assert len(shop.foreseen(START + DAY, START + 2 * DAY)) == len(shop)
    for before, now in (
        (START, START + 2 * DAY),
        (START - DAY, START),
        (START + _NIGHTS * DAY, START + (_NIGHTS + 1) * DAY),
    ):
        with pytest.raises(ValueError, match="one night to the next"):
            shop.foreseen(before, now)
