"""What an account must be after a push, against what it is: the whole account is compared, not only what the
file names."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from .account import Account, Member
from .answers import World
from .push_files import File, meant

#: Compared by rules of their own; everything else of the account must be exactly as before.
_WRITTEN = {"members", "timelines", "tags", "now"}


def differences(before: Account, world: World, *files: File) -> list[str]:
    """Everything that is not as the files ask for, or that changed without being asked for. Queued effects
    count as done."""
    world.settle(at_once=True)
    found = list(_untouched(before, world.account))
    found += _compared("members", _members(_expected(before, files), before), _members(world.account, before))
    found += _compared("tags", Counter(_tags(before, files)), Counter(_pairs(world.account.tags)))
    found += list(_activities(world, files))
    return found + list(_timelines(before, world))


def _untouched(before: Account, after: Account) -> Iterator[str]:
    for each in fields(Account):
        if each.name not in _WRITTEN and getattr(before, each.name) != getattr(after, each.name):
            yield f"{each.name} changed"


def _expected(before: Account, files: tuple[File, ...]) -> Account:
    """A copy of the account on which the files' contacts took place."""
    after = copy.deepcopy(before)
    for file in files:
        for (list_id, email), (status, wanted) in file.contacts.items():
            _sync(after, list_id, email, status, wanted)
    return after


def _sync(after: Account, list_id: int, email: str, status: int | None, wanted: dict[str, str]) -> None:
    found = [
        member for member in after.members if member.list_id == list_id and member.email.lower() == email
    ]
    for member in found:
        member.status = member.status if status is None else status
        member.fields = {**member.fields, **wanted}
    if not found:
        elsewhere = min(
            (member.contact_id for member in after.members if member.email.lower() == email), default=0
        )
        after.members.append(
            Member(list_id, elsewhere, email, 1 if status is None else status, None, dict(wanted))
        )


def _members(made: Account, before: Account) -> Counter[Any]:
    """Memberships as comparable values; the id of a new contact cannot be known beforehand."""
    ids = {member.contact_id for member in before.members}
    return Counter(
        (
            member.list_id,
            member.contact_id if member.contact_id in ids else 0,
            member.email.lower(),
            member.status,
            tuple(sorted((name, meant(value)) for name, value in member.fields.items() if value)),
        )
        for member in made.members
    )


def _tags(before: Account, files: tuple[File, ...]) -> Iterator[tuple[int, str]]:
    after = {contact: set(names) for contact, names in before.tags.items()}
    for file in files:
        for contact, wanted in file.tags.items():
            for name, is_there in wanted.items():
                (set.add if is_there else set.discard)(after.setdefault(contact, set()), name)
    return _pairs(after)


def _pairs(tags: dict[int, set[str]]) -> Iterator[tuple[int, str]]:
    return ((contact, name) for contact, names in tags.items() for name in names)


def _activities(world: World, files: tuple[File, ...]) -> Iterator[str]:
    """Each activity exactly once: the effects are the truth, whatever a timeline shows."""
    wanted = Counter({key: count for file in files for key, count in file.activities.items()})
    done = Counter(
        (each.contact_id, each.local, meant(each.said)) for each in world.effects if each.local is not None
    )
    return iter(_compared("activities", wanted, done))


def _timelines(before: Account, world: World) -> Iterator[str]:
    """No entry is lost, and there are as many new ones as there were activities."""
    written = Counter(each.contact_id for each in world.effects if each.local is not None)
    for contact_id, line in before.timelines.items():
        now = world.account.timelines[contact_id]
        if len(now.events) != len(line.events) + written[contact_id] or now.visits != line.visits:
            yield (
                f"the timeline of {contact_id} has {len(now.events)} entries, due {len(line.events)} + "
                f"{written[contact_id]}"
            )


def _compared(what: str, wanted: Counter[Any], found: Counter[Any]) -> list[str]:
    missing, surplus = wanted - found, found - wanted
    named = [("missing", missing), ("surplus", surplus)]
    return [f"{what}: {sum(some.values())} {word}, e.g. {list(some)[:3]}" for word, some in named if some]
