from typing import Any

import pytest

from marketing_api.operations import campaigns
from marketing_api.records.campaigns import Campaign, CampaignClicker, CampaignLink, CampaignStats
from tests.marketing_api import samples
from tests.marketing_api.responses import DAY, flawed, read, records, rejected, utc

ASKED = {"id": 41, "type": "standard"}


def listed(items: Any, **params: Any) -> list[tuple[int, str | None, str | None]]:
    found = records(Campaign, campaigns.CAMPAIGNS, {"campaigns": {"count": "2", "items": items}}, **params)
    return [(campaign.campaign_id, campaign.status, campaign.type) for campaign in found]


def statistics(campaign: Any) -> dict[type, list[Any]]:
    return {
        batch.record: batch.records
        for batch in read(campaigns.STATS, {"campaign": campaign}, id=41, type="standard")
    }


def test_status_is_the_group_and_type_follows_from_it() -> None:
    first, second = records(Campaign, campaigns.CAMPAIGNS, samples.CAMPAIGNS)
    assert (first.campaign_id, first.status, first.type) == (41, "draft", "standard")
    assert (second.campaign_id, second.status, second.type) == (42, "automation", "automated")
    assert (first.subject, first.reply_to, first.from_email) == (
        "Spring",
        "hi@example.com",
        "news@example.com",
    )
    assert first.created_at == utc("2014-11-04 21:33:00")


@pytest.mark.parametrize(
    "items",
    [
        {"Sent": {"data": [{"id": 1}, {"id": 2}]}},
        {"Sent": {"data": {"1": {"id": 1}, "2": {"id": 2}}}},
        {"Sent": [{"id": 1}, {"id": 2}]},
        {"Sent": {"1": {"id": 1}, "2": {"id": 2}}, "Draft": {"count": 0}, "Scheduled": []},
    ],
    ids=["data list", "data by number", "list", "by number"],
)
def test_group_shapes_give_the_same_campaigns(items: Any) -> None:
    assert listed(items) == [(1, "sent", "standard"), (2, "sent", "standard")]


@pytest.mark.parametrize("entry", [None, 5, "x", [], [1]])
def test_an_entry_of_a_numbered_group_that_is_no_campaign_is_set_aside(entry: Any) -> None:
    (bad,) = rejected(
        campaigns.CAMPAIGNS, {"campaigns": {"items": {"Sent": {"0": entry}, "Draft": {"count": 0}}}}
    )
    assert (bad.raw, bad.reason) == (entry, "not an object")


def test_campaigns_without_groups_have_the_status_that_was_asked_for() -> None:
    assert listed([{"id": 1}], filter="automation") == [(1, "automation", "automated")]
    assert listed({"1": {"id": 1, "status": "Sent"}}) == [(1, "sent", "standard")]
    assert listed([{"id": 1}]) == [(1, None, "standard")]


def test_what_a_flat_list_tells_of_the_sending() -> None:
    told = {"name": "June", "sent_date": "11/05/2014 09:00", "delivery_success": "98", "delivery_failed": 2}
    items = [
        {"id": 1, **told},
        {"id": 2, "sent_date": "", "delivery_success": None, "delivery_failed": "0"},
        {"id": 3},
    ]
    sent, draft, bare = records(
        Campaign, campaigns.CAMPAIGNS, {"campaigns": {"count": 3, "items": items}}, filter="sent"
    )
    assert (sent.name, sent.sent_at, sent.delivered_count, sent.failed_count) == (
        "June",
        utc("2014-11-05 14:00:00"),
        98,
        2,
    )
    assert (draft.sent_at, draft.delivered_count, draft.failed_count) == (None, None, 0)
    assert not {"name", "sent_at", "delivered_count", "failed_count"} & bare.model_fields_set


def test_detail_does_not_know_the_status() -> None:
    (campaign,) = records(Campaign, campaigns.GETCAMPAIGN, samples.CAMPAIGN_DETAIL, id=41, type="automated")
    assert campaign.type == "automated"
    assert "status" not in campaign.model_fields_set
    assert {"message", "campaign_id", "type"} <= campaign.model_fields_set


def test_counts_and_percentages_of_a_campaign() -> None:
    (stats,) = records(CampaignStats, campaigns.STATS, samples.CAMPAIGN_STATS, id=41, type="standard")
    assert (stats.campaign_id, stats.observed_on) == (41, DAY)
    assert (stats.opened_count, stats.opened_percent) == (11, 366.67)
    assert (stats.unopened_count, stats.unopened_percent) == (3, 27.3)
    assert (stats.bounced_count, stats.bounced_percent) == (0, 0.0)
    assert (stats.unsubscribed_count, stats.unsubscribed_percent) == (1, 9.1)


def test_one_odd_statistic_does_not_cost_the_others() -> None:
    (stats,) = statistics({"stats": {"open": "plenty", "bounced": "N/A", "unopened": 3, "spam": "1 (2%)"}})[
        CampaignStats
    ]
    assert (stats.opened_count, stats.bounced_count, stats.unopened_count, stats.unopened_percent) == (
        None,
        None,
        3,
        None,
    )
    assert stats.extra == {"spam": "1 (2%)"}
    (bad,) = flawed(
        campaigns.STATS, {"campaign": {"stats": {"open": "plenty", "spam": "1 (2%)"}}}, id=41, type="standard"
    )
    assert bad.raw == {"campaign_id": "41", "observed_on": DAY, "opened_count": "plenty", "spam": "1 (2%)"}
    assert bad.reason == "opened_count: not a number"


