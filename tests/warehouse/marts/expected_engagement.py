"""How addresses react, arrive, register and use coupons, and automations, without SQL."""

from __future__ import annotations

import datetime as dt
import statistics
from typing import Any

from tests.warehouse.marts.expected import Found, Source, grouped, once, share
from tests.warehouse.marts.expected_contacts import contact_campaign, is_known_opening

_STATUSES = ("bounced", "active", "unconfirmed", "unsubscribed")


def address(text: str | None) -> str:
    return (text or "").strip().lower()


@once
def contact_engagement(source: Source) -> Found:
    messages = grouped(contact_campaign(source), "account", "contact_id")
    visits = grouped(source.rows("timeline_visits"), "account", "contact_id")
    asked = {
        (row["account"], row["contact_id"]): row["timeline_asked_at"]
        for row in source.rows("sync.contact_coverage")
    }
    names = {(row["account"], row["list_id"]): row["name"] for row in source.rows("lists", deleted=True)}
    coupons: dict[tuple[str, str], Found] = {}
    for row in source.rows("coupons", deleted=True):
        coupons.setdefault((row["account"], address(row["email"])), []).append(row)
    registered: dict[tuple[str, str], dt.datetime] = {}
    ever: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for row in source.rows("contacts", deleted=True):
        ever.setdefault((row["account"], address(row["email"])), set()).add(
            (row["account"], row["contact_id"])
        )
        for moment in source.plausible(row["account"], [row["registered_at"]]):
            key = (row["account"], address(row["email"]))
            registered[key] = min(moment, registered.get(key, moment))
    people: dict[tuple[str, str], Found] = {}
    for row in source.rows("contacts"):
        if address(row["email"]):
            people.setdefault((row["account"], address(row["email"])), []).append(row)
    found = []
    for (account, email), entries in people.items():
        ids = {(account, row["contact_id"]) for row in entries}
        lists = sorted({names.get((account, row["list_id"]), f"list {row['list_id']}") for row in entries})
        statuses = {row["status"] for row in entries}
        given = coupons.get((account, email), [])
        row = {
            "account": account,
            "email": email,
            "contact_count": len(entries),
            "list_count": len(lists),
            "lists": lists,
            "status": next((status for status in _STATUSES if status in statuses), "unknown"),
            "registered_at": registered.get((account, email)),
            "coupon_count": len(given),
            "redeemed_count": sum(bool(one["is_redeemed"]) for one in given),
            "timeline_as_of": min((moment for one in ids if (moment := asked.get(one))), default=None),
        }
        row |= _reactions(
            source, account, [one for key in ever[account, email] for one in messages.get(key, [])]
        )
        moments = [visit["visited_at"] for key in ever[account, email] for visit in visits.get(key, [])]
        last_visited_at = max(source.plausible(account, moments), default=None)
        row |= {"visit_count": len(moments), "last_visited_at": last_visited_at}
        if any(asked.get(one) is None for one in ids):
            found.append(row | _unread(row))
            continue
        clicked = row["last_clicked_at"]
        row["days_since_clicked"] = _days_ago(source, account, clicked) if clicked else None
        found.append(row | _tiers(source, row))
    for row in found:
        row.pop("sent_180d_count", None)
    return found


def _unread(row: dict[str, Any]) -> dict[str, Any]:
    """All that timelines tell is not known."""
    known = {"account", "email", "contact_count", "list_count", "lists", "status", "registered_at"}
    known |= {"coupon_count", "redeemed_count"}
    told = ("last_active_at", "days_since_active", "days_since_clicked", "recency_tier", "frequency_tier")
    tier = "unread" if row["status"] == "active" else "unreachable"
    return {
        **dict.fromkeys([*(set(row) - known), *told]),
        "is_dormant": None if row["status"] == "active" else False,
        "engagement_tier": tier,
        "click_engagement_tier": tier,
    }


def _days_ago(source: Source, account: str, moment: dt.datetime) -> int:
    """Of the account's calendar: 0 is the day of its newest answer."""
    today, day = source.local_date(account, source.as_of(account)), source.local_date(account, moment)
    assert today is not None
    assert day is not None
    return (today - day).days


