"""How addresses react, arrive, register and use coupons, and automations, without SQL."""

import datetime as dt
import statistics
from typing import Any

from tests.warehouse.marts.expected import Found, Source, grouped, known, once, row_of, share, unknown
from tests.warehouse.marts.expected_contacts import contact_campaign, is_known_opening

_STATUSES = ("bounced", "active", "unconfirmed", "unsubscribed")


def address(text: str | None) -> str:
    return (text or "").strip().lower()


def by_address(rows: Found) -> dict[tuple[Any, ...], Found]:
    """Rows by account and address."""
    return grouped([row | {"address": address(row["email"])} for row in rows], "account", "address")


@once
def contact_engagement(source: Source) -> Found:
    messages = grouped(contact_campaign(source), "account", "contact_id")
    visits = grouped(source.rows("timeline_visits"), "account", "contact_id")
    coverage = source.by("sync.contact_coverage", "account", "contact_id")
    asked = {key: row["timeline_asked_at"] for key, row in coverage.items()}
    names = {key: row["name"] for key, row in source.by("lists", "account", "list_id").items()}
    coupons = by_address(source.rows("coupons", deleted=True))
    ever = by_address(source.rows("contacts", deleted=True))
    found = []
    for (account, email), entries in by_address(source.rows("contacts")).items():
        if not email:
            continue
        ids = {(account, row["contact_id"]) for row in entries}
        were = {(account, row["contact_id"]) for row in ever[account, email]}
        titles = {names.get((account, row["list_id"]), f"list {row['list_id']}") for row in entries}
        statuses = {row["status"] for row in entries}
        given = coupons.get((account, email), [])
        registered = source.plausible(account, known(ever[account, email], "registered_at"))
        lists = {row["list_id"] for row in entries}
        row = row_of("account email contact_count list_count", account, email, len(entries), len(lists))
        row["lists"] = sorted(titles)
        row["status"] = next((status for status in _STATUSES if status in statuses), "unknown")
        row |= {"registered_at": min(registered, default=None), "coupon_count": len(given)}
        row["redeemed_count"] = sum(bool(one["is_redeemed"]) for one in given)
        row["timeline_as_of"] = min((moment for one in ids if (moment := asked.get(one))), default=None)
        row |= _reactions(source, account, [one for key in were for one in messages.get(key, [])])
        moments = [visit["visited_at"] for key in were for visit in visits.get(key, [])]
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
    kept = {"account", "email", "contact_count", "list_count", "lists", "status", "registered_at"}
    kept |= {"coupon_count", "redeemed_count"}
    told = unknown("last_active_at days_since_active days_since_clicked recency_tier frequency_tier")
    tier = "unread" if row["status"] == "active" else "unreachable"
    tiers = {"engagement_tier": tier, "click_engagement_tier": tier}
    is_dormant = None if row["status"] == "active" else False
    return dict.fromkeys(set(row) - kept) | told | tiers | {"is_dormant": is_dormant}


def _days_ago(source: Source, account: str, moment: dt.datetime) -> int:
    """Of the account's calendar: 0 is the day of its newest answer."""
    day = source.local_date(account, moment)
    assert day is not None
    return (source.today(account) - day).days


def _reactions(source: Source, account: str, messages: Found) -> dict[str, Any]:
    """Counts and rates of e-mails that can be seen to be opened; of the other messages how many there are."""
    emails = [one for one in messages if is_known_opening(one)]
    texts = [one for one in messages if one["channel"] == "sms"]

    def since(days: int, some: Found) -> Found:
        dated = [one for one in some if one["sent_at"]]
        return [one for one in dated if 0 <= _days_ago(source, account, one["sent_at"]) < days]

    row: dict[str, Any] = {"sent_180d_count": len(since(180, emails))}
    for suffix, some in (("", emails), ("_90d", since(90, emails))):
        row[f"sent{suffix}_count"] = len(some)
        row[f"opened{suffix}_count"] = sum(one["is_opened"] for one in some)
        row[f"clicked{suffix}_count"] = sum(one["is_clicked"] for one in some)
    clicks = [one["is_clicked"] for one in texts]
    row |= {"sms_sent_count": len(texts), "sms_sent_90d_count": len(since(90, texts))}
    row["sms_clicked_count"] = None if None in clicks else sum(clicks)
    row["other_sent_count"] = len(messages) - len(emails) - len(texts)
    row["open_of_sent_rate"] = share(row["opened_count"], row["sent_count"])
    row["click_of_sent_rate"] = share(row["clicked_count"], row["sent_count"])
    row["open_of_sent_90d_rate"] = share(row["opened_90d_count"], row["sent_90d_count"])
    moments = {"sent": [one["sent_at"] for one in messages]}
    moments["opened"] = [one["opened_at"] or one["sent_at"] for one in messages if one["is_opened"]]
    clicked = [one for one in messages if one["is_clicked"]]
    moments["clicked"] = [one["clicked_at"] or one["opened_at"] or one["sent_at"] for one in clicked]
    for name, some in moments.items():
        row[f"last_{name}_at"] = max(source.plausible(account, some), default=None)
    return row


