"""Who reached which goal, worked out without SQL."""

from typing import Any
from urllib.parse import urlsplit

from tests.warehouse.marts.expected import Found, Source, grouped
from tests.warehouse.marts.expected_engagement import address

#: An address, or the id of a contact without one.
Person = str | int


def is_told(goal: dict[str, Any]) -> bool:
    return bool(pages_of(goal)) and not any(
        word in (goal["event_type"] or "").lower() for word in ("video", "form")
    )


def pages_of(goal: dict[str, Any]) -> set[str]:
    return {page(link) for link in goal["links"] or ()}


def value_of(goal: dict[str, Any]) -> float | None:
    return float(goal["value"]) if goal["value_type"] == "Fixed" and goal["value"] is not None else None


def page(link: str) -> str:
    parts = urlsplit(link.strip().lower())
    return (parts.netloc.removeprefix("www.") + parts.path).rstrip("/")


def reached(source: Source) -> Found:
    """Goal, person, and either the visit that made it complete or the campaigns whose clicks did."""
    visits, clicks = grouped(_visits(source), "account"), grouped(source.rows("campaign_clickers"), "account")
    found = []
    for goal in source.rows("goals"):
        if is_told(goal):
            account = goal["account"]
            for person, how in _reached(goal, visits.get((account,), []), clicks.get((account,), [])).items():
                found.append({"account": account, "goal": goal, "person": person, **how})
    return found


def _visits(source: Source) -> Found:
    """Visits with their person, in the order in which they happened."""
    emails: dict[tuple[str, int], list[str]] = {}
    for row in source.rows("contacts", deleted=True):
        if address(row["email"]):
            emails.setdefault((row["account"], row["contact_id"]), []).append(address(row["email"]))
    visits = source.rows("timeline_visits")
    for row in visits:
        row |= {
            "person": min(emails.get((row["account"], row["contact_id"]), [""])) or row["contact_id"],
            "page": page(row["link"]),
        }
    return sorted(visits, key=lambda row: (row["visited_at"], row["visit_key"], row["contact_id"]))


def _reached(goal: dict[str, Any], visits: Found, clicks: Found) -> dict[Person, dict[str, Any]]:
    """By visits as soon as these are enough, else by clicks and visits together."""
    pages = pages_of(goal)
    needed = len(pages) if "All" in (goal["event_link_rule"] or "") else 1
    seen: dict[Person, set[str]] = {}
    found: dict[Person, dict[str, Any]] = {}
    for visit in visits:
        if visit["page"] in pages:
            mine = seen.setdefault(visit["person"], set())
            mine.add(visit["page"])
            if len(mine) == needed and visit["person"] not in found:
                found[visit["person"]] = {"visit": visit, "campaigns": set()}
    by_click: dict[Person, set[int]] = {}
    for click in clicks:
        person = address(click["email"])
        if page(click["url"]) in pages and person not in found:
            seen.setdefault(person, set()).add(page(click["url"]))
            by_click.setdefault(person, set()).add(click["campaign_id"])
    for person, campaigns in by_click.items():
        if len(seen[person]) >= needed:
            found[person] = {"visit": None, "campaigns": campaigns}
    return found
