"""The campaign marts, worked out without SQL."""

import datetime as dt
import statistics
from typing import Any

from tests.warehouse.marts.expected import (
    Found,
    Source,
    added,
    grouped,
    known,
    less,
    once,
    pick,
    share,
    unknown,
)
from tests.warehouse.marts.expected_contacts import channels, told

_PERCENTS = ("opened_percent", "unopened_percent", "bounced_percent", "unsubscribed_percent")
_COUNTS = ("opened_count", "unopened_count", "bounced_count", "unsubscribed_count")


def nights_before(source: Source) -> dict[tuple[Any, ...], dt.date | None]:
    """(account, campaign, day of asking) → the day since which its changes are known."""
    campaigns = source.by("campaigns", "account", "campaign_id")
    stats = source.rows("campaign_stats")
    nights: dict[str, set[dt.date]] = {}
    for row in stats:
        nights.setdefault(row["account"], set()).add(row["observed_on"])
    found: dict[tuple[Any, ...], dt.date | None] = {}
    for (account, campaign_id), rows in grouped(stats, "account", "campaign_id").items():
        days = sorted(row["observed_on"] for row in rows)
        for place, day in enumerate(days):
            before = max((night for night in nights[account] if night < day), default=None)
            created_at = campaigns.get((account, campaign_id), {}).get("created_at")
            born_on = source.local_date(account, created_at)
            was_born_since = before and born_on and born_on >= before
            found[account, campaign_id, day] = (
                days[place - 1] if place else before if was_born_since else None
            )
    return found


def changes(
    rows: Found, before: dict[tuple[Any, ...], dt.date | None], measure: str
) -> dict[dt.date, float | None]:
    """Changes of one thing's totals by day of asking; `rows` are all of one campaign (and link)."""
    found: dict[dt.date, float | None] = {}
    last: dict[str, Any] | None = None
    for row in sorted(rows, key=lambda row: row["observed_on"]):
        if last is not None:
            found[row["observed_on"]] = less(row[measure], last[measure])
        else:
            is_known = before[row["account"], row["campaign_id"], row["observed_on"]] is not None
            found[row["observed_on"]] = row[measure] if is_known else None
        last = row
    return found


def can_tell_openings(source: Source) -> dict[tuple[Any, ...], bool]:
    """(account, campaign) → whether the service's count of openings means anything."""
    shown, found = channels(source), {}
    stats = grouped(source.rows("campaign_stats"), "account", "campaign_id")
    for campaign in source.rows("campaigns", deleted=True):
        key = (campaign["account"], campaign["campaign_id"])
        is_counted = any((row["opened_count"] or 0) > 0 for row in stats.get(key, []))
        channel = shown.get(key)
        found[key] = is_counted or (channel == "email" if channel else campaign["type"] == "standard")
    return found


@once
def campaign_daily(source: Source) -> Found:
    before, campaigns = nights_before(source), source.by("campaigns", "account", "campaign_id")
    links = grouped(source.rows("campaign_links"), "account", "campaign_id", "observed_on")
    stats = grouped(source.rows("campaign_stats"), "account", "campaign_id")
    found, is_told = [], can_tell_openings(source)
    for (account, campaign_id), some in stats.items():
        rows = [dict(row) for row in some]
        for row in rows:
            named = links.get((account, campaign_id, row["observed_on"]), [])
            row["click_count"] = added(*(link["click_count"] for link in named))
        change = {name: changes(rows, before, name) for name in (*_COUNTS, "click_count")}
        for row in rows:
            day = row["observed_on"]
            since = before[account, campaign_id, day]
            daily = pick(row, "account campaign_id observed_on opened_count bounced_count unsubscribed_count")
            daily |= pick(campaigns[account, campaign_id], "subject type")
            daily["days_covered"] = (day - since).days if since else None
            daily["sent_count"] = added(*(row[name] for name in _COUNTS[:3]))
            daily["click_count"] = row["click_count"]
            daily["sent_change"] = added(*(change[name][day] for name in _COUNTS[:3]))
            for name in ("opened", "bounced", "unsubscribed", "click"):
                daily[f"{name}_change"] = change[f"{name}_count"][day]
            daily |= {} if is_told[account, campaign_id] else unknown("opened_count opened_change")
            found.append(daily)
    return found


