"""When a refusal is taken for "there is nothing": many addresses, nearly all alike, others answered, none that has coupons."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assets.refusals import CONTRADICTING, FEWEST, SHARE, refused_as_nothing
from marketing_api.errors import Refused
from marketing_api.operations.contacts import GETCOUPON
from marketing_api.worker_pool import Failure

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
