"""The first nights of the attack `nights`."""

import random

import pytest

from tests.attack.nights import NIGHTS, attack, plans

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.attack
def test_two_nights_under_faults_and_wrong_clocks_end_with_the_truth() -> None:
    said = attack(5, seed=53, nights=2, contacts=10)  # a clock ten days ahead, killed and left
    assert "2 nights" in said
    assert "night 2: " in said


def test_every_wrong_clock_has_its_night() -> None:

    made = plans(NIGHTS, random.Random(3))
    assert sum(bool(plan.ahead or plan.moved) for plan in made) == 12
    assert not any(plan.ahead or plan.moved or plan.is_left for plan in made if plan.number in (10, 20, 30))