def _counted(source: Source, sent_at: dict[tuple[str, int], dt.datetime]) -> Found:
    """One row per campaign with its counts and rates."""
    stats = grouped(source.rows("campaign_stats"), "account", "campaign_id")
    links = grouped(source.rows("campaign_links"), "account", "campaign_id", "observed_on")
    clickers = grouped(source.rows("campaign_clickers"), "account", "campaign_id")
    found, can_tell, shown = [], can_tell_openings(source), channels(source)
    for campaign in source.rows("campaigns", deleted=True):
        key = (campaign["account"], campaign["campaign_id"])
        nothing = dict.fromkeys(("observed_on", *_COUNTS, *_PERCENTS))
        last = max(stats.get(key, []), key=lambda row: row["observed_on"], default=nothing)
        is_asked = last["observed_on"] is not None
        named = links.get((*key, last["observed_on"]), [])
        is_whole = is_asked and len(known(named, "clicker_count")) == len(named)
        clicked = len({row["email"].lower() for row in clickers.get(key, [])}) if is_whole else None
        counted, bounced = added(last["opened_count"], last["unopened_count"]), last["bounced_count"]
        delivered, failed = campaign["delivered_count"], campaign["failed_count"]
        if delivered is not None and delivered >= (last["opened_count"] or 0):
            failed = bounced if failed is None else failed
        else:
            delivered, failed = counted, None
        sent = added(counted, bounced) if failed is None else added(delivered, failed)
        opened, unopened = last["opened_count"], last["unopened_count"]
        if not can_tell[key]:
            opened = unopened = None
        row = pick(campaign, "account campaign_id subject name status type created_at")
        row["is_deleted"] = campaign["_deleted_at"] is not None
        told_at = campaign["sent_at"] if campaign["status"] == "sent" else None
        row |= {"sent_at": told_at or sent_at.get(key), "channel": shown.get(key)}
        row |= pick(last, "observed_on bounced_count unsubscribed_count opened_percent")
        row |= {"opened_count": opened, "unopened_count": unopened}
        row["is_percent_inconsistent"] = _is_inconsistent(last, counted, added(counted, bounced))
        row |= {"failed_count": failed, "sent_count": sent, "delivered_count": delivered}
        row["clicker_count"] = clicked
        row["click_count"] = added(*(link["click_count"] for link in named)) if is_asked else None
        row["link_count"] = len(named) if is_asked else None
        row |= {"open_rate": share(opened, delivered), "click_rate": share(clicked, delivered)}
        row |= {"click_to_open_rate": share(clicked, opened), "bounce_rate": share(bounced, sent)}
        row["unsubscribe_rate"] = share(last["unsubscribed_count"], delivered)
        row["is_small_sample"] = delivered is None or delivered < 100
        found.append(row)
    return found


def _is_inconsistent(last: dict[str, Any], delivered: float | None, sent: float | None) -> bool | None:
    """Whether a stated percentage is over a point off both shares of its count; None without one."""
    verdicts = []
    for count, percent in ((last[name], last[name.replace("_count", "_percent")]) for name in _COUNTS):
        shares = [100 * count / whole for whole in (delivered, sent) if count is not None and whole]
        if percent is not None and sent is not None and shares:
            verdicts.append(min(abs(percent - value) for value in shares) > 1)
    return any(verdicts) if verdicts else None


def performance(source: Source, sent_at: dict[tuple[str, int], dt.datetime]) -> Found:
    """campaign_performance; `sent_at` by account and campaign."""
    found, openings = _counted(source, sent_at), told(source)
    silence: dict[str, Any] = dict.fromkeys(("message_count", "matched_count", "timed_open_count"), 0)
    silence |= unknown("matched_message_rate median_hours_to_open")
    silence |= unknown("opened_within_1h_rate opened_within_24h_rate opened_within_48h_rate")
    for row in found:
        row |= openings.get((row["account"], row["campaign_id"]), silence)
    for (account,), rows in grouped(found, "account").items():
        day = {
            row["campaign_id"]: source.local_date(account, row["sent_at"] or row["created_at"])
            for row in rows
        }
        comparable = [row for row in rows if row["type"] == "standard" and (row["sent_count"] or 0) > 0]
        comparable = [row for row in comparable if day[row["campaign_id"]]]
        for row in rows:
            _compare(row, [other for other in comparable if row in comparable and _is_near(day, other, row)])
    return found


