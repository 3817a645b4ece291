"""`sync --dry-run`: figures agree for any limit, and it promises to read everybody only when it does."""

from typing import Any
from unittest.mock import Mock

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from assets.planning.crawl_plan import COUPONS, TIMELINES, Planner
from assets.planning.order import Rules
from assets.sources import SOURCE_ASSETS
from home.output import AccountPlan
from marketing_sync.night_plan import plan_account
from pipelines.reading import NightLimits
from tests.assets.planning.people import NOW, rows
from tests.assets.planning.test_crawl_plan import coupon_rows

WHOLE = "it reads every timeline and all coupons"
#: Up to four groups of contacts that were asked so many days ago, or never.
groups = st.lists(st.tuples(st.one_of(st.none(), st.floats(0, 12)), st.integers(0, 60)), max_size=4)
ages = groups.map(lambda found: [days for days, count in found for _ in range(count)])


def planned(listings: int, timelines: list[Any], coupons: list[Any], **rules: Any) -> AccountPlan:
    warehouse = Mock()
    warehouse.run_query.return_value = pa.table({"count": [listings]})
    warehouse.timeline_candidates.return_value = rows(timelines)
    warehouse.coupon_candidates.return_value = coupon_rows(coupons)
    planner = Planner(warehouse, "main", lambda: Rules(**rules), (TIMELINES, COUPONS), lambda: NOW)
    assets = [SOURCE_ASSETS[name] for name in (TIMELINES, COUPONS)]
    return plan_account(NightLimits(30, 7, {"main": 4.0}), assets, planner)


@given(st.integers(0, 200), ages, ages, st.one_of(st.none(), st.integers(0, 300)), st.integers(0, 200))
@example(153, [1.0] * 50, [1.0] * 45, 3, 0)
@example(0, [None] * 60, [], 60, 0)
def test_figures_agree_for_any_limit(
    listings: int, timelines: list[Any], coupons: list[Any], limit: int | None, room: int
) -> None:
    found = planned(listings, timelines, coupons, limit=limit, room=room)
    assert found.requests == sum(line.requests for line in found.planned)
    assert limit is None or found.requests <= limit
    for line in found.planned:
        assert line.requests >= 0
        assert line.left_out >= 0
        assert line.of is None or line.requests + line.left_out <= line.of
    text = "\n".join(found.sentences)
    assert text.startswith(f"the next sync sends {found.requests:,} requests")
    left = {line.what: line.left_out for line in found.planned if line.left_out}
    assert ("the limit of requests leaves out" in text) == bool(left)
    by_name = {line.what: line for line in found.planned}
    is_whole = all(by_name[name].requests == by_name[name].of for name in (TIMELINES, COUPONS))
    assert (WHOLE in text) == (is_whole and not left and bool(timelines or coupons))


def test_a_night_that_is_too_short_says_which_setting_it_goes_by() -> None:
    found = planned(10, [1.0] * 70, [], room=20)
    assert "it reads 20 of 70 timelines and coupons" in found.sentences[-2]
    assert "30 minutes (MARKETING_NIGHT_MINUTES)" in found.sentences[-1]


def test_a_limit_that_the_listings_use_up_promises_nothing() -> None:
    text = "\n".join(planned(153, [1.0] * 50, [1.0] * 45, limit=3).sentences)
    assert "leaves out 150 of listings" in text
    assert "new contacts are not noticed" in text


def test_a_limit_that_is_too_small_says_what_it_would_take() -> None:
    text = "\n".join(planned(0, [8.0] * 70, [], limit=5).sentences)
    assert "leaves out 65 of timelines" in text
    assert "reading everybody within 7 days takes 70 requests" in text
    assert "and 10 on other nights" in text
