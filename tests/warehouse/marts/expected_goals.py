"""Who reached which goal and what led there, worked out without SQL."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlsplit

from tests.warehouse.marts.expected import Found, Source, grouped
from tests.warehouse.marts.expected_attribution import attribution
from tests.warehouse.marts.expected_engagement import address

#: An address, or the id of a contact without one.
Person = str | int
#: The campaign of the first touch, that of the last, and the source.
Credit = tuple[int | None, int | None, str]


def goal_conversions(source: Source) -> Found:
    subjects = {(row["account"], row["campaign_id"]): row["subject"] for row in source.rows("campaigns", deleted=True)}
    visits, clicks = grouped(_visits(source), "account"), grouped(source.rows("campaign_clickers"), "account")
    found = []
    for goal in source.rows("goals"):
        account, pages = goal["account"], {page(link) for link in goal["links"] or ()}
        is_told = bool(pages) and not any(word in (goal["event_type"] or "").lower() for word in ("video", "form"))
        value = float(goal["value"]) if goal["value_type"] == "Fixed" and goal["value"] is not None else None
        credits = _credits(goal, pages, visits.get((account,), []), clicks.get((account,), [])) if is_told else {}
        counts = [Counter((credit[touch], credit[2]) for credit in credits.values()) for touch in (0, 1)]
        for key in {**counts[0], **counts[1]} or {(None, "(none)"): 0}:
            first, last = (count[key] if is_told else None for count in counts)
            row: dict[str, Any] = {"account": account, "goal_id": goal["goal_id"], "goal_name": goal["name"], "campaign_id": key[0]}
            row |= {"credited_to": str(key[0] or "(none)"), "source": key[1], "subject": subjects.get((account, key[0]))}
            row |= {"can_be_told": is_told, "first_touch_count": first, "last_touch_count": last, "goal_value": value}
            for name, count in (("first_touch_value", first), ("last_touch_value", last)):
                row[name] = None if value is None or count is None else count * value
            found.append(row)
    return found


def page(link: str) -> str:
    parts = urlsplit(link.strip().lower())
    return (parts.netloc.removeprefix("www.") + parts.path).rstrip("/")


def _visits(source: Source) -> Found:
    """Visits with their person and both touches, in the order in which they happened."""
    emails = {(row["account"], row["contact_id"]): address(row["email"]) for row in source.rows("contacts", deleted=True)}
    last = {(row["account"], row["outcome_key"]): row["campaign_id"] for row in attribution(source, is_first=False)}
    visits = [row for row in attribution(source, is_first=True) if row["outcome"] == "visit"]
    for row in visits:
        row |= {"person": emails.get((row["account"], row["contact_id"])) or row["contact_id"], "page": page(row["link"])}
        row |= {
            "last_campaign_id": last[row["account"], row["outcome_key"]],
            "source": (row["visit_utm_source"] or "(none)").strip().lower(),
        }
    return sorted(visits, key=lambda row: (row["outcome_at"], row["outcome_key"].partition("/")[2], row["contact_id"]))


def _credits(goal: dict[str, Any], pages: set[str], visits: Found, clicks: Found) -> dict[Person, Credit]:
    """Who reached the goal: by visits as soon as these are enough, else by clicks and visits together."""
    needed = len(pages) if "All" in (goal["event_link_rule"] or "") else 1
    seen: dict[Person, set[str]] = {}
    credits: dict[Person, Credit] = {}
    for visit in visits:
        if visit["page"] in pages:
            mine = seen.setdefault(visit["person"], set())
            mine.add(visit["page"])
            if len(mine) == needed and visit["person"] not in credits:
                credits[visit["person"]] = (visit["campaign_id"], visit["last_campaign_id"], visit["source"])
    by_click: dict[Person, set[int]] = {}
    for click in clicks:
        person = address(click["email"])
        if page(click["url"]) in pages and person not in credits:
            seen.setdefault(person, set()).add(page(click["url"]))
            by_click.setdefault(person, set()).add(click["campaign_id"])
    for person, campaigns in by_click.items():
        if len(seen[person]) >= needed:
            campaign = min(campaigns) if len(campaigns) == 1 else None
            credits[person] = (campaign, campaign, "(click)")
    return credits
