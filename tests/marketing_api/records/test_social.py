from typing import Any

import pytest

from marketing_api.operations import social
from marketing_api.records.social import (
    SocialLink,
    SocialLinkClicks,
    SocialPost,
    SocialPostDetail,
    SocialProfile,
)
from tests.marketing_api import samples
from tests.marketing_api.responses import DAY, read, records, rejected, utc

APRIL = {"from_": "2026-04-01", "to": "2026-04-30"}


def posts(items: Any) -> list[SocialPost]:
    return records(SocialPost, social.CALENDAR, {"calendar": {"count": "1", "items": items}}, **APRIL)


def test_profiles_of_every_sub_list_are_rows() -> None:
    found = records(SocialProfile, social.CHANNELS, samples.CHANNELS)
    assert [(each.network, each.kind, each.profile_id) for each in found] == [
        ("facebook", "page", "123456789012345678901"),
        ("twitter", "profile", "9"),
        ("linkedin", "company", "urn:li:7"),
    ]
    assert (found[1].screen_name, found[1].full_name, found[0].name) == (
        "corner",
        "Corner Café",
        "Corner Café",
    )


def test_unknown_networks_and_sub_lists_are_read_by_the_same_rule() -> None:
    found = records(
        SocialProfile,
        social.CHANNELS,
        {"channels": {"Mastodon": {"count": "1", "Galleries": {"1": {"id": 7}}, "tags": []}}},
    )
    assert [(each.network, each.kind, each.profile_id) for each in found] == [("mastodon", "gallery", "7")]


def test_companies_have_names_of_their_own() -> None:
    """observation 46."""
    channels = {
        "Linkedin": {"count": 0, "profiles": [], "companies": [{"companyId": 7, "companyName": "Corner Ltd"}]}
    }
    (company,) = records(SocialProfile, social.CHANNELS, {"channels": channels})
    assert (company.kind, company.profile_id, company.name) == ("company", "7", "Corner Ltd")


@pytest.mark.parametrize("count", [{"id": "7"}, [{"id": "7"}], {}, []])
def test_a_count_that_is_a_collection_is_no_profile_and_proves_nothing(count: Any) -> None:
    channels = {"channels": {"Facebook": {"count": count, "pages": [{"id": "1"}]}}}
    assert [found.profile_id for found in records(SocialProfile, social.CHANNELS, channels)] == ["1"]
    assert [rows.missing for rows in read(social.CHANNELS, channels)] == [
        ["Facebook: missing from the response"]
    ]


def test_a_null_among_posts_is_set_aside() -> None:
    """It may stand for any post, so that nothing of the range counts as gone."""
    for items in ([None], {"2026-04-02": [None]}, {"1": None}):
        assert len(rejected(social.CALENDAR, {"calendar": {"count": "0", "items": items}}, **APRIL)) == 1, (
            items
        )


def test_post_columns_come_from_its_channel_and_photo() -> None:
    (post,) = records(SocialPost, social.CALENDAR, samples.CALENDAR, **APRIL)
    assert (post.post_id, post.network, post.channel_type, post.channel_id) == (31, "facebook", "page", "12")
    assert (post.channel_name, post.message) == ("Corner Café", "Hello")
    assert (post.photo_thumb_url, post.photo_url) == (
        "https://img.example/t.png",
        "https://img.example/o.png",
    )
    assert post.scheduled_at == utc("2026-04-02 13:15:00")
    assert post.extra is None


@pytest.mark.parametrize(
    "items",
    [
        {"2026-04-02": {"1": samples.POST, "2": {**samples.POST, "id": 32}}},
        {"2026-04-02": [samples.POST, {**samples.POST, "id": 32}]},
        {"1": samples.POST, "2": {**samples.POST, "id": 32}},
        [samples.POST, {**samples.POST, "id": "32"}],
    ],
    ids=["date → number → post", "date → list", "number → post", "list"],
)
def test_calendar_shapes_give_the_same_posts(items: Any) -> None:
    assert [post.post_id for post in posts(items)] == [31, 32]


def test_post_without_a_time_is_on_the_date_it_is_listed_under() -> None:
    (post,) = posts({"2026-04-02": {"1": {"id": 31, "photo": [], "channel": {"network": "twitter"}}}})
    assert post.scheduled_at == utc("2026-04-02 04:00:00")
    assert post.photo_url is None


def test_post_on_two_networks_is_two_rows() -> None:
    found = posts([{"id": 31, "channel": [{"network": "Twitter"}, {"network": "Facebook"}]}])
    assert [(post.post_id, post.network) for post in found] == [(31, "twitter"), (31, "facebook")]


def test_post_without_a_network_is_set_aside() -> None:
    (bad,) = rejected(social.CALENDAR, {"calendar": {"items": [{"id": 31}]}}, **APRIL)
    assert bad.reason == "network: missing"


def test_unknown_members_of_nested_objects_are_kept() -> None:
    channel = {"network": "twitter", "date": "04/02/2026 09:15 AM", "colour": "blue"}
    (post,) = posts([{"id": 31, "channel": channel, "pinned": 1}])
    assert post.extra == {"channel": {"colour": "blue"}, "pinned": 1}


def test_post_detail_is_of_the_network_that_was_asked() -> None:
    (detail,) = records(SocialPostDetail, social.GETPOST, samples.POST_DETAIL, id=31, channel="Twitter")
    assert (detail.post_id, detail.network, detail.uid, detail.type) == (31, "twitter", "12_99", "facebook")
    assert detail.posted_at == utc("2026-04-02 13:15:00")
    assert (detail.image_url, detail.profile, detail.title) == (
        "https://img.example/o.png",
        "Corner Café",
        "Hello",
    )


def test_link_clicks_are_one_row_per_network_and_day() -> None:
    (link,) = records(SocialLink, social.STATS, samples.LINKS)
    assert (link.link_id, link.short_url, link.track_count) == (8, "https://s.example/a", 4)
    assert link.created_at == utc("2013-11-04 16:33:00")
    assert link.extra is None
    clicks = records(SocialLinkClicks, social.STATS, samples.LINKS)
    assert [(each.link_id, each.network, each.click_count, each.observed_on) for each in clicks] == [
        (8, "facebook", 3, DAY),
        (8, "twitter", 1, DAY),
    ]


def test_link_without_clicks_has_none() -> None:
    assert records(SocialLinkClicks, social.STATS, {"stats": {"items": [{"id": 1, "clicks": []}]}}) == []
