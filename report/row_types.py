"""The rows of the report's queries that Python reads, with the columns that it names. Templates
read more."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

#: The measures of a period, by name, which are listed in `figures.toml`.
Row = Mapping[str, Any]
Rows = Sequence[Row]


class Business(TypedDict):
    business_name: str | None
    timezone: str | None


class Subject(TypedDict):
    subject: str
    coverage_rate: float | None
    rejected_count: int
    is_overdue: bool
    odd_date_count: int


class RefusedListing(TypedDict):
    table_name: str
    list_name: str | None


class Campaign(TypedDict):
    campaign_id: int
    subject: str | None
    type: str
    sent_at: dt.datetime
    sent_count: int
    open_rate: float | None
    click_rate: float | None
    median_open_rate_90d: float | None


class CampaignDay(TypedDict):
    campaign_id: int
    observed_on: dt.date
    opened_count: int


class Day(TypedDict):
    day_on: dt.date
    member_count: int | None
    active_member_count: int | None


class Anomaly(TypedDict):
    day_on: dt.date
    figure: str
    sentence: str


class Channel(TypedDict):
    channel: str
    average_rating: float | None


class Tier(TypedDict):
    engagement_tier: str
    addresses: int


class RegainingMessage(TypedDict):
    message: str
    won_back: int


class ReportRows(TypedDict):
    """Rows by name of the query."""

    anomalies: Sequence[Anomaly]
    business: Sequence[Business]
    campaign_days: Sequence[CampaignDay]
    campaigns: Sequence[Campaign]
    channels: Sequence[Channel]
    days: Sequence[Day]
    freshness: Sequence[Subject]
    lifecycle_regained: Sequence[RegainingMessage]
    lifecycle_weeks: Rows
    months: Rows
    refused: Sequence[RefusedListing]
    spans: Rows
    tiers: Sequence[Tier]
    weeks: Rows