def _is_near(day: dict[int, Any], other: dict[str, Any], row: dict[str, Any]) -> bool:
    return bool(0 <= (day[row["campaign_id"]] - day[other["campaign_id"]]).days < 90)


def _compare(row: dict[str, Any], near: Found) -> None:
    """`near` includes the campaign itself, and is empty when it cannot be compared."""
    row["comparable_count_90d"] = len(near) - 1 if near else None
    for name in ("open", "click"):
        rates = known([other for other in near if other is not row], f"{name}_rate")
        own = row[f"{name}_rate"]
        row[f"median_{name}_rate_90d"] = statistics.median(rates) if rates else None
        row[f"{name}_rate_over_median"] = less(own, row[f"median_{name}_rate_90d"])
        row[f"{name}_rank_90d"] = 1 + sum(rate > own for rate in rates) if near and own is not None else None


def campaign_link_clicks(source: Source, performed: Found) -> Found:
    campaigns = {(row["account"], row["campaign_id"]): row for row in performed}
    asked = grouped(source.rows("campaign_stats"), "account", "campaign_id")
    found: Found = []
    links = grouped(source.rows("campaign_links"), "account", "campaign_id", "url")
    for (account, campaign_id, _), some in links.items():
        rows = sorted(some, key=lambda row: row["observed_on"])
        last, nights = rows[-1], [row["observed_on"] for row in asked[account, campaign_id]]
        a_week_ago = max(nights) - dt.timedelta(days=7)
        then = [row["click_count"] for row in rows if row["observed_on"] <= a_week_ago] or [0]
        campaign = campaigns[account, campaign_id]
        created_on = source.local_date(account, campaign["created_at"])
        is_new = created_on is not None and created_on > a_week_ago
        row = pick(last, "account campaign_id url observed_on clicker_count click_count")
        row |= {"subject": campaign["subject"], "link_text": last["message"]}
        row |= {"first_observed_on": rows[0]["observed_on"], "is_current": last["observed_on"] == max(nights)}
        base = 0 if is_new else then[-1] if min(nights) <= a_week_ago else None
        row["click_count_7d"] = less(last["click_count"], base)
        found.append(row | {"click_rate": share(last["clicker_count"], campaign["delivered_count"])})
    for some in grouped(found, "account", "campaign_id").values():
        counts = [row["click_count"] for row in some]
        for row in some:
            own = row["click_count"]
            row["click_share_rate"] = share(own, added(*counts))
            more = [count for count in counts if own is not None and count is not None and count > own]
            row["click_rank"] = None if own is None else 1 + len(more)
    return found


def send_time_performance(source: Source, performed: Found) -> Found:
    chosen = [row for row in performed if row["type"] == "standard" and (row["sent_count"] or 0) > 0]
    chosen = [row for row in chosen if None not in (row["opened_count"], row["delivered_count"])]
    chosen = [row for row in chosen if source.plausible(row["account"], [row["sent_at"]])]
    for row in chosen:
        local = source.local(row["account"], row["sent_at"])
        assert local is not None
        row |= {"weekday_number": local.isoweekday(), "weekday": local.strftime("%A"), "hour": local.hour}
    found = []
    key = ("account", "weekday_number", "weekday", "hour")
    for place, rows in grouped(chosen, *key).items():
        row = dict(zip(key, place, strict=True)) | {"campaign_count": len(rows)}
        for name in ("sent_count", "delivered_count", "opened_count", "clicker_count"):
            row[name] = added(*(one[name] for one in rows))
        row["open_rate"] = share(row["opened_count"], row["delivered_count"])
        row["click_rate"] = share(row["clicker_count"], row["delivered_count"])
        row["is_small_sample"] = len(rows) == 1 or (row["delivered_count"] or 0) < 100
        found.append(row)
    return found
