"""How far a made-up account was read: coverage of tables and of contacts, and what could not be read."""

import datetime as dt
from collections.abc import Iterator

from tests.warehouse.marts.made import NIGHTS, NOW, Made
from tests.warehouse.marts.rows import Row, Rows
from warehouse.tables import TABLES, Window


def sync_rows(made: Made, rows: Rows) -> dict[str, list[Row]]:
    """Every table but one was read; some of it long ago or not completely."""
    coverage = [
        row for table in TABLES.values() for row in _table(made, table.name, isinstance(table.load, Window))
    ]
    rejected = {"account": made.account, "table_name": "contacts", "scope": "list_id=1", "reason": "no id"}
    return {
        "sync.coverage": coverage,
        # the other home is older than they are
        "sync.readings": list(_readings(made)) if made.account == "harbor" else [],
        "sync.contact_coverage": _contacts(made, rows),
        "sync.rejected_records": [rejected] * 3,
        "sync.writebacks": list(_pushed(made)),
    }


def _pushed(made: Made) -> Iterator[Row]:
    """To people who left reviews, by contact and address; not all arrived, not all are activities."""
    for number in range(24):
        contact_id, told = 30_000 + 4 * (number // 2), made.moment(number * 4)
        who = {"contact_id": contact_id} if number % 3 else {"email": f"Comer{contact_id}@example.com"}
        state = ("verified", "applied", "rejected")[number % 5 % 3]
        kind, effect = ("tags", "tags") if number % 7 == 0 else ("activities", "notes")
        done_at = None if number % 4 == 0 else told + dt.timedelta(minutes=1)
        row = {"account": made.account, "outbox_begun_at": NOW, "item_id": number, "kind": kind}
        yield row | {"effect": effect, "state": state, "sent_at": told, "done_at": done_at, **who}


def _table(made: Made, name: str, is_range: bool) -> list[Row]:
    if name == "managers":
        return []
    if is_range:
        return [_range(made, name, back) for back in range(0, 130, 6)]
    if name == "social_link_clicks":
        # one account's silence about a link tells that nobody clicked it, the other's tells nothing
        return [_row(made, name, "all", NOW, is_complete=made.account == "harbor")]
    scopes = [f"list_id={number}" for number in (1, 2, 3, 4)] if name == "contacts" else ["all"]
    rows = []
    for scope in scopes:
        as_of = NOW - dt.timedelta(hours=made.draw.randint(0, 60))
        rows.append(_row(made, name, scope, as_of, is_complete=made.chance(0.8)))
    return rows


def _range(made: Made, name: str, back: int) -> Row:
    """Eight days, so that ranges overlap by two. One account's last weeks were read completely."""
    last = made.today - dt.timedelta(days=back)
    scope = f"{last - dt.timedelta(days=7)}..{last}"
    is_complete = back == 0 or made.chance(0.7) or (made.account == "harbor" and back < 36)
    return _row(made, name, scope, NOW - dt.timedelta(days=back), is_complete=is_complete)


def _readings(made: Made) -> Iterator[Row]:
    """Of each list on most nights; one list was incomplete at first, and the zone was another."""
    for back in [NIGHTS, *(night for night in range(NIGHTS - 1, -1, -1) if made.chance(0.9))]:
        for list_id in (1, 2, 3, 4, 5):
            if list_id < 5 or back <= 12:
                zone = "America/New_York" if back > 30 else str(made.zone)
                is_complete = back < 42 if list_id == 3 else made.chance(0.95) or back == NIGHTS
                row = {"account": made.account, "table_name": "contacts", "scope": f"list_id={list_id}"}
                yield row | {"as_of": made.moment(back), "timezone": zone, "is_complete": is_complete}


def _row(made: Made, name: str, scope: str, as_of: dt.datetime, *, is_complete: bool) -> Row:
    return {
        "account": made.account,
        "table_name": name,
        "scope": scope,
        "as_of": as_of if name != "business" else NOW,
        "due_at": as_of + dt.timedelta(days=1) if made.chance(0.7) else None,
        "is_complete": is_complete,
        "reason": None if is_complete else f"{name} {scope} broke",
    }


def _contacts(made: Made, rows: Rows) -> list[Row]:
    """Most contacts that exist, and some that are gone."""
    emails = {row["contact_id"]: row["email"] for row in rows["contacts"]}
    return [
        {
            "account": made.account,
            "contact_id": contact_id,
            "email": email,
            "timeline_asked_at": made.moment(made.draw.random() * 20) if made.chance(0.9) else None,
            "coupon_first_asked_at": made.moment(contact_id % 3 * 15) if contact_id % 7 else None,
            "coupon_asked_at": made.moment(made.draw.random() * 20) if made.chance(0.7) else None,
        }
        for contact_id, email in sorted(emails.items())
        if made.chance(0.95)
    ]
