"""What `sync --dry-run` says of a night: for any budget its figures agree, and it promises the maximum age only when it
is kept."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from assets.planning.crawl_plan import Rules
from pipelines.night_plan import LISTINGS, Night, plan_night
from tests.assets.planning.test_crawl_plan import plan

KEPT = "the maximum age is kept"
#: Up to four groups of contacts that were asked so many days ago, or never.
groups = st.lists(st.tuples(st.one_of(st.none(), st.floats(0, 12)), st.integers(0, 60)), max_size=4)
ages = groups.map(lambda found: [days for days, count in found for _ in range(count)])


def found(
    listings: int,
    timelines: list[float | None],
    coupons: list[float | None],
    allowed: int | None,
    *,
    everybody: bool,
) -> Night:
    left = None if allowed is None else max(allowed - listings, 0)
    whole, limited = (
        plan(timelines, coupons, Rules(limit=limit, requests_all=everybody)) for limit in (None, left)
    )
    return plan_night({LISTINGS: listings}, whole, limited, allowed, requests_all=everybody)


@given(st.integers(0, 200), ages, ages, st.one_of(st.none(), st.integers(0, 300)), st.booleans())
@example(153, [1.0] * 50, [1.0] * 45, 3, False)
@example(0, [None] * 60, [], 60, False)
def test_figures_agree_for_any_budget(
    listings: int,
    timelines: list[float | None],
    coupons: list[float | None],
    allowed: int | None,
    everybody: bool,
) -> None:
    planned = found(listings, timelines, coupons, allowed, everybody=everybody)
    asked, wanted, left = (sum(each.values()) for each in (planned.sent, planned.wanted, planned.left_out))
    assert asked + left == wanted
    assert allowed is None or asked <= allowed
    assert all(count >= 0 for count in planned.sent.values())
    if allowed is None:
        assert not left
    text = "\n".join(planned.describe_night(10.0, 7))
    numbers = [
        int(number.replace(",", "")) for number in re.findall(r"(?<![\w.:])\d[\d,]*", text.partition("\n")[0])
    ]
    assert numbers[0] == wanted
    assert allowed is None or numbers[1:3] == [allowed, asked]
    assert (f"{left:,} are left" in text) == (left > 0)

    missing = sum(line.late + line.waiting for line in planned.plan.entries.values())
    limit = planned.plan.limit
    is_short = limit is not None and limit < max(planned.plan.needed, planned.plan.steady)
    if missing or is_short or LISTINGS in planned.left_out:
        assert KEPT not in text
    else:
        assert KEPT in text, text


def test_a_budget_that_the_listings_use_up_promises_nothing() -> None:
    text = "\n".join(found(153, [1.0] * 50, [1.0] * 45, 3, everybody=False).describe_night(10.0, 7))
    assert "the next sync would send" in text
    assert "of listings" in text
    assert "no contact gets older than 7 days tonight, but not every night: that takes 14 requests" in text


def test_what_the_budget_leaves_is_enough_for_a_longer_age() -> None:
    text = "\n".join(found(0, [1.0] * 70, [], 5, everybody=False).describe_night(10.0, 7))
    assert "MARKETING_MAX_AGE_DAYS=14 can be kept" in text