def test_clicks_of_an_address_on_a_link_are_summed_over_its_entries() -> None:
    clickers = records(CampaignClicker, campaigns.STATS, samples.CAMPAIGN_STATS, id=41, type="standard")
    assert {(each.url, each.email): each.click_count for each in clickers} == {
        ("https://corner.example/menu", "ann@example.com"): 5,
        ("https://corner.example/menu", "bob@example.com"): 1,
    }


def test_a_link_is_one_row_whether_or_not_anybody_clicked() -> None:
    links = records(CampaignLink, campaigns.STATS, samples.CAMPAIGN_STATS, id=41, type="standard")
    assert [(each.url, each.message, each.clicker_count, each.click_count) for each in links] == [
        ("https://corner.example/menu", "Menu", 2, 6),
        ("https://corner.example/none", "Nobody", 0, 0),
    ]


def test_an_address_that_clicked_is_one_clicker_in_any_spelling_and_none_without_a_click() -> None:
    clickers = ["Ann@example.com (1 click)", "ann@example.com", "bob@example.com (0 clicks)"]
    rows = statistics({"stats": {}, "clicks": [{"url": "u", "clickers": clickers}]})
    assert (rows[CampaignLink][0].clicker_count, rows[CampaignLink][0].click_count) == (1, 2)
    assert "bob@example.com" not in {row.email for row in rows[CampaignClicker]}


def test_campaign_nobody_got_has_a_row_of_statistics() -> None:
    rows = statistics({"stats": [], "clicks": []})
    assert list(rows) == [CampaignStats]
    assert rows[CampaignStats][0].opened_count is None


def test_unreadable_clicker_is_set_aside_alone() -> None:
    campaign = {"stats": {}, "clicks": [{"url": "u", "clickers": ["nobody", "a@example.com"]}]}
    (bad,) = rejected(campaigns.STATS, {"campaign": campaign}, id=41, type="standard")
    assert (bad.raw, bad.reason) == ("nobody", "not an address with a number of clicks")
    assert [each.click_count for each in statistics(campaign)[CampaignClicker]] == [1]


def test_clicks_of_a_link_with_an_unreadable_clicker_are_not_known() -> None:
    clicks = [
        {"url": "u", "clickers": ["nobody (2)", "a@example.com"]},
        {"url": "v", "clickers": ["a@example.com", "b@example.com (0)"]},
    ]
    first, second = statistics({"stats": {}, "clicks": clicks})[CampaignLink]
    assert (first.clicker_count, first.click_count) == (None, None)
    assert (second.clicker_count, second.click_count) == (1, 1)


@pytest.mark.parametrize(
    "clickers",
    [
        ["a@example.com (2)", "b@example.com: 3 clicks"],
        {"a@example.com": 2, "b@example.com": "3"},
        [{"email": "a@example.com", "clicks": 2}, {"email": "b@example.com", "clicks": "3"}],
        {"1": ["a@example.com", 2], "2": ["b@example.com", 3]},
    ],
    ids=["texts", "by address", "objects", "numbered pairs"],
)
def test_clickers_in_any_shape_are_addresses_that_join(clickers: Any) -> None:
    campaign = {"stats": {}, "clicks": [{"url": "u", "clickers": clickers}]}
    found = records(CampaignClicker, campaigns.STATS, {"campaign": campaign}, id=41, type="standard")
    assert {each.email: each.click_count for each in found} == {"a@example.com": 2, "b@example.com": 3}


@pytest.mark.parametrize("clickers", [None, "", "a@example.com(2 clicks)", 2, True], ids=str)
def test_what_is_no_list_of_clickers_does_not_tell_all_of_them(clickers: Any) -> None:
    campaign = {"stats": {}, "clicks": [{"url": "u", "clickers": clickers}]}
    found = read(campaigns.STATS, {"campaign": campaign}, id=41, type="standard")
    assert [rows.missing for rows in found if rows.missing] == [["clickers: missing from the response"]]
    assert statistics(campaign)[CampaignLink][0].clicker_count is None
    kept = [unread.raw for rows in found for unread in rows.rejected]
    assert kept == ([clickers] if clickers else []), "what was sent in place of the list is kept"


def test_clickers_are_found_case_aside() -> None:
    campaign = {"stats": {}, "clicks": [{"url": "u", "CLICKERS": ["a@example.com(2 clicks)"]}]}
    found = statistics(campaign)
    assert [(each.email, each.click_count) for each in found[CampaignClicker]] == [("a@example.com", 2)]
    assert found[CampaignLink][0].extra is None


def test_a_numbered_group_is_no_status() -> None:
    assert listed({"1": {"data": [{"id": 1, "status": "Sent"}]}}) == [(1, "sent", "standard")]


def test_a_stated_percentage_is_stored_as_it_is_stated() -> None:
    (stats,) = records(
        CampaignStats,
        campaigns.STATS,
        {"campaign": {"stats": {"open": "11 (366.67%)", "unopened": "3 (100%)"}}},
        **ASKED,
    )
    assert (stats.opened_count, stats.opened_percent, stats.unopened_percent) == (11, 366.67, 100.0)
    assert "as reported by the service" in (CampaignStats.model_fields["opened_percent"].description or "")