def _first(rules: tuple[tuple[str, bool], ...]) -> str:
    return next(name for name, holds in rules if holds)


def _tiers(source: Source, row: dict[str, Any]) -> dict[str, Any]:
    moments = [row[f"last_{name}_at"] for name in ("opened", "clicked", "visited")]
    last = max(filter(None, moments), default=None)
    days = _days_ago(source, row["account"], last) if last else None
    since = 10_000 if days is None else days
    recency = (("30 days", since <= 30), ("90 days", since <= 90), ("1 year", since <= 365))
    tier = "never" if days is None else _first((*recency, ("older", True)))
    rate = row["open_of_sent_90d_rate"]
    steps = () if rate is None else (("none", rate == 0), ("rare", rate < 0.25), ("regular", rate < 0.6))
    frequency = "not mailed" if rate is None else _first((*steps, ("keen", True)))
    is_dormant = row["status"] == "active" and row["sent_180d_count"] >= 3 and (days is None or days > 180)
    registered = row["registered_at"]
    is_new = registered is not None and _days_ago(source, row["account"], registered) <= 30

    def tier_by(since: int | None) -> str:
        rules = (
            ("unreachable", row["status"] != "active"),
            ("engaged", since is not None and since <= 90),
            ("new", is_new),
            ("dormant", row["sent_180d_count"] >= 3 and (since is None or since > 180)),
            ("cooling", since is not None and since <= 365),
            ("quiet", True),
        )
        return _first(rules)

    columns = "last_active_at days_since_active recency_tier frequency_tier is_dormant engagement_tier"
    told = row_of(columns, last, days, tier, frequency, is_dormant, tier_by(days))
    return told | {"click_engagement_tier": tier_by(row["days_since_clicked"])}


