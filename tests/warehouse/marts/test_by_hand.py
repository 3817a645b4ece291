"""Every mart over a handful of rows (`by_hand`), against rows that were worked out by hand."""

import datetime as dt
from typing import Any

import duckdb
import pytest

from tests.warehouse.marts.by_hand import ACCOUNT, NOW, at, on, row
from tests.warehouse.marts.comparing import is_same
from tests.warehouse.marts.expected import plain
from tests.warehouse.marts.rows import frame

HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)


def _unknown(count: int) -> list[None]:
    return [None] * count


_CHANGES = """campaign_id observed_on days_covered sent_change opened_change unsubscribed_change
    click_change click_count"""
_RATES = """campaign_id sent_count open_rate click_rate bounce_rate unsubscribe_rate comparable_count_90d
    median_open_rate_90d open_rank_90d channel opened_percent is_percent_inconsistent matched_message_rate
    median_hours_to_open opened_within_1h_rate opened_within_24h_rate"""
_LINK = """campaign_id clicker_count click_count click_count_7d click_rate click_share_rate click_rank
    is_current"""
_MESSAGE = "contact_id kind channel campaign_id is_opened opened_at is_quick_open click_count clicked_at"
_DAY = """day_on good_count bad_count online_review_count average_rating positive_count view_count
    good_rate_7d view_count_mean_7d"""
_CHANNEL = """channel review_count average_rating average_rating_28d good_count_7d bad_count_7d good_rate_7d
    positive_rate_7d view_count_mean_7d"""
_PUBLISHED = "post_id is_published weekday hour link_count click_count"
_LINKED = "link_id click_count click_count_7d clicks_per_day network_count top_network post_count"
_NETWORK = "network day_on mention_count post_count click_change"
_ADDRESS = """email contact_count status sent_count opened_count open_of_sent_90d_rate days_since_active recency_tier frequency_tier
    engagement_tier click_engagement_tier days_since_clicked sms_sent_count sms_clicked_count redeemed_count"""
_DOMAIN = """domain address_count active_count sent_90d_count open_of_sent_90d_rate relative_open_90d
    is_suspicious"""
_AUTOMATION = """automation channel triggered_on triggered_count open_known_count opened_count
    open_of_sent_rate clicked_count"""
_CREDIT = """outcome outcome_key touch_number touch source campaign_id is_landing first_credit last_credit
    linear_credit value"""
_STEP = """email transition_number transition day_on is_day_known reaction days_since_active
    messages_since_active_count subject"""
_REVIEW = """review_id days_since_review email is_contact engagement_tier message_count activity_pushed_at
    is_waiting"""
_MATCHING = "kind channel message_count matched_count ambiguous_count unmatched_count matched_message_rate"
_LIST = "list_id day_on joined_count left_count size active_size days_covered"
_HEADLINES = """day_on member_count joined_count left_count list_days_covered mail_days_covered sent_change opened_change click_change
    good_count bad_count
    view_count mention_count post_count social_click_change"""
_COHORT = """registered_month months_since address_count read_count responder_count clicker_count
    responder_rate"""
_GOAL = """goal_id credited_to source can_be_told first_touch_count last_touch_count first_touch_value
    last_touch_value"""
_MEMBERS = """list_id address_count active_count active_90d_count lost_90d_count active_change_90d churn_90d_rate sent_90d_count
    opened_90d_count open_of_sent_90d_rate click_of_sent_90d_rate"""
_PERIOD = """period begins_on ends_on is_over campaign_count sent_count opened_count open_rate click_rate joined_count online_review_count
    average_rating redeemed_count sent_count_before joined_count_before sent_count_year_before"""
_COVERED = "subject part part_count read_part_count coverage_rate as_of due_at"

_TIERS = ("30 days", "regular", "engaged", "engaged")
#: What the periods have in which both campaigns are.
_CAMPAIGNS = (2, 12, 6, 6 / 11, 2 / 11, None, None, 2.5, 1)
_NO_CAMPAIGN = (0, 0, 0, *_unknown(5), 0)
_SUBJECTS = ("contact coupons", "contact timelines", "contacts", "feedback_views", "review_stats")
_SUBJECTS += ("sentiment_mentions", "social_link_clicks", "social_posts", "timeline_events")
_QUARTER = dt.date(2026, 1, 1)
_COUPONS = "issued_month issued_count redeemed_count redemption_rate last_redeemed_on"
_SIGNUPS = "registered_month address_count active_count read_count engaged_count engaged_rate"