def _reactions(source: Source, account: str, messages: Found) -> dict[str, Any]:
    """Counts and rates of e-mails that can be seen to be opened; of the other messages how many there are."""
    emails = [one for one in messages if is_known_opening(one)]
    texts = [one for one in messages if one["channel"] == "sms"]

    def since(days: int, some: Found) -> Found:
        return [
            one for one in some if one["sent_at"] and 0 <= _days_ago(source, account, one["sent_at"]) < days
        ]

    row: dict[str, Any] = {"sent_180d_count": len(since(180, emails))}
    for suffix, some in (("", emails), ("_90d", since(90, emails))):
        counts = (len(some), sum(one["is_opened"] for one in some), sum(one["is_clicked"] for one in some))
        row |= dict(
            zip(
                (f"sent{suffix}_count", f"opened{suffix}_count", f"clicked{suffix}_count"),
                counts,
                strict=True,
            )
        )
    clicks = [one["is_clicked"] for one in texts]
    row |= {"sms_sent_count": len(texts), "sms_sent_90d_count": len(since(90, texts))}
    row |= {
        "sms_clicked_count": None if None in clicks else sum(clicks),
        "other_sent_count": len(messages) - len(emails) - len(texts),
    }
    row["open_of_sent_rate"] = share(row["opened_count"], row["sent_count"])
    row["click_of_sent_rate"] = share(row["clicked_count"], row["sent_count"])
    row["open_of_sent_90d_rate"] = share(row["opened_90d_count"], row["sent_90d_count"])
    opened = [one["opened_at"] or one["sent_at"] for one in messages if one["is_opened"]]
    clicked = [
        one["clicked_at"] or one["opened_at"] or one["sent_at"] for one in messages if one["is_clicked"]
    ]
    for name, moments in (
        ("sent", [one["sent_at"] for one in messages]),
        ("opened", opened),
        ("clicked", clicked),
    ):
        row[f"last_{name}_at"] = max(source.plausible(account, moments), default=None)
    return row


def _tiers(source: Source, row: dict[str, Any]) -> dict[str, Any]:
    last = max(
        (moment for name in ("opened", "clicked", "visited") if (moment := row[f"last_{name}_at"])),
        default=None,
    )
    days = _days_ago(source, row["account"], last) if last else None
    tier = (
        "never"
        if days is None
        else "30 days"
        if days <= 30
        else "90 days"
        if days <= 90
        else "1 year"
        if days <= 365
        else "older"
    )
    rate = row["open_of_sent_90d_rate"]
    frequency = (
        "not mailed"
        if rate is None
        else "none"
        if rate == 0
        else "rare"
        if rate < 0.25
        else "regular"
        if rate < 0.6
        else "keen"
    )
    is_dormant = row["status"] == "active" and row["sent_180d_count"] >= 3 and (days is None or days > 180)
    is_new = (
        row["registered_at"] is not None and _days_ago(source, row["account"], row["registered_at"]) <= 30
    )

    def tier_by(since: int | None) -> str:
        rules = (
            ("unreachable", row["status"] != "active"),
            ("engaged", since is not None and since <= 90),
            ("new", is_new),
            ("dormant", row["sent_180d_count"] >= 3 and (since is None or since > 180)),
            ("cooling", since is not None and since <= 365),
            ("quiet", True),
        )
        return next(name for name, holds in rules if holds)

    return {
        "last_active_at": last,
        "days_since_active": days,
        "recency_tier": tier,
        "frequency_tier": frequency,
        "is_dormant": is_dormant,
        "engagement_tier": tier_by(days),
        "click_engagement_tier": tier_by(row["days_since_clicked"]),
    }


