"""Contacts, their timelines, visits, automations and coupons of a made-up account."""

from __future__ import annotations

import datetime as dt
import json

from tests.warehouse.marts.made import Made
from tests.warehouse.marts.rows import Row

_DOMAINS = ("example.com", "example.org", "mail.example.net", "old.example.net")
_STATUS = {0: "unconfirmed", 1: "active", 2: "unsubscribed", 3: "bounced"}
_LISTS = (1, 2, 3, 4)


def contact_rows(made: Made) -> dict[str, list[Row]]:
    """Contacts on four lists; one address in twelve stands on two of them, in capitals on the second."""
    names = ("lists", "contacts", "timeline_events", "timeline_visits", "timeline_automations", "coupons")
    rows: dict[str, list[Row]] = {name: [] for name in names}
    rows["lists"] = [
        made.row(list_id=number, name=f"List {number}", _deleted_at=made.moment(9) if number == 4 else None) for number in _LISTS
    ]
    for number in range(made.contacts):
        _person(made, number, rows)
    return rows


def _person(made: Made, number: int, rows: dict[str, list[Row]]) -> None:
    email = f"person{number}@{made.draw.choice(_DOMAINS)}" if number % 500 else made.draw.choice([None, "no address"])
    registered_at = made.moment(made.draw.random() * 400)
    entries = [(made.draw.choice(_LISTS), 10_000 + 2 * number, email)]
    if number % 12 == 0 and email:
        entries.append((entries[0][0] % 4 + 1, 10_001 + 2 * number, email.upper()))
    for list_id, contact_id, address in entries:
        code = made.draw.choices((0, 1, 2, 3), (4, 84, 8, 4))[0]
        rows["contacts"].append(
            made.row(
                list_id=list_id,
                contact_id=contact_id,
                email=address,
                status=_STATUS[code],
                status_code=code,
                registered_at=None if made.chance(0.01) else registered_at,
                _deleted_at=made.moment(made.draw.random() * 30) if made.chance(0.03) else None,
            )
        )
        _timeline(made, contact_id, registered_at, rows)
    if email and made.chance(0.3):
        _coupon(made, number, email, rows["coupons"])


def _timeline(made: Made, contact_id: int, registered_at: dt.datetime, rows: dict[str, list[Row]]) -> None:
    since = (made.moment(0) - registered_at).days
    for number in range(made.draw.randint(0, 7)):
        campaign = made.draw.randrange(40)
        sent_at = made.moment(made.draw.random() * since)
        rows["timeline_events"].append(_sent(made, contact_id, number, f"Letter {campaign}", sent_at))
        if made.chance(0.2):
            rows["timeline_visits"].append(
                _visit(made, contact_id, number, campaign, sent_at + dt.timedelta(hours=made.draw.random() * 200))
            )
    if made.chance(0.3):
        rows["timeline_automations"].append(
            made.row(
                contact_id=contact_id,
                automation_key=f"a{contact_id}",
                name=made.draw.choice(["Welcome", "Birthday"]),
                type=made.draw.choice(["email", "sms"]),
                triggered_at=None if made.chance(0.02) else made.moment(made.draw.random() * since),
                details=json.dumps([{"key": "open-date", "value": "N/A"}]),
            )
        )


def _sent(made: Made, contact_id: int, number: int, subject: str, sent_at: dt.datetime) -> Row:
    """As the service lists it: local times as text."""
    opened_at = sent_at + dt.timedelta(minutes=made.draw.randint(1, 5000)) if made.chance(0.4) else None
    shown = opened_at.astimezone(made.zone).strftime("%Y-%m-%d %I:%M %p") if opened_at else "N/A"
    clicks = made.draw.randint(0, 3) if opened_at else 0
    details = [
        {"key": "subject", "label": "Subject", "value": subject},
        {"key": "send-date", "label": "Send Date", "value": sent_at.astimezone(made.zone).strftime("%Y-%m-%d %I:%M %p")},
        {"key": "open-date", "label": "Open Date", "value": shown},
        {"key": "links-clicked", "label": "Links Clicked", "value": str(clicks)},
    ]
    return made.row(
        contact_id=contact_id,
        event_key=f"{contact_id}-{number}",
        key=made.draw.choice(["email-campaign-sent"] * 8 + ["mail-sent", "email-sent"]),
        snippet=subject,
        occurred_at=sent_at,
        details=json.dumps(details),
    )


def _visit(made: Made, contact_id: int, number: int, campaign: int, visited_at: dt.datetime) -> Row:
    return made.row(
        contact_id=contact_id,
        visit_key=f"{contact_id}-{number}",
        link="https://shop.example.com/menu",
        utm_campaign=f"c{1000 + campaign}-letter" if made.chance(0.8) else made.draw.choice([None, "spring"]),
        utm_source="newsletter",
        utm_medium="email",
        visited_at=visited_at,
    )


def _coupon(made: Made, number: int, email: str, rows: list[Row]) -> None:
    is_redeemed = made.chance(0.3)
    rows.append(
        made.row(
            coupon_id=500_000 + number,
            email=email,
            coupon_code=f"C-{number}",
            is_redeemed=is_redeemed,
            redeemed_on=made.today - dt.timedelta(days=made.draw.randint(0, 90)) if is_redeemed else None,
        )
    )