#: Mart → its rows of the account, each with the columns that matter.
BY_HAND: dict[str, list[dict[str, Any]]] = {
    "account_daily": [
        row(_HEADLINES, on(17), 3, *_unknown(13)),
        row(_HEADLINES, on(18), 2, 0, 1, 1, 1, 0, 1, 1, 3, 1, 8, None, 1, None),
        row(_HEADLINES, on(19), 2, None, None, None, None, None, None, None, 0, 0, 0, None, 0, None),
        row(_HEADLINES, on(20), 3, 1, 0, 2, 2, 2, 3, 2, None, None, None, 7, None, 7),
    ],
    # the visit of the 16th is where the click led to; what Ben clicked is told without a time
    "attribution": [
        row(_CREDIT, "goal", "1/1", 1, "click", "(click)", 1, False, 1, 1, 1, 80),
        row(_CREDIT, "goal", "1/1", 2, "visit", "email", None, True, 0, 0, 0, 80),
        row(_CREDIT, "goal", "1/2", 1, "click", "(click)", 1, False, 1, 1, 1, 80),
        row(_CREDIT, "redemption", "1", 1, "click", "(click)", 1, False, 1, 1, 1, None),
        row(_CREDIT, "redemption", "1", 2, "visit", "email", None, True, 0, 0, 0, None),
        row(_CREDIT, "visit", "1/v1", 1, "click", "(click)", 1, False, 1, 1, 1, None),
    ],
    "automation_activity": [
        row(_AUTOMATION, "Reminder", "sms", on(19), 1, 0, None, None, None),
        row(_AUTOMATION, "Welcome", "email", on(1), 1, 1, 0, 0, 0),
    ],
    "campaign_daily": [
        row(_CHANGES, 1, on(17), None, None, None, None, None, 0),
        row(_CHANGES, 1, on(18), 1, 0, 1, 0, 1, 1),
        row(_CHANGES, 1, on(20), 2, 0, 2, 1, 2, 3),
        row(_CHANGES, 2, on(20), 2, 2, 1, 0, 0, 0),
    ],
    "campaign_performance": [
        row(_RATES, 1, 10, 5 / 9, 2 / 9, 0.1, 1 / 9, 0, None, 1, "email", None, None, 1, 1.5, 0, 1),
        row(_RATES, 2, 2, 0.5, 0, 0, 0, 1, 5 / 9, 2, "email", 366.67, True, 1, None, None, None),
    ],
    "campaign_link_clicks": [row(_LINK, 1, 2, 3, None, 2 / 9, 1, 1, True)],
    "send_time_performance": [
        row("weekday hour campaign_count open_rate", "Monday", 10, 1, 5 / 9),
        row("weekday hour campaign_count open_rate", "Thursday", 11, 1, 0.5),
    ],
    "cohort_retention": [row(_COHORT, on(1), 0, 2, 1, 1, 1, 1)],  # of Ben nothing was read
    "contact_campaign": [
        row(_MESSAGE, 1, "automated", "email", None, False, None, False, 0, None),
        row(_MESSAGE, 1, "standard", "email", 1, True, at("16 10:30"), False, 2, at("16 10:40")),
        row(_MESSAGE, 2, "automated", "sms", *_unknown(6)),
        row(_MESSAGE, 2, "standard", "email", 2, False, None, False, 0, None),
    ],
    "contact_engagement": [
        row(_ADDRESS, "anna@example.com", 2, "active", 2, 1, 0.5, 4, *_TIERS, 4, 0, 0, 1),
        row(_ADDRESS, "ben@example.org", 1, "active", *_unknown(6), "unread", "unread", *_unknown(3), 0),
    ],
    "contact_lifecycle": [
        # number 1 is of the 16th, when she clicked
        row(_STEP, "anna@example.com", 2, "unsubscribed", on(17), False, None, 1, 0, "Spring menu"),
        row(_STEP, "carl@example.net", 1, "bounced", on(17), False, None, None, 0, None),
    ],
    "coupon_funnel": [row(_COUPONS, "unknown", 2, 1, 0.5, on(18))],
    "deliverability_by_domain": [
        row(_DOMAIN, "example.com", 1, 1, 2, 0.5, 1, False),
        row(_DOMAIN, "example.org", 1, 1, None, None, None, None),
    ],
    "goal_conversions": [
        row(_GOAL, 1, "1", "(click)", True, 2, 2, 160, 160),
        row(_GOAL, 2, "(none)", "(none)", True, 0, 0, None, None),
    ],
    "list_growth_daily": [
        row(_LIST, 1, on(17), None, None, 1, 1, None),
        row(_LIST, 1, on(18), 0, 0, 1, 1, 1),
        row(_LIST, 1, on(19), None, None, 1, 1, None),
        row(_LIST, 1, on(20), 1, 0, 2, 2, 2),
        row(_LIST, 2, on(17), None, None, 2, 0, None),
        row(_LIST, 2, on(18), 0, 1, 1, 0, 1),
        row(_LIST, 2, on(19), None, None, 1, 0, None),
        row(_LIST, 2, on(20), 0, 0, 1, 0, 2),
    ],
    "list_performance": [
        row(_MEMBERS, 1, 2, 2, None, None, None, None, 3, 1, 1 / 3, 1 / 3),
        row(_MEMBERS, 2, 1, 0, None, None, None, None, 0, 0, None, None),
    ],
    "message_matching": [
        row(_MATCHING, "automated", "email", 1, 0, 0, 1, 0),
        row(_MATCHING, "automated", "sms", 1, 0, 0, 1, 0),
        row(_MATCHING, "standard", "email", 2, 2, 0, 0, 1),
    ],
    "period_summary": [
        row(_PERIOD, "month", on(1), on(31), False, *_CAMPAIGNS, *_unknown(3)),
        row(_PERIOD, "quarter", _QUARTER, on(31), False, *_CAMPAIGNS, *_unknown(3)),
        row(_PERIOD, "week", dt.date(2026, 2, 23), on(1), True, *_NO_CAMPAIGN, *_unknown(3)),
        row(_PERIOD, "week", on(2), on(8), True, *_NO_CAMPAIGN, 0, None, None),
        row(_PERIOD, "week", on(9), on(15), True, *_NO_CAMPAIGN, 0, None, None),
        row(_PERIOD, "week", on(16), on(22), False, *_CAMPAIGNS, 0, None, None),
    ],
    # the two campaigns are of the week that is not over; nobody opened the greeting of 1 March
    "send_frequency": [
        row("messages_a_week contact_week_count contact_count sent_count clicked_week_rate", 1, 1, 1, 1, 0)
    ],
    "signup_cohorts": [row(_SIGNUPS, on(1), 2, 2, 1, 1, 1)],
    "review_daily": [
        row(_DAY, on(18), 3, 1, None, None, None, 8, 0.75, 8),
        row(_DAY, on(19), 0, 0, None, 2.5, None, 0, 0.75, 4),
        row(_DAY, on(20), None, None, 0, None, None, None, 0.75, 4),
    ],
    "reviews_waiting": [
        row(_REVIEW, 2, 4, "anna@example.com", True, "engaged", 1, None, True),
        row(_REVIEW, 3, 2, None, False, None, 0, None, False),  # it has a note
    ],
    "reputation_overview": [
        row(_CHANNEL, "Feedback page", 3, None, None, None, None, None, None, 4),
        row(_CHANNEL, "Yelp", 2, 3.9, 2.5, None, None, None, None, None),
    ],
    "social_post_performance": [
        row(_PUBLISHED, 1, True, "Wednesday", 18, 1, 6),
        row(_PUBLISHED, 2, False, "Wednesday", 18, 0, None),
    ],
    "social_link_performance": [
        row(_LINKED, 1, 9, 9, 3, 2, "facebook", 1),
        row(_LINKED, 2, 0, 0, 0, 0, None, 0),
    ],
    "social_daily": [
        row(_NETWORK, "facebook", on(18), None, 1, None),
        row(_NETWORK, "facebook", on(20), 7, None, 4),
        row(_NETWORK, "twitter", on(20), None, None, 3),
    ],
    "data_coverage": [
        row(_COVERED, "contact coupons", "contact", 3, 0, 0, None, None),
        row(_COVERED, "contact timelines", "contact", 3, 2, 2 / 3, NOW - 6 * HOUR, NOW + 6 * DAY),
        row(_COVERED, "contacts", "scope", 2, 1, 0.5, NOW, None),
        row(_COVERED, "feedback_views", "day", 3, 3, 1, NOW, None),
        row(_COVERED, "review_stats", "day", 3, 3, 1, NOW, None),
        row(_COVERED, "sentiment_mentions", "day", 3, 0, 0, NOW, None),
        row(_COVERED, "social_link_clicks", "scope", 1, 1, 1, NOW, None),
        row(_COVERED, "social_posts", "day", 3, 3, 1, NOW, None),
        row(_COVERED, "timeline_events", "scope", 1, 1, 1, NOW, NOW + 6 * DAY),
    ],
    "data_freshness": [
        row("subject is_overdue", subject, subject in ("contact timelines", "timeline_events"))
        for subject in _SUBJECTS
    ],
}


@pytest.mark.parametrize("mart", BY_HAND)
def test_the_mart_is_as_worked_out_by_hand(mart: str, marts: duckdb.DuckDBPyConnection) -> None:
    wanted = BY_HAND[mart]
    since = "and day_on >= date '2026-03-17'" if "day_on" in wanted[0] else ""
    mine = f"from marts.{mart} where account = '{ACCOUNT}' {since}"
    found = plain(frame(marts, f"select {', '.join(wanted[0])} {mine} order by all"))
    assert len(found) == len(wanted)
    for found_row, expected in zip(found, wanted, strict=True):
        wrong = {
            name: found_row[name] for name, value in expected.items() if not is_same(found_row[name], value)
        }
        assert not wrong, f"expected: {expected}"