def deliverability_by_domain(source: Source) -> Found:
    people = [
        row | {"domain": row["email"].rpartition("@")[2]}
        for row in contact_engagement(source)
        if "@" in row["email"][1:-1]
    ]
    average: dict[str, float | None] = {}
    for (account,), rows in grouped(people, "account").items():
        average[account] = share(
            *(sum(row[name] or 0 for row in rows) for name in ("opened_90d_count", "sent_90d_count"))
        )
    found = []
    for (account, domain), rows in grouped(people, "account", "domain").items():
        row: dict[str, Any] = {"account": account, "domain": domain, "address_count": len(rows)}
        for status in _STATUSES:
            row[f"{status}_count"] = sum(one["status"] == status for one in rows)
        row["other_count"] = len(rows) - sum(row[f"{status}_count"] for status in _STATUSES)
        for name in ("sent_count", "opened_count", "clicked_count", "sent_90d_count", "opened_90d_count"):
            known = [one[name] for one in rows if one[name] is not None]
            row[name] = sum(known) if known else None
        row["bounced_address_rate"] = share(row["bounced_count"], len(rows))
        row["unsubscribed_address_rate"] = share(row["unsubscribed_count"], len(rows))
        row["open_of_sent_rate"] = share(row["opened_count"], row["sent_count"])
        row["click_of_sent_rate"] = share(row["clicked_count"], row["sent_count"])
        row["open_of_sent_90d_rate"] = share(row["opened_90d_count"], row["sent_90d_count"])
        usual = average[account]
        row["relative_open_90d"] = (
            row["open_of_sent_90d_rate"] / usual
            if row["open_of_sent_90d_rate"] is not None and usual
            else None
        )
        row["last_opened_at"] = max(
            (one["last_opened_at"] for one in rows if one["last_opened_at"]), default=None
        )
        row["is_suspicious"] = (
            None
            if row["sent_90d_count"] is None
            else (
                row["sent_90d_count"] >= 50
                and row["opened_90d_count"] < 0.2 * (usual or 0) * row["sent_90d_count"]
            )
        )
        found.append(row)
    return found


def signup_cohorts(source: Source) -> Found:
    people = [row for row in contact_engagement(source) if row["registered_at"]]
    for row in people:
        local = source.local_date(row["account"], row["registered_at"])
        row["registered_month"] = local.replace(day=1) if local else None
    found = []
    for (account, month), rows in grouped(people, "account", "registered_month").items():
        row = {"account": account, "registered_month": month, "address_count": len(rows)}
        row |= {
            f"{status}_count": sum(one["status"] == status for one in rows)
            for status in ("active", "unsubscribed", "bounced")
        }
        row["read_count"] = sum(one["engagement_tier"] != "unread" for one in rows)
        row["engaged_count"] = sum(one["engagement_tier"] == "engaged" for one in rows)
        row["dormant_count"] = sum(bool(one["is_dormant"]) for one in rows)
        row["active_rate"] = share(row["active_count"], len(rows))
        row["engaged_rate"] = share(row["engaged_count"], row["read_count"])
        found.append(row)
    return found


def send_frequency(source: Source) -> Found:
    weeks: dict[tuple[str, int, dt.date], Found] = {}
    for row in contact_campaign(source):
        if is_known_opening(row) and (sent_on := source.local_date(row["account"], row["sent_at"])):
            weeks.setdefault((row["account"], row["contact_id"], _monday(sent_on)), []).append(row)
    statuses = grouped(source.rows("contacts"), "account", "contact_id")
    gone = {
        key
        for key, rows in statuses.items()
        if "unsubscribed" in (all_of := {row["status"] for row in rows}) and "active" not in all_of
    }
    last: dict[tuple[str, int], dt.date] = {}
    for account, contact, week in weeks:
        last[account, contact] = max(week, last.get((account, contact), week))
    buckets: dict[tuple[str, int], list[tuple[int, dt.date, Found]]] = {}
    for (account, contact, week), messages in weeks.items():
        today = source.local_date(account, source.as_of(account))
        if today and 0 < (_monday(today) - week).days <= 364:
            buckets.setdefault((account, min(8, len(messages))), []).append((contact, week, messages))
    found = []
    for (account, number), some in buckets.items():
        sent, opened, clicked = (
            [sum(map(bool, (row[name] for row in messages))) for _, _, messages in some]
            for name in ("message_key", "is_opened", "is_clicked")
        )
        left = sum((account, contact) in gone and last[account, contact] == week for contact, week, _ in some)
        row = {"account": account, "messages_a_week": number, "contact_week_count": len(some)}
        row |= {"contact_count": len({contact for contact, _, _ in some}), "sent_count": sum(sent)}
        row |= {
            "opened_count": sum(opened),
            "clicked_count": sum(clicked),
            "clicked_week_count": sum(map(bool, clicked)),
        }
        row |= {
            "unsubscribed_count": left,
            "open_of_sent_rate": share(sum(opened), sum(sent)),
            "click_of_sent_rate": share(sum(clicked), sum(sent)),
        }
        row |= {
            "clicked_week_rate": share(sum(map(bool, clicked)), len(some)),
            "unsubscribed_week_rate": share(left, len(some)),
        }
        found.append(row)
    return found