def deliverability_by_domain(source: Source) -> Found:
    people = [row for row in contact_engagement(source) if "@" in row["email"][1:-1]]
    for row in people:
        row["domain"] = row["email"].rpartition("@")[2]
    average: dict[str, float | None] = {}
    for (account,), rows in grouped(people, "account").items():
        opened, sent = (sum(known(rows, name)) for name in ("opened_90d_count", "sent_90d_count"))
        average[account] = share(opened, sent)
    found = []
    for (account, domain), rows in grouped(people, "account", "domain").items():
        row: dict[str, Any] = {"account": account, "domain": domain, "address_count": len(rows)}
        for status in _STATUSES:
            row[f"{status}_count"] = sum(one["status"] == status for one in rows)
        row["other_count"] = len(rows) - sum(row[f"{status}_count"] for status in _STATUSES)
        for name in ("sent_count", "opened_count", "clicked_count", "sent_90d_count", "opened_90d_count"):
            counts = known(rows, name)
            row[name] = sum(counts) if counts else None
        row["bounced_address_rate"] = share(row["bounced_count"], len(rows))
        row["unsubscribed_address_rate"] = share(row["unsubscribed_count"], len(rows))
        row["open_of_sent_rate"] = share(row["opened_count"], row["sent_count"])
        row["click_of_sent_rate"] = share(row["clicked_count"], row["sent_count"])
        row["open_of_sent_90d_rate"] = share(row["opened_90d_count"], row["sent_90d_count"])
        usual, rate, sent = average[account], row["open_of_sent_90d_rate"], row["sent_90d_count"]
        row["relative_open_90d"] = rate / usual if rate is not None and usual else None
        row["last_opened_at"] = max(known(rows, "last_opened_at"), default=None)
        few = sent is not None and row["opened_90d_count"] < 0.2 * (usual or 0) * sent
        row["is_suspicious"] = None if sent is None else sent >= 50 and few
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
        for status in ("active", "unsubscribed", "bounced"):
            row[f"{status}_count"] = sum(one["status"] == status for one in rows)
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
        sent_on = source.local_date(row["account"], row["sent_at"])
        if is_known_opening(row) and source.plausible(row["account"], [row["sent_at"]]):
            weeks.setdefault((row["account"], row["contact_id"], _monday(sent_on)), []).append(row)
    statuses = grouped(source.rows("contacts"), "account", "contact_id")
    told = {key: {row["status"] for row in rows} for key, rows in statuses.items()}
    gone = {key for key, words in told.items() if "unsubscribed" in words and "active" not in words}
    last: dict[tuple[str, int], dt.date] = {}
    for account, contact, week in weeks:
        last[account, contact] = max(week, last.get((account, contact), week))
    buckets: dict[tuple[str, int], list[tuple[int, dt.date, Found]]] = {}
    for (account, contact, week), messages in weeks.items():
        if 0 < (_monday(source.today(account)) - week).days <= 364:
            buckets.setdefault((account, min(8, len(messages))), []).append((contact, week, messages))
    found = []
    for (account, number), some in buckets.items():
        sent, opened, clicked = (
            [sum(map(bool, (row[name] for row in messages))) for _, _, messages in some]
            for name in ("message_key", "is_opened", "is_clicked")
        )
        left = sum((account, contact) in gone and last[account, contact] == week for contact, week, _ in some)
        contacts = len({contact for contact, _, _ in some})
        row = row_of("account messages_a_week contact_week_count", account, number, len(some))
        row |= row_of("contact_count sent_count opened_count", contacts, sum(sent), sum(opened))
        row |= {"clicked_count": sum(clicked), "clicked_week_count": sum(map(bool, clicked))}
        row["unsubscribed_count"] = left
        row["open_of_sent_rate"] = share(sum(opened), sum(sent))
        row["click_of_sent_rate"] = share(sum(clicked), sum(sent))
        row["clicked_week_rate"] = share(row["clicked_week_count"], len(some))
        row["unsubscribed_week_rate"] = share(left, len(some))
        found.append(row)
    return found


def _monday(day: dt.date) -> dt.date:
    return day - dt.timedelta(days=day.weekday())


def automation_activity(source: Source) -> Found:
    messages = [row for row in contact_campaign(source) if row["kind"] == "automated"]
    messages = [row for row in messages if source.plausible(row["account"], [row["sent_at"]])]
    for row in messages:
        row["automation"] = row["automation"] or "(no name)"
        row["triggered_on"] = source.local_date(row["account"], row["sent_at"])
    found = []
    key = ("account", "automation", "channel", "triggered_on")
    for place, rows in grouped(messages, *key).items():
        openings = [row["is_opened"] for row in rows if is_known_opening(row)]
        clicks = known(rows, "is_clicked")
        opened, clicked = (sum(some) if some else None for some in (openings, clicks))
        campaigns = {row["campaign_id"] for row in rows}
        minutes = [_minutes(row["sent_at"], row["opened_at"]) for row in rows if row["opened_at"]]
        minutes = [max(one, 0) for one in minutes if one >= -1]
        row = dict(zip(key, place, strict=True)) | {"triggered_count": len(rows)}
        row["campaign_id"] = campaigns.pop() if len(campaigns) == 1 else None
        row["contact_count"] = len({one["contact_id"] for one in rows})
        row |= {"open_known_count": len(openings), "opened_count": opened}
        row |= {"click_known_count": len(clicks), "clicked_count": clicked}
        row["open_of_sent_rate"] = share(opened, len(openings))
        row["click_of_sent_rate"] = share(clicked, len(clicks))
        row["median_hours_to_open"] = statistics.median(minutes) / 60 if minutes else None
        found.append(row)
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
        days, redeemed = known(rows, "days"), known(rows, "redeemed_on")
        count = sum(bool(row["is_redeemed"]) for row in rows)
        columns = "account issued_month issued_count redeemed_count redemption_rate"
        row = row_of(columns, account, month, len(rows), count, share(count, len(rows)))
        row["address_count"] = len({address(one["email"]) for one in rows})
        for length in (7, 30):
            within = sum(one <= length for one in days)
            row[f"redeemed_within_{length}_days_count"] = None if month == "unknown" else within
        row["median_days_to_redeem"] = statistics.median(days) if days else None
        row["first_redeemed_on"] = min(redeemed, default=None)
        found.append(row | {"last_redeemed_on": max(redeemed, default=None)})
    return found
