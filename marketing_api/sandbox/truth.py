"""What is true of an account at its present time, told by counters, by day and by contact: what tests compare answers and tables with."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from marketing_api.sandbox.listing import Listing
from marketing_api.sandbox.moments import Moments
from marketing_api.sandbox.world import World


def truth(world: World, moments: Moments, days: int) -> dict[str, Any]:
    """Counters as of now, and for each of the last `days` local days what happened on it (today until now)."""
    now = world.now()
    counted = {wanted: Listing(world.account, world.subscribers, wanted, now).count for wanted in world.lists.all(now)}
    return {
        "now": now,
        "start": world.account.start,
        "timezone": world.account.origin.timezone,
        "seed": world.account.origin.seed,
        "contacts": sum(counted.values()),
        "contacts_by_list": counted,
        "mails": _mails(world, now),
        "days": list(_days(world, moments, days, now)) if days else [],
    }


def written(world: World) -> dict[int, dict[str, Any] | None]:
    """Every contact that was ever written to, as it stands; None in place of one that was deleted."""
    return {one: _as_it_stands(world, one) for one in sorted(world.subscribers.cards)}


def _as_it_stands(world: World, contact_id: int) -> dict[str, Any] | None:
    contact, card = world.subscribers.get(contact_id, world.now()), world.subscribers.cards[contact_id]
    if contact is None:
        return None
    return {
        "list_id": contact.list_id,
        "email": contact.email,
        "status": contact.status,
        "values": contact.values,
        "tags": sorted(card.tags),
        "activities": card.activities,  # (unix seconds, description), in order of writing
    }


def _mails(world: World, now: int) -> dict[str, int]:
    """Over all campaigns and automations that can be seen."""
    found = {"sent": 0, "bounced": 0, "opened": 0, "unsubscribed": 0, "clickers": 0, "clicks": 0}
    for campaign in world.campaigns(now):
        totals = world.activity.totals(campaign, now)
        found["sent"] += totals.sent
        found["bounced"] += totals.bounced
        found["opened"] += totals.opened
        found["unsubscribed"] += totals.unsubscribed
        for _, clicked in world.activity.clickers(campaign, now):
            found["clickers"] += 1
            found["clicks"] += sum(times for _, times in clicked)
    return found


def _days(world: World, moments: Moments, days: int, now: int) -> Iterator[dict[str, Any]]:
    """Seeded registrations and deletions, and mails, of each of the last local days."""
    today = moments.date(now)
    dates = [today - dt.timedelta(days=back) for back in reversed(range(days))]
    ends = [min(now, moments.midnight(date + dt.timedelta(days=1)) - 1) for date in dates]
    first = moments.midnight(dates[0]) - 1 if dates else now
    before, rolls = _mails(world, first), world.account.rolls
    for date, last in zip(dates, ends, strict=True):
        after = _mails(world, last)
        yield {
            "day": date.isoformat(),
            "registered": sum(roll.registered(last) - roll.registered(first) for roll in rolls),
            "deleted": sum(roll.deleted(last) - roll.deleted(first) for roll in rolls),
            "campaigns_sent": [campaign.campaign_id for campaign in world.campaigns(now) if first < campaign.sent_at <= last],
            **{name: after[name] - before[name] for name in after},
        }
        first, before = last, after
