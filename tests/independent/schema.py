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

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class TableSpec:
    name: str
    key: tuple[str, ...]
    columns: dict[str, str]  # compared columns -> kind
    needs: tuple[str, ...]  # operations without which it stays empty
    #: One row is one entry of an answer, so what nobody announced is found in `extra`.
    keeps_extra: bool = True

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


#: Name | key | operations it needs | "no extra" where no entry of an answer is one row; below, the columns.
_TABLES = """
business |  | app/me
    business_id business_name contact_name phone_number service_name package timezone
direct_reviews | review_id | reputation/direct
    review_id email phone reviewed_at inquiry notes rating
online_reviews | review_key | reputation/online
    channel:word username reviewed_at inquiry rating:double rating_raw source_url
online_review_channels | channel observed_on | reputation/online
    channel:word observed_on average_rating:double review_count
sentiment_mentions | mention_key | reputation/sentiment
    polarity channel:word reviewed_on inquiry
sentiment_totals | from_on to_on | reputation/sentiment | no extra
    from_on to_on positive_count negative_count
review_stats | period_on | reputation/stats
    period_on good_count bad_count
social_media_stats | period_on network | reputation/stats | no extra
    period_on network mention_count
feedback_views | period_on | reputation/stats
    period_on view_count
social_profiles | network kind profile_id | socialmedia/channels
    network kind profile_id:text name screen_name full_name
social_posts | post_id network | socialmedia/calendar
    post_id network channel_type:word channel_id:any_id channel_name scheduled_at message
    photo_thumb_url photo_url
social_post_details | post_id network | socialmedia/calendar socialmedia/getpost
    post_id network title posted_at uid type:word image_url profile
social_links | link_id | socialmedia/stats
    link_id short_url real_url message created_at track_count
social_link_clicks | link_id network observed_on | socialmedia/stats | no extra
    link_id network observed_on click_count
campaigns | campaign_id | emailmarketing/campaigns
    campaign_id status:word type subject message reply_to from_email from_name created_at
campaign_stats | campaign_id observed_on | emailmarketing/campaigns emailmarketing/stats | no extra
    campaign_id observed_on opened_count unopened_count bounced_count unsubscribed_count opened_percent
    unopened_percent bounced_percent unsubscribed_percent
campaign_links | campaign_id url observed_on | emailmarketing/campaigns emailmarketing/stats | no extra
    campaign_id url observed_on message clicker_count click_count
campaign_clickers | campaign_id url email | emailmarketing/campaigns emailmarketing/stats | no extra
    campaign_id url email click_count
lists | list_id | emailmarketing/getlists
    list_id name form_title email_subject reply_to from_email from_name confirmation_email success_email
    confirmation_message success_message error_message is_double_opt_in notify_email created_at
list_fields | list_id field_id | emailmarketing/getlists | no extra
    list_id field_id:text label
audiences | audience_id | emailmarketing/getaudiences
    audience_id name
contacts | list_id contact_id | emailmarketing/getlists emailmarketing/getcontacts
    list_id contact_id email status:word status_code:integer registered_at custom_fields:custom
timeline_events | contact_id event_key | emailmarketing/getlists emailmarketing/getcontacts emailmarketing/getcontacttimeline
    contact_id key snippet occurred_at details:details
timeline_visits | contact_id visit_key | emailmarketing/getlists emailmarketing/getcontacts emailmarketing/getcontacttimeline
    contact_id link utm_campaign utm_source utm_medium utm_term utm_content visited_at
timeline_automations | contact_id automation_key | emailmarketing/getlists emailmarketing/getcontacts emailmarketing/getcontacttimeline
    contact_id name type triggered_at details:details
coupons | coupon_id | emailmarketing/getlists emailmarketing/getcontacts emailmarketing/getcoupon
    coupon_id email coupon_code is_redeemed redeemed_on
users | business_id user_id | user/lists
    business_id user_id full_name username user_group status:word
managers | manager_id | user/managers
    manager_id full_name email status:word
user_groups | group_id | user/groups
    group_id name status:word
goals | goal_id | goal/lists
    goal_id domain_id name value_type value:decimal type event_type event_link_rule links:texts
    has_action action_id action_name
webhooks | webhook_id | webhook/lists
    webhook_id name type domain_id url_filter url_link action_type execute_for device_filter
    repeat_interval delay_seconds:integer action_style
"""


def _read() -> Iterator[TableSpec]:
    for text in re.split(r"\n(?! )", _TABLES.strip()):
        head, *columns = text.splitlines()
        name, key, needs, *marks = (part.strip() for part in head.split("|"))
        yield TableSpec(
            name, tuple(key.split()), _columns(" ".join(columns)), tuple(needs.split()), not marks
        )


TABLES: dict[str, TableSpec] = {spec.name: spec for spec in _read()}
