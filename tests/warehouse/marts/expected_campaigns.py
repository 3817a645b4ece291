"""The campaign marts, worked out without SQL."""

from __future__ import annotations

import datetime as dt
import statistics
from typing import Any

from tests.warehouse.marts.expected import Found, Source, added, grouped, less, once, share
from tests.warehouse.marts.expected_contacts import channels, told

_PERCENTS = ("opened_percent", "unopened_percent", "bounced_percent", "unsubscribed_percent")
_COUNTS = ("opened_count", "unopened_count", "bounced_count", "unsubscribed_count")


def nights_before(source: Source) -> dict[tuple[Any, ...], dt.date | None]:
    """(account, campaign, day of asking) → the day since which its changes are known."""
    created = {
        (row["account"], row["campaign_id"]): row["created_at"]
        for row in source.rows("campaigns", deleted=True)
    }
    stats = source.rows("campaign_stats")
    account_nights = {
        account: sorted({row["observed_on"] for row in rows})
        for (account,), rows in grouped(stats, "account").items()
    }
    found: dict[tuple[Any, ...], dt.date | None] = {}
    for (account, campaign_id), rows in grouped(stats, "account", "campaign_id").items():
        days = sorted(row["observed_on"] for row in rows)
        for place, day in enumerate(days):
            earlier = [night for night in account_nights[account] if night < day]
            born_on = source.local_date(account, created.get((account, campaign_id)))
            was_born_since = earlier and born_on and born_on >= earlier[-1]
            found[account, campaign_id, day] = (
                days[place - 1] if place else earlier[-1] if was_born_since else None
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
    before = nights_before(source)
    campaigns = {(row["account"], row["campaign_id"]): row for row in source.rows("campaigns", deleted=True)}
    links = grouped(source.rows("campaign_links"), "account", "campaign_id", "observed_on")
    found, is_told = [], can_tell_openings(source)
    for (account, campaign_id), rows in grouped(
        source.rows("campaign_stats"), "account", "campaign_id"
    ).items():
        clicked = [
            row | {"click_count": added(*(link["click_count"] for link in named))}
            for row in rows
            for named in [links.get((account, campaign_id, row["observed_on"]), [])]
        ]
        change = {name: changes(clicked, before, name) for name in (*_COUNTS, "click_count")}
        for row in clicked:
            day = row["observed_on"]
            since = before[account, campaign_id, day]
            unknown = (
                {} if is_told[account, campaign_id] else dict.fromkeys(("opened_count", "opened_change"))
            )
            found.append(
                {
                    "account": account,
                    "campaign_id": campaign_id,
                    "observed_on": day,
                    "subject": campaigns[account, campaign_id]["subject"],
                    "type": campaigns[account, campaign_id]["type"],
                    "days_covered": (day - since).days if since else None,
                    "sent_count": added(row["opened_count"], row["unopened_count"], row["bounced_count"]),
                    **{name: row[name] for name in _COUNTS if name != "unopened_count"},
                    "click_count": row["click_count"],
                    "sent_change": added(*(change[name][day] for name in _COUNTS[:3])),
                    **{
                        name.replace("_count", "_change"): change[name][day]
                        for name in _COUNTS
                        if name != "unopened_count"
                    },
                    "click_change": change["click_count"][day],
                    **unknown,
                }
            )
    return found


def _counted(source: Source, sent_at: dict[tuple[str, int], dt.datetime]) -> Found:
    """One row per campaign with its counts and rates."""
    stats = grouped(source.rows("campaign_stats"), "account", "campaign_id")
    links = grouped(source.rows("campaign_links"), "account", "campaign_id", "observed_on")
    clickers = grouped(source.rows("campaign_clickers"), "account", "campaign_id")
    found, can_tell, shown = [], can_tell_openings(source), channels(source)
    for campaign in source.rows("campaigns", deleted=True):
        key = (campaign["account"], campaign["campaign_id"])
        last = max(
            stats.get(key, []),
            key=lambda row: row["observed_on"],
            default=dict.fromkeys(("observed_on", *_COUNTS, *_PERCENTS)),
        )
        is_asked = last["observed_on"] is not None
        named = links.get((*key, last["observed_on"]), [])
        is_whole = is_asked and all(row["clicker_count"] is not None for row in named)
        clicked = len({row["email"].lower() for row in clickers.get(key, [])}) if is_whole else None
        counted = added(last["opened_count"], last["unopened_count"])
        bounced = last["bounced_count"]
        is_told = campaign["delivered_count"] is not None and campaign["delivered_count"] >= (
            last["opened_count"] or 0
        )
        failed = (
            None if not is_told else bounced if campaign["failed_count"] is None else campaign["failed_count"]
        )
        delivered = campaign["delivered_count"] if is_told else counted
        sent = added(counted, bounced) if failed is None else added(delivered, failed)
        opened, unopened = (
            last[name] if can_tell[key] else None for name in ("opened_count", "unopened_count")
        )
        found.append(
            {
                **{
                    name: campaign[name]
                    for name in ("account", "campaign_id", "subject", "name", "status", "type", "created_at")
                },
                "is_deleted": campaign["_deleted_at"] is not None,
                "sent_at": (campaign["sent_at"] if campaign["status"] == "sent" else None)
                or sent_at.get(key),
                **{
                    name: last[name]
                    for name in ("observed_on", "bounced_count", "unsubscribed_count", "opened_percent")
                },
                **{"opened_count": opened, "unopened_count": unopened, "channel": shown.get(key)},
                "is_percent_inconsistent": _is_inconsistent(last, counted, added(counted, bounced)),
                "failed_count": failed,
                "sent_count": sent,
                "delivered_count": delivered,
                "clicker_count": clicked,
                "click_count": added(*(row["click_count"] for row in named)) if is_asked else None,
                "link_count": len(named) if is_asked else None,
                "open_rate": share(opened, delivered),
                "click_rate": share(clicked, delivered),
                "click_to_open_rate": share(clicked, opened),
                "bounce_rate": share(last["bounced_count"], sent),
                "unsubscribe_rate": share(last["unsubscribed_count"], delivered),
                "is_small_sample": delivered is None or delivered < 100,
            }
        )
    return found


def _is_inconsistent(last: dict[str, Any], delivered: float | None, sent: float | None) -> bool | None:
    """Whether a stated percentage is over a point off both shares of its count; None without one."""
    verdicts = []
    for count, percent in ((last[name], last[name.replace("_count", "_percent")]) for name in _COUNTS):
        shares = [100 * count / whole for whole in (delivered, sent) if count is not None and whole]
        if percent is not None and shares:
            verdicts.append(min(abs(percent - value) for value in shares) > 1)
    return any(verdicts) if verdicts else None


def performance(source: Source, sent_at: dict[tuple[str, int], dt.datetime]) -> Found:
    """campaign_performance; `sent_at` by account and campaign."""
    found, openings = _counted(source, sent_at), told(source)
    silence: dict[str, Any] = dict.fromkeys(("message_count", "matched_count", "timed_open_count"), 0)
    silence |= dict.fromkeys(
        (
            "matched_message_rate",
            "median_hours_to_open",
            *(f"opened_within_{hours}h_rate" for hours in (1, 24, 48)),
        )
    )
    for row in found:
        row |= openings.get((row["account"], row["campaign_id"]), silence)
    for (account,), rows in grouped(found, "account").items():
        day = {
            row["campaign_id"]: source.local_date(account, row["sent_at"] or row["created_at"])
            for row in rows
        }
        comparable = [
            row
            for row in rows
            if row["type"] == "standard" and (row["sent_count"] or 0) > 0 and day[row["campaign_id"]]
        ]
        for row in rows:
            _compare(row, [other for other in comparable if row in comparable and _is_near(day, other, row)])
    return found


def _is_near(day: dict[int, Any], other: dict[str, Any], row: dict[str, Any]) -> bool:
    return bool(0 <= (day[row["campaign_id"]] - day[other["campaign_id"]]).days < 90)


def _compare(row: dict[str, Any], near: Found) -> None:
    """`near` includes the campaign itself, and is empty when it cannot be compared."""
    row["comparable_count_90d"] = len(near) - 1 if near else None
    for name in ("open", "click"):
        rates = [
            other[f"{name}_rate"] for other in near if other is not row and other[f"{name}_rate"] is not None
        ]
        own = row[f"{name}_rate"]
        row[f"median_{name}_rate_90d"] = statistics.median(rates) if rates else None
        row[f"{name}_rate_over_median"] = less(own, row[f"median_{name}_rate_90d"])
        row[f"{name}_rank_90d"] = 1 + sum(rate > own for rate in rates) if near and own is not None else None


def campaign_link_clicks(source: Source, performed: Found) -> Found:
    campaigns = {(row["account"], row["campaign_id"]): row for row in performed}
    asked = grouped(source.rows("campaign_stats"), "account", "campaign_id")
    found: Found = []
    for (account, campaign_id, _), some in grouped(
        source.rows("campaign_links"), "account", "campaign_id", "url"
    ).items():
        rows = sorted(some, key=lambda row: row["observed_on"])
        last, nights = rows[-1], [row["observed_on"] for row in asked[account, campaign_id]]
        a_week_ago = max(nights) - dt.timedelta(days=7)
        then = [row["click_count"] for row in rows if row["observed_on"] <= a_week_ago] or [0]
        campaign = campaigns[account, campaign_id]
        created_on = source.local_date(account, campaign["created_at"])
        is_new = created_on is not None and created_on > a_week_ago
        found.append(
            {
                **{
                    name: last[name]
                    for name in (
                        "account",
                        "campaign_id",
                        "url",
                        "observed_on",
                        "clicker_count",
                        "click_count",
                    )
                },
                "subject": campaign["subject"],
                "link_text": last["message"],
                "first_observed_on": rows[0]["observed_on"],
                "is_current": last["observed_on"] == max(nights),
                "click_count_7d": last["click_count"]
                if is_new
                else less(last["click_count"], then[-1])
                if min(nights) <= a_week_ago
                else None,
                "click_rate": share(last["clicker_count"], campaign["delivered_count"]),
            }
        )
    for links in grouped(found, "account", "campaign_id").values():
        counts = [row["click_count"] for row in links]
        for row in links:
            own = row["click_count"]
            row["click_share_rate"] = share(own, added(*counts))
            more = [count for count in counts if own is not None and count is not None and count > own]
            row["click_rank"] = None if own is None else 1 + len(more)
    return found


def send_time_performance(source: Source, performed: Found) -> Found:
    chosen = [
        row
        for row in performed
        if row["type"] == "standard" and row["sent_at"] and (row["sent_count"] or 0) > 0
    ]
    chosen = [
        row
        for row in chosen
        if None not in (row["opened_count"], row["delivered_count"])
        and source.plausible(row["account"], [row["sent_at"]])
    ]
    for row in chosen:
        local = source.local(row["account"], row["sent_at"])
        assert local is not None
        row |= {"weekday_number": local.isoweekday(), "weekday": local.strftime("%A"), "hour": local.hour}
    found = []
    for (account, number, weekday, hour), rows in grouped(
        chosen, "account", "weekday_number", "weekday", "hour"
    ).items():
        sums = {
            name: added(*(row[name] for row in rows))
            for name in ("sent_count", "delivered_count", "opened_count", "clicker_count")
        }
        rates = {
            "open_rate": share(sums["opened_count"], sums["delivered_count"]),
            "click_rate": share(sums["clicker_count"], sums["delivered_count"]),
        }
        rates["is_small_sample"] = len(rows) == 1 or (sums["delivered_count"] or 0) < 100
        place = {"account": account, "weekday_number": number, "weekday": weekday, "hour": hour}
        found.append({**place, "campaign_count": len(rows), **sums, **rates})
    return found