def _monday(day: dt.date) -> dt.date:
    return day - dt.timedelta(days=day.weekday())


def automation_activity(source: Source) -> Found:
    messages = [
        row
        for row in contact_campaign(source)
        if row["kind"] == "automated" and source.plausible(row["account"], [row["sent_at"]])
    ]
    for row in messages:
        row |= {
            "automation": row["automation"] or "(no name)",
            "triggered_on": source.local_date(row["account"], row["sent_at"]),
        }
    found = []
    for (account, name, channel, day), rows in grouped(
        messages, "account", "automation", "channel", "triggered_on"
    ).items():
        openings = [row["is_opened"] for row in rows if is_known_opening(row)]
        clicks = [row["is_clicked"] for row in rows if row["is_clicked"] is not None]
        opened, clicked = (sum(known) if known else None for known in (openings, clicks))
        campaigns = {row["campaign_id"] for row in rows}
        minutes = [_minutes(row["sent_at"], row["opened_at"]) for row in rows if row["opened_at"]]
        found.append(
            {
                **{"account": account, "automation": name, "channel": channel, "triggered_on": day},
                "campaign_id": campaigns.pop() if len(campaigns) == 1 else None,
                "triggered_count": len(rows),
                "contact_count": len({row["contact_id"] for row in rows}),
                **{
                    "open_known_count": len(openings),
                    "opened_count": opened,
                    "open_of_sent_rate": share(opened, len(openings)),
                },
                **{
                    "click_known_count": len(clicks),
                    "clicked_count": clicked,
                    "click_of_sent_rate": share(clicked, len(clicks)),
                },
                "median_hours_to_open": statistics.median(minutes) / 60 if minutes else None,
            }
        )
    return found


def _minutes(first: dt.datetime, last: dt.datetime) -> int:
    """By the minute hand: openings are told to the minute."""
    return int(last.timestamp() // 60 - first.timestamp() // 60)


def coupon_funnel(source: Source) -> Found:
    coupons = [dict(row) for row in source.rows("coupons", deleted=True)]
    read: dict[tuple[str, str], dt.datetime] = {}
    for row in source.rows("sync.contact_coverage"):
        if first := row["coupon_first_asked_at"]:
            key = (row["account"], address(row["email"]))
            read[key] = min(read.get(key, first), first)
    for row in coupons:
        if not source.is_plausible(row["account"], row["redeemed_on"]):
            row["redeemed_on"] = None
        seen_at, since = row["_first_seen_at"], read.get((row["account"], address(row["email"])))
        is_known = since is not None and seen_at > since + dt.timedelta(hours=12)
        issued_on = source.local_date(row["account"], seen_at) if is_known else None
        row["issued_month"] = f"{issued_on:%Y-%m}" if issued_on else "unknown"
        is_timed = issued_on and row["is_redeemed"] and row["redeemed_on"]
        row["days"] = max(0, (row["redeemed_on"] - issued_on).days) if is_timed else None
    found = []
    for (account, month), rows in grouped(coupons, "account", "issued_month").items():
        days = [row["days"] for row in rows if row["days"] is not None]
        redeemed = [row["redeemed_on"] for row in rows if row["redeemed_on"]]
        count = sum(bool(row["is_redeemed"]) for row in rows)
        found.append(
            {
                **{
                    "account": account,
                    "issued_month": month,
                    "issued_count": len(rows),
                    "redeemed_count": count,
                },
                "address_count": len({address(row["email"]) for row in rows}),
                "redemption_rate": share(count, len(rows)),
                **{
                    f"redeemed_within_{length}_days_count": None
                    if month == "unknown"
                    else sum(one <= length for one in days)
                    for length in (7, 30)
                },
                "median_days_to_redeem": statistics.median(days) if days else None,
                "first_redeemed_on": min(redeemed, default=None),
                "last_redeemed_on": max(redeemed, default=None),
            }
        )
    return found
