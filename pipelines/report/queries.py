"""The report's SQL, and its rows from the published file. Not here: what is computed of them (`figures`), looks (`templates/`)."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb

from marketing_api.redaction import without_addresses
from warehouse.errors import NothingPublished
from warehouse.personal_data import PersonalData
from warehouse.publish import Published, facts
from warehouse.sql import rows

Row = Mapping[str, Any]
Rows = Sequence[Row]

#: Name → rows of one account.
QUERIES = {
    "business": "select business_name, timezone from source.business where account = $account and _deleted_at is null",
    "campaigns": """
        select subject, type, sent_at, created_at, sent_count, delivered_count, opened_count, clicker_count, open_rate, click_rate,
            bounce_rate, unsubscribe_rate, median_open_rate_90d, open_rate_over_median, opened_percent, is_percent_inconsistent
        from marts.campaign_performance
        where account = $account and sent_count > 0 and not is_deleted
        order by coalesce(sent_at, created_at) desc
    """,
    "days": """
        select day_on, member_count, joined_count, left_count, joined_count - left_count as net_change, sent_change, opened_change,
            click_change, unsubscribed_change, good_count, bad_count, online_review_count, view_count, visit_count, mention_count,
            social_click_change
        from marts.account_daily where account = $account order by day_on
    """,
    "lists": """
        with recent as (
            select *, max(day_on) over () - day_on between 1 and 7 as is_recent, day_on = max(day_on) over () as is_last
            from marts.list_growth_daily where account = $account
        ),
        summed as (
            select any_value(list_name) as name, sum(size) filter (is_last) as size,
                case when bool_and(joined_count is not null) filter (is_recent) then sum(joined_count) filter (is_recent) end as joined_7d,
                case when bool_and(left_count is not null) filter (is_recent) then sum(left_count) filter (is_recent) end as left_7d,
                case when bool_and(net_change is not null) filter (is_recent) then sum(net_change) filter (is_recent) end as net_7d,
                case when bool_and(moved_in_count is not null) filter (is_recent)
                    then sum(moved_in_count - moved_out_count) filter (is_recent) end as moved_7d
            from recent group by list_id
        )
        select * from summed where size > 0 order by size desc, name limit 12
    """,
    "tiers": """
        select engagement_tier, count(*) as addresses, sum(count(*) filter (timeline_as_of is null)) over () as without_timeline
        from marts.contact_engagement where account = $account group by engagement_tier order by addresses desc
    """,
    "coupons": """
        select issued_month, issued_count, redeemed_count, redemption_rate, median_days_to_redeem
        from marts.coupon_funnel where account = $account order by issued_month = 'unknown', issued_month desc
    """,
    "coupon_days": """
        select redeemed_on as day_on, count(*) as redeemed
        from source.coupons where account = $account and redeemed_on is not null and _deleted_at is null group by redeemed_on
    """,
    "channels": """
        select channel, kind, average_rating, average_rating_change_28d, review_count, review_count_28d, good_rate_28d,
            positive_rate_28d, last_review_at
        from marts.reputation_overview where account = $account order by kind, review_count desc nulls last, channel
    """,
    "reviews": """
        select reviewed_at, 'Feedback page' as channel, rating, null as username, inquiry
        from source.direct_reviews where account = $account and _deleted_at is null
        union all
        select reviewed_at, channel, case when rating is not null then format('{:.1f} of 5', rating) end, username, inquiry
        from source.online_reviews where account = $account
        order by reviewed_at desc limit 6
    """,
    "networks": """
        with today as (select max(day_on) as day_on from marts.social_daily where account = $account)
        select network,
            case when count(mention_count) filter (s.day_on > today.day_on - 28) = 28
                then sum(mention_count) filter (s.day_on > today.day_on - 28) end as mention_count,
            case when count(post_count) filter (s.day_on > today.day_on - 28) = 28
                then sum(post_count) filter (s.day_on > today.day_on - 28) end as post_count
        from marts.social_daily as s, today where account = $account group by network order by mention_count desc nulls last, network
    """,
    "posts": """
        select network, published_at, message, click_count from marts.social_post_performance
        where account = $account and is_published order by click_count desc nulls last, published_at desc limit 5
    """,
    "freshness": """
        select subject, as_of, coverage_rate, part_count, read_part_count, is_overdue, rejected_count, reason
        from marts.data_freshness where account = $account order by coverage_rate, subject
    """,
}

#: Columns of these queries that are personal.
_PERSONAL = frozenset({"username", "inquiry", "reason"})


@dataclass(frozen=True, slots=True)
class AccountData:
    """Everything that the report shows of one account, `made_at`; `today` is the account's date of its newest response."""

    name: str
    as_of: dt.datetime | None
    today: dt.date
    zone: str
    rows: Mapping[str, Rows]
    made_at: dt.datetime
    has_texts: bool = True

    @property
    def title(self) -> str:
        """The business's name, else the account's."""
        return next((str(row["business_name"]) for row in self.rows["business"] if row["business_name"]), self.name)

    def is_read(self, subject: str, *parts: str) -> bool:
        """Whether the subject, and what there is of its parts, was read completely: only then an absence is known."""
        read = {row["subject"]: row["coverage_rate"] for row in self.rows["freshness"]}
        return read.get(subject) == 1 and all(read.get(part) in (1, None) for part in parts)


