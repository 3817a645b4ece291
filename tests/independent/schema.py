"""The `source` tables of design section 6 as data: columns with their kinds, the key, and the operations a
table cannot do without.

Column kinds say how strictly a column is compared. Where the design leaves freedom the kind is lenient, and
says so here:

    id        BIGINT                       count     BIGINT
    integer   any integer type             double    DOUBLE, to six digits
    decimal   DECIMAL                      boolean   BOOLEAN
    at        TIMESTAMPTZ, to the second   on        DATE
    observed  DATE: the account's local date of asking
    text      VARCHAR; '' and NULL are the same: the design does not say which stands for an empty text
    word      VARCHAR in any case: the service's `Draft` or `draft`, `Yelp` or `yelp`
    any_id    VARCHAR or BIGINT: section 6 gives TEXT for profile ids only, and a post's channel id is one of those
    texts     VARCHAR[]; NULL and [] are the same
    details   JSON; numbers and their texts are the same, and so are NULL, [] and {}
    custom    JSON object of field id to value; empty values count as absent, announced surprises are left aside
Generated keys (`review_key`, `event_key` …) are not compared, only checked to be unique.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableSpec:
    name: str
    key: tuple[str, ...]
    columns: dict[str, str]  # compared columns -> kind
    needs: tuple[str, ...]  # operations without which it stays empty
    keeps_extra: bool = (
        True  # one row is one entry of an answer, so what nobody announced is found in `extra`
    )

    @property
    def natural_key(self) -> tuple[str, ...]:
        """The key without its generated part: good for pairing rows in a report."""
        return tuple(column for column in self.key if column in self.columns)


def _columns(words: str) -> dict[str, str]:
    """`name:kind` words; the kind follows from the name's suffix when it is not given."""
    suffixes = {"_id": "id", "_count": "count", "_percent": "double", "_at": "at", "_on": "on"}
    found = {}
    for word in words.split():
        name, _, kind = word.partition(":")
        by_name = next((kind for suffix, kind in suffixes.items() if name.endswith(suffix)), "text")
        if name.startswith(("is_", "has_")):
            by_name = "boolean"
        found[name] = kind or ("observed" if name == "observed_on" else by_name)
    return found


def _table(name: str, key: str, columns: str, needs: str, *, keeps_extra: bool = True) -> TableSpec:
    return TableSpec(name, tuple(key.split()), _columns(columns), tuple(needs.split()), keeps_extra)


_MAIL = "emailmarketing"
_CAMPAIGN_STATS = f"{_MAIL}/campaigns {_MAIL}/stats"
_CONTACTS = f"{_MAIL}/getlists {_MAIL}/getcontacts"
_TIMELINES = f"{_CONTACTS} {_MAIL}/getcontacttimeline"

