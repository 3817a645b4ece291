"""Every `source` table: which record fills it, what identifies a row, and how it is loaded. Declarations only.

Columns follow from the records (`marketing_api.records`). Not here: what the kinds of loading do (`loads/`).
"""

from __future__ import annotations

from marketing_api.operations import campaigns, goals, lists, social, webhooks
from marketing_api.records import account as account_records
from marketing_api.records import campaigns as campaign_records
from marketing_api.records import contacts as contact_records
from marketing_api.records import goals as goal_records
from marketing_api.records import lists as list_records
from marketing_api.records import reputation as reputation_records
from marketing_api.records import social as social_records
from marketing_api.records import timelines as timeline_records
from marketing_api.records import users as user_records
from marketing_api.records import webhooks as webhook_records
from marketing_api.records.fields import Record
from warehouse.table import Accumulate, Column, Daily, LoadKind, Snapshot, Table, Window

__all__ = ["TABLES", "Accumulate", "Column", "Daily", "LoadKind", "Snapshot", "Table", "Window", "by_name"]

#: Every table by name, in the order of declaration.
TABLES: dict[str, Table] = {}


def by_name(name: str) -> Table:
    """KeyError when there is no such table."""
    return TABLES[name]


def _table(name: str, record: type[Record], *key: str, load: LoadKind, area: str, doc: str = "") -> Table:
    table = TABLES[name] = Table(name, record, key, load, area, doc or (record.__doc__ or "").strip())
    return table


BUSINESS = _table("business", account_records.Business, load=Snapshot(), area="account")

DIRECT_REVIEWS = _table("direct_reviews", reputation_records.DirectReview, "review_id", load=Window("reviewed_at"), area="reputation")
ONLINE_REVIEWS = _table("online_reviews", reputation_records.OnlineReview, "review_key", load=Accumulate(), area="reputation")
ONLINE_REVIEW_CHANNELS = _table(
    "online_review_channels", reputation_records.OnlineReviewChannel, "channel", "observed_on", load=Daily(), area="reputation"
)
SENTIMENT_MENTIONS = _table(
    "sentiment_mentions", reputation_records.SentimentMention, "mention_key", load=Window("reviewed_on"), area="reputation"
)
SENTIMENT_TOTALS = _table("sentiment_totals", reputation_records.SentimentTotals, "from_on", "to_on", load=Window(), area="reputation")
REVIEW_STATS = _table("review_stats", reputation_records.ReviewStats, "period_on", load=Window("period_on"), area="reputation")
SOCIAL_MEDIA_STATS = _table(
    "social_media_stats", reputation_records.SocialMediaStats, "period_on", "network", load=Window("period_on"), area="reputation"
)
FEEDBACK_VIEWS = _table("feedback_views", reputation_records.FeedbackViews, "period_on", load=Window("period_on"), area="reputation")

SOCIAL_PROFILES = _table("social_profiles", social_records.SocialProfile, "network", "kind", "profile_id", load=Snapshot(), area="social")
SOCIAL_POSTS = _table("social_posts", social_records.SocialPost, "post_id", "network", load=Window("scheduled_at"), area="social")
SOCIAL_POST_DETAILS = _table(
    "social_post_details",
    social_records.SocialPostDetail,
    "post_id",
    "network",
    load=Snapshot(
        scope={"post_id": "id", "network": "channel"},
        is_whole=True,
        is_guarded=False,
        detail=social.GETPOST.name,
        within="social_posts",
    ),
    area="social",
)
SOCIAL_LINKS = _table("social_links", social_records.SocialLink, "link_id", load=Snapshot(), area="social")
SOCIAL_LINK_CLICKS = _table(
    "social_link_clicks", social_records.SocialLinkClicks, "link_id", "network", "observed_on", load=Daily(), area="social"
)

CAMPAIGNS = _table(
    "campaigns",
    campaign_records.Campaign,
    "campaign_id",
    load=Snapshot(listing=(campaigns.CAMPAIGNS.name,), detail=campaigns.GETCAMPAIGN.name),
    area="campaigns",
)
CAMPAIGN_STATS = _table("campaign_stats", campaign_records.CampaignStats, "campaign_id", "observed_on", load=Daily(), area="campaigns")
CAMPAIGN_LINKS = _table(
    "campaign_links", campaign_records.CampaignLink, "campaign_id", "url", "observed_on", load=Daily(), area="campaigns"
)
CAMPAIGN_CLICKERS = _table(
    "campaign_clickers",
    campaign_records.CampaignClicker,
    "campaign_id",
    "url",
    "email",
    load=Snapshot(scope={"campaign_id": "id"}, is_whole=True, is_guarded=False, within="campaigns"),
    area="campaigns",
)

LISTS = _table(
    "lists",
    list_records.ContactList,
    "list_id",
    load=Snapshot(listing=(lists.GETLISTS.name,), detail=lists.GETLIST.name),
    area="lists",
)
LIST_FIELDS = _table(
    "list_fields",
    list_records.ListField,
    "list_id",
    "field_id",
    load=Snapshot(scope={"list_id": "id"}, is_whole=True, is_guarded=False, within="lists"),
    area="lists",
)
AUDIENCES = _table("audiences", list_records.Audience, "audience_id", load=Snapshot(), area="lists")

CONTACTS = _table(
    "contacts",
    contact_records.Contact,
    "list_id",
    "contact_id",
    load=Snapshot(scope={"list_id": "listid"}, within="lists"),
    area="contacts",
)
TIMELINE_EVENTS = _table("timeline_events", timeline_records.TimelineEvent, "contact_id", "event_key", load=Accumulate(), area="contacts")
TIMELINE_VISITS = _table("timeline_visits", timeline_records.TimelineVisit, "contact_id", "visit_key", load=Accumulate(), area="contacts")
TIMELINE_AUTOMATIONS = _table(
    "timeline_automations", timeline_records.TimelineAutomation, "contact_id", "automation_key", load=Accumulate(), area="contacts"
)
COUPONS = _table(
    "coupons",
    contact_records.Coupon,
    "coupon_id",
    load=Snapshot(scope={"email": "email"}, is_whole=True, is_guarded=False),
    area="contacts",
)

USERS = _table("users", user_records.User, "business_id", "user_id", load=Snapshot(), area="users")
MANAGERS = _table("managers", user_records.Manager, "manager_id", load=Snapshot(), area="users")
USER_GROUPS = _table("user_groups", user_records.UserGroup, "group_id", load=Snapshot(), area="users")

GOALS = _table("goals", goal_records.Goal, "goal_id", load=Snapshot(listing=(goals.LISTS.name,), detail=goals.SHOW.name), area="goals")
WEBHOOKS = _table(
    "webhooks",
    webhook_records.Webhook,
    "webhook_id",
    load=Snapshot(listing=(webhooks.LISTS.name,), detail=webhooks.SHOW.name),
    area="webhooks",
)
