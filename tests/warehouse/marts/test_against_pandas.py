"""Every mart equals what plain Python and pandas make of the same source rows."""

from collections.abc import Callable

import duckdb
import pandas as pd
import pytest

from tests.warehouse.marts import (
    expected_attribution,
    expected_campaigns,
    expected_contacts,
    expected_engagement,
    expected_growth,
    expected_lifecycle,
    expected_lists,
    expected_periods,
    expected_reputation,
    expected_social,
)
from tests.warehouse.marts.comparing import differences
from tests.warehouse.marts.expected import Found, Source
from tests.warehouse.marts.rows import frame


def _performed(source: Source) -> Found:
    return expected_campaigns.performance(source, expected_contacts.sent_at(source))


#: Mart → its key, and the calculation.
MARTS: dict[str, tuple[tuple[str, ...], Callable[[Source], Found]]] = {
    "account_daily": (("account", "day_on"), expected_growth.account_daily),
    "anomalies": (
        ("account", "day_on", "figure"),
        lambda source: expected_growth.anomalies(source, _performed(source)),
    ),
    "attribution": (("account", "outcome", "outcome_key", "touch_number"), expected_attribution.attribution),
    "automation_activity": (
        ("account", "automation", "channel", "triggered_on"),
        expected_engagement.automation_activity,
    ),
    "campaign_daily": (("account", "campaign_id", "observed_on"), expected_campaigns.campaign_daily),
    "campaign_link_clicks": (
        ("account", "campaign_id", "url"),
        lambda source: expected_campaigns.campaign_link_clicks(source, _performed(source)),
    ),
    "campaign_performance": (("account", "campaign_id"), lambda source: _performed(source)),
    "cohort_retention": (("account", "registered_month", "months_since"), expected_periods.cohort_retention),
    "contact_campaign": (("account", "contact_id", "message_key"), expected_contacts.contact_campaign),
    "contact_lifecycle": (("account", "email", "transition_number"), expected_lifecycle.contact_lifecycle),
    "contact_engagement": (("account", "email"), expected_engagement.contact_engagement),
    "coupon_funnel": (("account", "issued_month"), expected_engagement.coupon_funnel),
    "data_coverage": (("account", "subject"), expected_reputation.data_coverage),
    "data_freshness": (("account", "subject"), expected_reputation.data_freshness),
    "deliverability_by_domain": (("account", "domain"), expected_engagement.deliverability_by_domain),
    "goal_conversions": (
        ("account", "goal_id", "credited_to", "source"),
        expected_attribution.goal_conversions,
    ),
    "list_growth_daily": (("account", "list_id", "day_on"), expected_growth.list_growth_daily),
    "list_performance": (("account", "list_id"), expected_lists.list_performance),
    "message_matching": (("account", "kind", "channel"), expected_contacts.message_matching),
    "period_summary": (
        ("account", "period", "begins_on"),
        lambda source: expected_periods.period_summary(source, _performed(source)),
    ),
    "reputation_overview": (("account", "channel", "kind"), expected_reputation.reputation_overview),
    "reviews_waiting": (("account", "review_id"), expected_reputation.reviews_waiting),
    "review_daily": (("account", "day_on"), expected_reputation.review_daily),
    "send_time_performance": (
        ("account", "weekday_number", "hour"),
        lambda source: expected_campaigns.send_time_performance(source, _performed(source)),
    ),
    "send_frequency": (("account", "messages_a_week"), expected_engagement.send_frequency),
    "signup_cohorts": (("account", "registered_month"), expected_engagement.signup_cohorts),
    "social_daily": (("account", "network", "day_on"), expected_social.social_daily),
    "social_link_performance": (("account", "link_id"), expected_social.social_link_performance),
    "social_post_performance": (("account", "post_id", "network"), expected_social.social_post_performance),
}


@pytest.mark.parametrize("mart", MARTS)
@pytest.mark.slow
def test_the_mart_equals_an_independent_calculation(
    mart: str, marts: duckdb.DuckDBPyConnection, source: Source
) -> None:
    key, calculate = MARTS[mart]
    found = frame(marts, f"from marts.{mart}")
    assert len(found) > 0
    assert list(differences(found, calculate(source), key)) == []


def test_the_comparison_sees_every_kind_of_difference() -> None:
    mart = pd.DataFrame({"key": [1, 2], "value": [1.5, None]})
    same: Found = [{"key": 1, "value": 1.5}, {"key": 2, "value": None}]
    assert list(differences(mart, same, ["key"])) == []
    for wrong in (
        same[:1],
        [*same, {"key": 3, "value": 0}],
        [{"key": 1, "value": 1.6}, same[1]],
        [same[0], {"key": 2, "value": 0}],
    ):
        assert len(list(differences(mart, wrong, ["key"]))) == 1
    assert list(differences(mart, [{"key": 1}, {"key": 2}], ["key"])) == [
        "columns on one side only: ['value']"
    ]