@dataclass(frozen=True, slots=True)
class ReportData:
    """Of the whole file. Without accounts nothing was ever read."""

    published: Published
    accounts: Sequence[AccountData]


def read_report(path: Path, now: dt.datetime) -> ReportData:
    """The report's data from the published file at `path`, as it is `now`. NothingPublished when there is none.

    A model that is not in the file has no rows.
    """
    published = facts(path)
    if published is None:
        raise NothingPublished(f"there is no {path} yet: run `marketing-sync publish`")
    with duckdb.connect(str(path), read_only=True, config={"autoinstall_known_extensions": False}) as connection:
        rows(connection, "set timezone = 'UTC'")
        return report_of(connection, published, now)


def report_of(connection: duckdb.DuckDBPyConnection, published: Published, now: dt.datetime) -> ReportData:
    """The same from a connection whose time zone is UTC."""
    newest = rows(connection, "select account, max(as_of) from sync.coverage group by account order by account")
    return ReportData(published, [_account(connection, name, as_of, published, now) for name, as_of in newest])


def _account(
    connection: duckdb.DuckDBPyConnection, name: str, as_of: dt.datetime | None, published: Published, now: dt.datetime
) -> AccountData:
    found = {key: _rows(connection, sql, name) for key, sql in QUERIES.items()}
    zone = next((str(row["timezone"]) for row in found["business"] if row["timezone"]), "UTC")
    today = (as_of or published.published_at).astimezone(ZoneInfo(zone)).date()
    return AccountData(name, as_of, today, zone, found, now, published.personal_data is PersonalData.KEEP)


def impersonal(report: ReportData) -> ReportData:
    """The same without personal data, whatever is published: to leave this machine."""

    def clean(name: str, value: Any) -> Any:
        return None if name in _PERSONAL else without_addresses(value) if isinstance(value, str) else value

    def cleaned(found: Rows) -> Rows:
        return [{name: clean(name, value) for name, value in row.items()} for row in found]

    accounts = [replace(each, has_texts=False, rows={key: cleaned(found) for key, found in each.rows.items()}) for each in report.accounts]
    return ReportData(replace(report.published, personal_data=PersonalData.DROP), accounts)


def _rows(connection: duckdb.DuckDBPyConnection, sql: str, account: str) -> list[dict[str, Any]]:
    try:
        result = connection.execute(sql, {"account": account})
    except duckdb.CatalogException:
        return []
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
