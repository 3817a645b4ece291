"""When what could not be had fails the night, and when a refusal is taken for "there is nothing"."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.result import AccountResult, refused_as_nothing
from marketing_api.client import Failure
from marketing_api.errors import AuthenticationFailed, BudgetSpent, NotAvailable, Refused, Unreachable
from marketing_api.operations import contacts
from marketing_api.operations.contacts import GETCOUPON
from warehouse.lookups import CONTRADICTING, FEWEST, SHARE

QUESTION = contacts.TIMELINE.bind(id=1)


def result(*errors: Exception, planned: int = 1000) -> AccountResult:
    return AccountResult("main", failures=[Failure(QUESTION, error) for error in errors], planned=planned)


def test_nothing_missing_is_no_problem() -> None:
    assert result().problems == []
    assert not result().is_failure


def test_a_few_refused_items_are_normal() -> None:
    assert result(*[Refused("no such contact")] * 10).problems == []


def test_many_refused_items_are_a_failure() -> None:
    many = result(*[Refused("no such contact")] * 11)
    assert many.problems == ["no such contact (11 requests)"]
    assert many.is_failure


def test_one_unreachable_item_is_a_failure_worth_a_retry() -> None:
    one = result(Unreachable("no answer", was_sent=True))
    assert one.is_failure
    assert one.is_worth_a_retry


@pytest.mark.parametrize("error", [NotAvailable("not available"), BudgetSpent("spent")])
def test_what_the_account_lacks_or_a_person_limited_is_a_problem_but_no_failure(error: Exception) -> None:
    lacking = AccountResult("main", error=error)
    assert lacking.problems == [str(error)]
    assert not lacking.is_failure


def test_a_refused_key_is_a_failure_that_no_retry_mends() -> None:
    refused = AccountResult("main", error=AuthenticationFailed("wrong key"))
    assert refused.is_failure
    assert not refused.is_worth_a_retry


CODES = st.sampled_from([1003, 1003, 1003, 1003, 1004, None])


def failures(codes: list[int | None]) -> list[Failure]:
    return [Failure(GETCOUPON.bind(email=f"p{number}@example.com"), Refused("refused", code=code)) for number, code in enumerate(codes)]


@given(st.lists(CODES, max_size=60), st.integers(0, 5), st.integers(0, 3))
def test_only_what_nothing_speaks_against_is_learnt(codes: list[int | None], answered: int, with_coupons: int) -> None:
    refused = failures(codes)
    contradicting = {f"p{number}@example.com" for number in range(with_coupons)}
    code = refused_as_nothing(refused, len(refused) + answered, contradicting)
    if code is not None:
        same = [number for number, each in enumerate(codes) if each == code]
        assert answered
        assert len(same) >= max(FEWEST, SHARE * len(codes))
        assert sum(number < with_coupons for number in same) <= CONTRADICTING * len(same)


def test_refusals_alike_are_learnt() -> None:
    refused = failures([1003] * 50 + [1004] * 3)
    assert refused_as_nothing(refused, 60, ()) == 1003
    assert refused_as_nothing(refused, 53, ()) is None, "nobody was answered: the operation may be broken"
    assert refused_as_nothing(refused, 60, {"p1@example.com"}) is None, "an address with coupons is refused alike"
    assert refused_as_nothing(failures([None] * 50), 60, ()) is None
