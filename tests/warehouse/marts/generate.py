"""A large made-up warehouse: two accounts in different time zones, thousands of contacts, and every oddity
that marts must bear.

What is drawn is plausible where a mart's calculation depends on it, and odd on purpose here and there: counts
that are missing or contradict each other, rows that are deleted, nights without an answer. Not here: the
parts (`generate_*`), how they are written (`rows`)."""

import random
from zoneinfo import ZoneInfo

from tests.warehouse.marts.generate_campaigns import campaign_rows
from tests.warehouse.marts.generate_contacts import contact_rows
from tests.warehouse.marts.generate_goals import goal_rows
from tests.warehouse.marts.generate_reputation import reputation_rows
from tests.warehouse.marts.generate_social import social_rows
from tests.warehouse.marts.generate_sync import sync_rows
from tests.warehouse.marts.made import Made
from tests.warehouse.marts.rows import Row, together

#: Account → (time zone, contacts); the first zone is told by the account, the second by the settings.
ACCOUNTS = {"harbor": ("Europe/Berlin", 3200), "hill": ("America/New_York", 1800)}
ZONES = {name: ZoneInfo(zone) for name, (zone, _) in ACCOUNTS.items()}


def generated() -> dict[str, list[Row]]:
    """All rows of both accounts: the same at every call."""
    return together(_account(name, zone, contacts) for name, (zone, contacts) in ACCOUNTS.items())


def _account(name: str, zone: str, contacts: int) -> dict[str, list[Row]]:
    made = Made(name, ZoneInfo(zone), random.Random(name), contacts)
    parts = [
        campaign_rows(made),
        contact_rows(made),
        reputation_rows(made),
        social_rows(made),
        goal_rows(made),
    ]
    told = zone if name == "harbor" else None
    parts.append({"business": [made.row(business_id=1, business_name=name, timezone=told)]})
    rows = together(parts)
    return together([rows, sync_rows(made, rows)])