_ALL = (
    _table(
        "business",
        "",
        "business_id business_name contact_name phone_number service_name package timezone",
        "app/me",
    ),
    _table(
        "direct_reviews",
        "review_id",
        "review_id email phone reviewed_at inquiry notes rating",
        "reputation/direct",
    ),
    _table(
        "online_reviews",
        "review_key",
        "channel:word username reviewed_at inquiry rating:double rating_raw source_url",
        "reputation/online",
    ),
    _table(
        "online_review_channels",
        "channel observed_on",
        "channel:word observed_on average_rating:double review_count",
        "reputation/online",
    ),
    _table(
        "sentiment_mentions",
        "mention_key",
        "polarity channel:word reviewed_on inquiry",
        "reputation/sentiment",
    ),
    _table(
        "sentiment_totals",
        "from_on to_on",
        "from_on to_on positive_count negative_count",
        "reputation/sentiment",
        keeps_extra=False,
    ),
    _table("review_stats", "period_on", "period_on good_count bad_count", "reputation/stats"),
    _table(
        "social_media_stats",
        "period_on network",
        "period_on network mention_count",
        "reputation/stats",
        keeps_extra=False,
    ),
    _table("feedback_views", "period_on", "period_on view_count", "reputation/stats"),
    _table(
        "social_profiles",
        "network kind profile_id",
        "network kind profile_id:text name screen_name full_name",
        "socialmedia/channels",
    ),
    _table(
        "social_posts",
        "post_id network",
        "post_id network channel_type:word channel_id:any_id channel_name scheduled_at message "
        "photo_thumb_url photo_url",
        "socialmedia/calendar",
    ),
    _table(
        "social_post_details",
        "post_id network",
        "post_id network title posted_at uid type:word image_url profile",
        "socialmedia/calendar socialmedia/getpost",
    ),
    _table(
        "social_links",
        "link_id",
        "link_id short_url real_url message created_at track_count",
        "socialmedia/stats",
    ),
    _table(
        "social_link_clicks",
        "link_id network observed_on",
        "link_id network observed_on click_count",
        "socialmedia/stats",
        keeps_extra=False,
    ),
    _table(
        "campaigns",
        "campaign_id",
        "campaign_id status:word type subject message reply_to from_email from_name created_at",
        f"{_MAIL}/campaigns",
    ),
    _table(
        "campaign_stats",
        "campaign_id observed_on",
        "campaign_id observed_on opened_count unopened_count bounced_count unsubscribed_count "
        "opened_percent unopened_percent bounced_percent unsubscribed_percent",
        _CAMPAIGN_STATS,
        keeps_extra=False,
    ),
    _table(
        "campaign_links",
        "campaign_id url observed_on",
        "campaign_id url observed_on message clicker_count click_count",
        _CAMPAIGN_STATS,
        keeps_extra=False,
    ),
    _table(
        "campaign_clickers",
        "campaign_id url email",
        "campaign_id url email click_count",
        _CAMPAIGN_STATS,
        keeps_extra=False,
    ),
    _table(
        "lists",
        "list_id",
        "list_id name form_title email_subject reply_to from_email from_name confirmation_email "
        "success_email "
        "confirmation_message success_message error_message is_double_opt_in notify_email created_at",
        f"{_MAIL}/getlists",
    ),
    _table(
        "list_fields",
        "list_id field_id",
        "list_id field_id:text label",
        f"{_MAIL}/getlists",
        keeps_extra=False,
    ),
    _table("audiences", "audience_id", "audience_id name", f"{_MAIL}/getaudiences"),
    _table(
        "contacts",
        "list_id contact_id",
        "list_id contact_id email status:word status_code:integer registered_at custom_fields:custom",
        _CONTACTS,
    ),
    _table(
        "timeline_events",
        "contact_id event_key",
        "contact_id key snippet occurred_at details:details",
        _TIMELINES,
    ),
    _table(
        "timeline_visits",
        "contact_id visit_key",
        "contact_id link utm_campaign utm_source utm_medium utm_term utm_content visited_at",
        _TIMELINES,
    ),
    _table(
        "timeline_automations",
        "contact_id automation_key",
        "contact_id name type triggered_at details:details",
        _TIMELINES,
    ),
    _table(
        "coupons",
        "coupon_id",
        "coupon_id email coupon_code is_redeemed redeemed_on",
        f"{_CONTACTS} {_MAIL}/getcoupon",
    ),
    _table(
        "users",
        "business_id user_id",
        "business_id user_id full_name username user_group status:word",
        "user/lists",
    ),
    _table("managers", "manager_id", "manager_id full_name email status:word", "user/managers"),
    _table("user_groups", "group_id", "group_id name status:word", "user/groups"),
    _table(
        "goals",
        "goal_id",
        "goal_id domain_id name value_type value:decimal type event_type event_link_rule links:texts "
        "has_action action_id action_name",
        "goal/lists",
    ),
    _table(
        "webhooks",
        "webhook_id",
        "webhook_id name type domain_id url_filter url_link action_type execute_for device_filter "
        "repeat_interval "
        "delay_seconds:integer action_style",
        "webhook/lists",
    ),
)

TABLES: dict[str, TableSpec] = {spec.name: spec for spec in _ALL}
