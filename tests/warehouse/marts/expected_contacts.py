"""What contacts were sent and did, worked out without SQL."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from marketing_api.records.values import read_moment
from tests.warehouse.marts.expected import Found, Source, grouped, once

_NOTHING = {"", "-", "n/a", "na", "null", "none", "0"}


@once
def contact_campaign(source: Source) -> Found:
    campaigns = _by_subject(source)
    titles = {(row["account"], row["campaign_id"]): (row["subject"] or "").strip() for row in source.rows("campaigns", deleted=True)}
    links = {key: {row["url"] for row in rows} for key, rows in grouped(source.rows("campaign_links"), "account", "campaign_id").items()}
    visits = grouped(source.rows("timeline_visits"), "account", "contact_id")
    found = []
    for message in _messages(source):
        account = message["account"]
        subject = (message["message_text"] or "").strip().lower()
        campaign_id, is_ambiguous = _campaign(campaigns.get((account, message["kind"], subject), []), message["sent_at"])
        clicked_at = message["clicked_at"]
        if clicked_at is None and message["click_count"] and campaign_id is not None and message["sent_at"]:
            urls = links.get((account, campaign_id), set())
            mine = visits.get((account, message["contact_id"]), [])
            later = [visit["visited_at"] for visit in mine if visit["link"] in urls and visit["visited_at"] >= message["sent_at"]]
            clicked_at = min(later, default=None)
        title = titles[account, campaign_id] if campaign_id is not None else None
        found.append({**message, "subject": title, "campaign_id": campaign_id, "is_ambiguous": is_ambiguous, "clicked_at": clicked_at})
    return found


def sent_at(source: Source) -> dict[tuple[str, int], dt.datetime]:
    """When each campaign's first message went out, as far as timelines tell."""
    known = [row for row in contact_campaign(source) if row["campaign_id"] is not None and row["sent_at"]]
    return {(key[0], key[1]): min(row["sent_at"] for row in rows) for key, rows in grouped(known, "account", "campaign_id").items()}


def _messages(source: Source) -> Found:
    """One per entry that is a message."""
    found = []
    for row in source.rows("timeline_events"):
        if row["key"].endswith("sent") or "campaign" in row["key"]:
            message = {"kind": "standard", "message_key": row["event_key"], "automation": None}
            message["channel"] = "sms" if "sms" in row["key"] else "email"
            found.append(_told(source, row, message, row["snippet"], row["occurred_at"]))
    for row in source.rows("timeline_automations"):
        message = {"kind": "automated", "message_key": row["automation_key"], "automation": row["name"]}
        message["channel"] = (row["type"] or "email").lower()
        found.append(_told(source, row, message, None, row["triggered_at"]))
    return found


def _told(source: Source, row: dict[str, Any], message: dict[str, Any], snippet: str | None, at: dt.datetime | None) -> dict[str, Any]:
    details: dict[str, Any] = {}
    for entry in json.loads(row["details"] or "[]"):
        details.setdefault(entry["key"], entry["value"])

    def moment(name: str) -> dt.datetime | None:
        return read_moment(details.get(name), source.zones[row["account"]]) if _says(details.get(name)) else None

    clicks = int(details["links-clicked"]) if details.get("links-clicked") is not None else int(_says(details.get("click-date")))
    return {
        "account": row["account"],
        "contact_id": row["contact_id"],
        **message,
        "message_text": details.get("subject", snippet),
        "sent_at": at or moment("send-date"),
        "is_opened": _says(details.get("open-date")) or clicks > 0,
        "opened_at": moment("open-date"),
        "is_clicked": clicks > 0,
        "click_count": clicks,
        "clicked_at": moment("click-date"),
    }


def _says(value: Any) -> bool:
    return value is not None and str(value).strip().lower() not in _NOTHING


def _by_subject(source: Source) -> dict[tuple[Any, ...], list[tuple[dt.datetime, int]]]:
    """(account, kind, subject) → (created, campaign) of those that went out, the oldest first."""
    found: dict[tuple[Any, ...], list[tuple[dt.datetime, int]]] = {}
    for row in source.rows("campaigns", deleted=True):
        if row["subject"] is None or row["status"] in ("draft", "scheduled"):
            continue
        kind = "automated" if row["type"] == "automated" else "standard"
        created_at = row["created_at"] or (row["_first_seen_at"] if row["_deleted_at"] else row["_changed_at"])
        found.setdefault((row["account"], kind, row["subject"].strip().lower()), []).append((created_at, row["campaign_id"]))
    return {key: sorted(campaigns) for key, campaigns in found.items()}


def _campaign(campaigns: list[tuple[dt.datetime, int]], at: dt.datetime | None) -> tuple[int | None, bool]:
    """The one created last before the message went out, else the first; whether there is an earlier one."""
    if not campaigns or at is None:
        return None, False
    before = [campaign for campaign in campaigns if campaign[0] <= at] or campaigns[:1]
    return before[-1][1], len(before) > 1
