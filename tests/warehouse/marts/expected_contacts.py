"""What contacts were sent and did, worked out without SQL."""

import datetime as dt
import json
import statistics
from collections import Counter
from typing import Any

from marketing_api.records.values import read_moment
from tests.warehouse.marts.expected import Found, Source, grouped, once, pick, row_of, share

_NOTHING = {"", "-", "n/a", "na", "null", "none", "0"}


def _subject(message: dict[str, Any]) -> tuple[str, str, str]:
    """What campaigns are found by."""
    return message["account"], message["kind"], (message["message_text"] or "").strip().lower()


@once
def contact_campaign(source: Source) -> Found:
    campaigns = _by_subject(source)
    titles = source.by("campaigns", "account", "campaign_id")
    links = grouped(source.rows("campaign_links"), "account", "campaign_id")
    visits = grouped(source.rows("timeline_visits"), "account", "contact_id")
    found = []
    for message in _messages(source):
        account = message["account"]
        campaign_id, is_ambiguous = _campaign(campaigns.get(_subject(message), []), message["sent_at"])
        clicked_at = message["clicked_at"]
        if clicked_at is None and message["click_count"] and campaign_id is not None and message["sent_at"]:
            urls = {link["url"] for link in links.get((account, campaign_id), [])}
            mine = [one for one in visits.get((account, message["contact_id"]), []) if one["link"] in urls]
            later = [one["visited_at"] for one in mine if one["visited_at"] >= message["sent_at"]]
            clicked_at = min(later, default=None)
        title = None
        if campaign_id is not None:
            title = (titles[account, campaign_id]["subject"] or "").strip()
        message |= {"subject": title, "campaign_id": campaign_id}
        found.append(message | {"is_ambiguous": is_ambiguous, "clicked_at": clicked_at})
    return found


def is_known_opening(message: dict[str, Any]) -> bool:
    """Whether the message may stand below the line of an open rate."""
    return message["channel"] == "email" and message["is_opened"] is not None


def message_matching(source: Source) -> Found:
    found = []
    messages = grouped(contact_campaign(source), "account", "kind", "channel")
    for key, rows in messages.items():
        matched = sum(row["campaign_id"] is not None for row in rows)
        ambiguous = sum(row["is_ambiguous"] for row in rows)
        row = row_of("account kind channel message_count matched_count", *key, len(rows), matched)
        row |= {"ambiguous_count": ambiguous, "unmatched_count": len(rows) - matched - ambiguous}
        found.append(row | {"matched_message_rate": matched / len(rows)})
    return found


def channels(source: Source) -> dict[tuple[str, int], str | None]:
    """The channel of each campaign of which timelines show a message; None where they show several."""
    known = grouped(
        [row for row in contact_campaign(source) if row["campaign_id"] is not None], "account", "campaign_id"
    )
    words = {(key[0], key[1]): {row["channel"] for row in rows} for key, rows in known.items()}
    return {key: some.pop() if len(some) == 1 else None for key, some in words.items()}


def sent_at(source: Source) -> dict[tuple[str, int], dt.datetime]:
    """When each campaign's first message went out, as far as timelines tell."""
    known = [row for row in contact_campaign(source) if row["campaign_id"] is not None and row["sent_at"]]
    return {
        (key[0], key[1]): min(row["sent_at"] for row in rows if row["sent_at"].year >= 2000)
        for key, rows in grouped(known, "account", "campaign_id").items()
    }


def told(source: Source) -> dict[tuple[str, int], dict[str, Any]]:
    """What timelines tell of each campaign's messages: the columns of campaign_performance about them."""
    campaigns, minutes = _by_subject(source), dict[tuple[str, int], list[int]]()
    possible: Counter[tuple[str, int]] = Counter()
    for message in contact_campaign(source):
        able = _able(campaigns.get(_subject(message), []), message["sent_at"])
        possible.update((message["account"], one["id"]) for one in able)
        if message["campaign_id"] is not None:
            known = minutes.setdefault((message["account"], message["campaign_id"]), [])
            known.append(_minutes(message["sent_at"], message["opened_at"]))
    return {key: _openings(minutes.get(key, []), count) for key, count in possible.items()}


