"""How much a run may ask."""

import datetime as dt

import pytest

from marketing_api.errors import BudgetSpent
from marketing_api.rate_limit import RequestBudget


def test_a_number_of_requests_is_given_once() -> None:
    budget = RequestBudget(2)
    budget.take_request()
    budget.take_request()
    with pytest.raises(BudgetSpent, match="2 requests are used up"):
        budget.take_request()
    budget.give_back()
    budget.take_request()
    assert budget.left == 0


def test_a_moment_ends_the_asking() -> None:
    now = [dt.datetime(2026, 11, 21, 5, 59, tzinfo=dt.UTC)]
    budget = RequestBudget(until=dt.datetime(2026, 11, 21, 6, 0, tzinfo=dt.UTC), now=lambda: now[0])
    budget.take_request()
    budget.give_back()
    assert budget.left is None
    now[0] += dt.timedelta(minutes=1)
    with pytest.raises(BudgetSpent, match="06:00"):
        budget.take_request()
