"""What happened in a sandbox's account: on each day, and to all mails. It is worked out where the account
lives, in process."""

from __future__ import annotations

import datetime as dt
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

from marketing_api.sandbox.world import World


def mails_of(world: World, now: int) -> dict[str, int]:
    """Over all campaigns and automations that can be seen."""
    found = Counter(dict.fromkeys(("sent", "bounced", "opened", "unsubscribed", "clickers", "clicks"), 0))
    for campaign in world.find_campaigns(now).values():
        found.update(campaign.count_mails(now))
        for mail in campaign.mails:
            if mail.clicked_at <= now:
                found.update(clickers=1, clicks=sum(times for _, times in mail.clicks))
    return found


def days_of(world: World, days: int) -> Iterator[dict[str, Any]]:
    """Seeded registrations and deletions, and mails, of each of the last local days."""
    moments, now = world.moments, world.now()
    tomorrow, contacts = moments.date(now) + dt.timedelta(days=1), world.subscribers.contacts.values()
    ends = [
        min(now, moments.midnight(tomorrow - dt.timedelta(days=back)) - 1)
        for back in reversed(range(days + 1))
    ]
    mails = [mails_of(world, end) for end in ends]
    for (first, last), (before, after) in zip(
        itertools.pairwise(ends), itertools.pairwise(mails), strict=True
    ):
        yield {
            "day": moments.date(last).isoformat(),
            "registered": sum(first < one.registered_at <= last for one in contacts),
            "deleted": sum(first < one.deleted_at <= last for one in contacts),
            "campaigns_sent": [
                campaign.campaign_id
                for campaign in world.find_campaigns(now).values()
                if first < campaign.sent_at <= last
            ],
            **{name: after[name] - before[name] for name in after},
        }
