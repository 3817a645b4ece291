"""What happens to an account between two nights, and what the tables must hold after both.

Belongs here: changes to the account, and the rules of design section 5 that only show over time: rows that
vanish are marked as deleted, accumulated rows stay, changed rows alone are written and asked about again."""

from __future__ import annotations

import copy
import datetime as dt
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from .account import Account, Event, Member, Timeline
from .compare import Difference, canonical, compare_tables
from .limits import Asked
from .schema import TABLES
from .server import Service
from .truth import Case, Row, expected

#: Per-contact answers need not be asked for again every night, so what the tables hold depends on what was
#: asked.
ACCUMULATED = ("timeline_events", "timeline_visits", "timeline_automations")
#: Whether an address is asked again is the tool's choice, and so is what becomes of the coupons of one that
#: is gone.
UNJUDGED = ("coupons",)


@dataclass
class Changes:
    """What changed: `details` (operation, id) may be asked for again; `touched` counts new, changed and
    vanished rows per table."""

    details: set[tuple[str, int]] = field(default_factory=set)
    touched: Counter[str] = field(default_factory=Counter)


def pass_a_day(made: Account, rng: random.Random) -> Changes:
    """Change a little of everything: contacts come, go, move and edit; a campaign is renamed; a goal and a
    webhook go."""
    changes = Changes()
    campaign, goal, hook = rng.choice(made.campaigns), made.goals.pop(), made.webhooks[0]
    campaign.subject += " (renamed)"
    hook.name += " (renamed)"
    changes.details = {
        ("emailmarketing/getcampaign", campaign.campaign_id),
        ("webhook/show", hook.webhook_id),
    }
    changes.touched.update({"campaigns": 1, "webhooks": 1, "goals": 1})
    assert goal not in made.goals
    _contacts(made, rng, changes)
    _today(made, changes)
    return changes


def _contacts(made: Account, rng: random.Random, changes: Changes) -> None:
    gone, edited, moved = rng.sample([member for member in made.members if "@" in member.email], 3)
    made.members.remove(gone)
    edited.status = 2 if edited.status != 2 else 1
    label = next(
        (label for each in made.lists if each.list_id == edited.list_id for label in each.labels), None
    )
    edited.fields = {**edited.fields, label: "changed overnight"} if label else edited.fields
    others = [each.list_id for each in made.lists if not _stands(made, moved.contact_id, each.list_id)]
    if others:
        moved.list_id = rng.choice(others)
    fresh = max(made.timelines) + 1
    made.members.append(
        Member(
            made.lists[0].list_id,
            fresh,
            "newcomer@example.com",
            1,
            made.now.replace(second=0, microsecond=0),
            {},
        )
    )
    made.timelines[fresh] = Timeline()
    changes.touched["contacts"] += 3 + 2 * bool(others)


def _stands(made: Account, contact_id: int, list_id: int) -> bool:
    return any((member.contact_id, member.list_id) == (contact_id, list_id) for member in made.members)


def _today(made: Account, changes: Changes) -> None:
    """New entries with today's date, inside every range that a later night reads again."""
    at = (dt.datetime.now(dt.UTC) - dt.timedelta(minutes=1)).replace(second=0, microsecond=0)
    made.direct_reviews.append(replace(made.direct_reviews[0], review_id=9999, at=at))
    for line in made.timelines.values():
        line.events.insert(0, Event("email-campaign-sent", "sent overnight", at, []))
        line.events.insert(
            0, Event("email-campaign-sent", "sent overnight", at, [])
        )  # a true duplicate again
    changes.touched["direct_reviews"] += 1


Night = tuple[Case, list[Asked]]


def night(service: Service, before: list[Asked]) -> Night:
    """The account as it is now (a copy) and the requests since `before`."""
    return Case(copy.deepcopy(service.account), service.variants), service.log.entries[len(before) :]


def differences(connection: Any, *passed: Night) -> list[Difference]:
    """What is wrong after several nights: the last night's truth, and for accumulating tables everything ever
    served."""
    instead = {name: accumulated(passed, name) for name in ACCUMULATED}
    return compare_tables(
        connection, passed[-1][0], [name for name in TABLES if name not in UNJUDGED], instead
    )


def accumulated(nights: tuple[Night, ...], table: str) -> list[Row]:
    """The rows of an accumulating table: of each content as many as the fullest answer about its contact
    held."""
    fullest: Counter[tuple[Any, ...]] = Counter()
    kept: dict[tuple[Any, ...], Row] = {}
    for case, asked in nights:
        answered = {
            int(entry.param("id"))
            for entry in asked
            if entry.operation.endswith("getcontacttimeline") and entry.was_answered
        }
        night: Counter[tuple[Any, ...]] = Counter()
        for row in expected(case)[table].rows:
            if row["contact_id"] in answered:
                identity = tuple(
                    canonical(kind, row[name], case) for name, kind in TABLES[table].columns.items()
                )
                night[identity] += 1
                kept[identity] = row
        fullest |= night
    return [kept[identity] for identity, count in fullest.items() for _ in range(count)]


def touched(connection: Any, table: str, since: float) -> int:
    """Rows of a table that were written or marked as deleted since a moment (seconds since 1970)."""
    stamps = "epoch_us(_changed_at) > ? or epoch_us(_deleted_at) > ?"
    row = connection.execute(
        f"select count(*) from source.{table} where {stamps}", [int(since * 1e6)] * 2
    ).fetchall()[0]
    return int(row[0])