def _minutes(sent_at: dt.datetime | None, opened_at: dt.datetime | None) -> int:
    """By the minute hand; -1 when it is not known."""
    if sent_at is None or opened_at is None:
        return -1
    minutes = int(opened_at.timestamp() // 60) - int(sent_at.timestamp() // 60)
    return max(minutes, 0) if minutes >= -1 else -1


def _openings(minutes: list[int], possible: int) -> dict[str, Any]:
    timed = [one for one in minutes if one >= 0]
    row = {"message_count": possible, "matched_count": len(minutes), "timed_open_count": len(timed)}
    row["matched_message_rate"] = share(len(minutes), possible)
    row["median_hours_to_open"] = statistics.median(timed) / 60 if timed else None
    for hours in (1, 24, 48):
        row[f"opened_within_{hours}h_rate"] = share(sum(one <= 60 * hours for one in timed), len(timed))
    return row


def _messages(source: Source) -> Found:
    """One per entry that is a message."""
    found = []
    for row in source.rows("timeline_events"):
        if row["key"].endswith(("sent", "campaign")):
            message = {"kind": "standard", "message_key": row["event_key"], "automation": None}
            words = [word for word in row["key"].split("-") if word not in ("campaign", "sent")]
            message["channel"] = _channel("-".join(words))
            found.append(_told(source, row, message, row["snippet"], row["occurred_at"]))
    for row in source.rows("timeline_automations"):
        message = {"kind": "automated", "message_key": row["automation_key"], "automation": row["name"]}
        message["channel"] = _channel((row["type"] or "").strip().lower())
        found.append(_told(source, row, message, None, row["triggered_at"]))
    return found


def _channel(word: str) -> str:
    return "sms" if "sms" in word else "email" if "mail" in word else word or "unknown"


def _told(
    source: Source, row: dict[str, Any], message: dict[str, Any], snippet: str | None, at: dt.datetime | None
) -> dict[str, Any]:
    details: dict[str, Any] = {}
    for entry in json.loads(row["details"] or "[]"):
        details.setdefault(entry["key"], entry["value"])

    def moment(name: str) -> dt.datetime | None:
        text = details.get(name)
        return read_moment(text, source.zones[row["account"]]) if _says(text) else None

    # an e-mail with details says by its silence that nothing happened; other messages say nothing by it
    is_plain = message["channel"] == "email" and bool(details)
    clicks: int | None = 0 if is_plain or "click-date" in details else None
    if details.get("links-clicked") is not None:
        links = json.loads(str(details["links-clicked"]))
        clicks = len(links) if isinstance(links, dict) else links
    elif _says(details.get("click-date")):
        clicks = 1
    is_opened = True if _says(details.get("open-date")) or clicks else False if is_plain else None
    sent_at, opened_at = at or moment("send-date"), moment("open-date")
    text = details.get("subject", snippet if snippet is not None else details.get("message"))
    is_quick = False if is_opened is False else _is_quick(sent_at, opened_at)
    told = pick(row, "account contact_id") | message | {"message_text": text, "sent_at": sent_at}
    told |= {"is_opened": is_opened, "opened_at": opened_at, "is_quick_open": is_quick}
    told |= {"is_clicked": None if clicks is None else clicks > 0, "click_count": clicks}
    return told | {"clicked_at": moment("click-date")}


def _is_quick(sent_at: dt.datetime | None, opened_at: dt.datetime | None) -> bool | None:
    """In the minute of the sending or the next. Unknown when it lies before the sending."""
    if sent_at is None or opened_at is None:
        return None
    minutes = int(opened_at.timestamp() // 60) - int(sent_at.timestamp() // 60)
    return None if minutes < -1 else minutes <= 1


def _says(value: Any) -> bool:
    return value is not None and str(value).strip().lower() not in _NOTHING


_EVER = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _by_subject(source: Source) -> dict[tuple[Any, ...], Found]:
    """(account, kind, subject) → the campaigns that went out: id, and from when until when they may have sent
    messages. The end is when an answer first listed them as sent, or their sending was over; where the sending
    is told, hours around it are both."""
    found: dict[tuple[Any, ...], Found] = {}
    for row in source.rows("campaigns", deleted=True):
        if row["subject"] is None or row["status"] in ("draft", "scheduled"):
            continue
        kind = "automated" if row["type"] == "automated" else "standard"
        seen_at = row["_first_seen_at"] if row["_deleted_at"] else row["_changed_at"]
        gone_at = seen_at if kind == "standard" and row["status"] == "sent" else None
        begins_at = row["created_at"] or _EVER
        if kind == "standard" and row["sent_at"]:
            begins_at = row["sent_at"] - dt.timedelta(hours=12)
            gone_at = row["sent_at"] + dt.timedelta(hours=10)
        campaign = {"id": row["campaign_id"], "begins_at": begins_at, "gone_at": gone_at}
        found.setdefault((row["account"], kind, row["subject"].strip().lower()), []).append(campaign)
    times: dict[tuple[Any, ...], list[dt.datetime]] = {}
    for message in _messages(source):
        if message["sent_at"]:
            times.setdefault(_subject(message), []).append(message["sent_at"])
    for key, some in found.items():
        if key[1] == "standard" and len(some) > 1:
            _end(some, _sendings(sorted(times.get(key, []))))
    return found


def _sendings(times: list[dt.datetime]) -> list[tuple[dt.datetime, dt.datetime]]:
    """First and last message of each; between two are more than 36 hours."""
    found: list[tuple[dt.datetime, dt.datetime]] = []
    for at in times:
        if found and at - found[-1][1] <= dt.timedelta(hours=36):
            found[-1] = (found[-1][0], at)
        else:
            found.append((at, at))
    return found


def _end(campaigns: Found, sendings: list[tuple[dt.datetime, dt.datetime]]) -> None:
    """Walk through the sendings: each takes one of those that wait. When none waits, all are gone."""
    day = dt.timedelta(days=1)
    first = min(one["begins_at"] for one in campaigns)
    created = [one["begins_at"] - (day if one["begins_at"] == first else 0 * day) for one in campaigns]
    waiting, known, over = 0, 0, []
    for begun_at, ended_at in sendings:
        if begun_at < first - day:
            continue
        now_known = sum(at <= ended_at for at in created)
        waiting, known = waiting + now_known - known, now_known
        if not waiting and any(ended_at < at <= ended_at + day for at in created):
            return  # the clocks do not fit
        waiting = max(waiting - 1, 0)
        if not waiting:
            over.append(ended_at)
    for campaign, at in zip(campaigns, created, strict=True):
        ends = [one for one in over if one >= at]
        if ends:
            campaign["gone_at"] = min([ends[0], *([campaign["gone_at"]] if campaign["gone_at"] else [])])


def _campaign(campaigns: Found, at: dt.datetime | None) -> tuple[int | None, bool]:
    """The one that may have sent the message, and whether several may."""
    able = _able(campaigns, at)
    return (able[0]["id"] if len(able) == 1 else None), len(able) > 1


def _able(campaigns: Found, at: dt.datetime | None) -> Found:
    """The campaigns of its subject that may have sent the message."""
    if not campaigns or at is None:
        return []
    first = min(campaign["begins_at"] for campaign in campaigns)
    if first - dt.timedelta(days=1) <= at < first:
        at = first  # clocks differ
    before = [campaign for campaign in campaigns if campaign["begins_at"] <= at]
    newest = max((campaign["begins_at"] for campaign in before), default=None)
    return [
        one
        for one in before
        if one["begins_at"] == newest or one["gone_at"] is None or one["gone_at"] >= newest
    ]
