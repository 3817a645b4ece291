"""Write operations: they change the account, answer as observation 7 says, and show in later reads."""

from __future__ import annotations

import datetime as dt
import html
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .account import Event, Member, Timeline
from .answers import Effect, World
from .shape import Params, ServiceFault, number, text

Write = Callable[[World, Params], dict[str, Any]]
WRITES: dict[str, Write] = {}
_CODES = {"active": 1, "disactive": 2, "unconfirmed": 0, "bounced": 3, "0": 0, "1": 1, "2": 2, "3": 3}
_CLIP = 100  # characters of a clipped description
_DATE_TIMES = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M")


def write(name: str) -> Callable[[Write], Write]:
    """Register an operation; one write at a time, and every accepted one is noted among the effects."""

    def register(function: Write) -> Write:
        def one_at_a_time(world: World, params: Params) -> dict[str, Any]:
            with world.lock:
                world.settle()
                known = len(world.effects)
                try:
                    answer = function(world, params)
                except ServiceFault as refusal:
                    if name not in world.variants.soft_refusals:
                        raise
                    return {"item": world.variants.soft_wording or str(refusal)}
                if len(world.effects) == known:
                    world.effects.append(Effect(name, params))
            return answer | ({"item": world.variants.done_wording} if world.variants.done_wording else {})

        WRITES[name] = one_at_a_time
        return function

    return register


def _status(params: Params, default: int = 1) -> int:
    given = text(params, "status", "-").lower()
    if given == "-":
        return default
    if given not in _CODES:
        raise ServiceFault(1003, "status must be Active or Disactive")
    return _CODES[given]


def _list_ids(world: World, params: Params) -> list[int]:
    known = {each.list_id for each in world.account.lists}
    wanted = [int(part) for part in text(params, "listid").split(",") if part.strip().isdigit()]
    if not wanted or not set(wanted) <= known:
        raise ServiceFault(1004, "The list was not found")
    return wanted


def _fields(world: World, list_id: int, params: Params) -> dict[str, str]:
    """The custom fields that the list has; others are ignored."""
    labels = next(each.labels for each in world.account.lists if each.list_id == list_id)
    return {str(name): str(value) for name, value in params.get("fields", {}).items() if str(name) in labels}


def _fresh_id(world: World) -> int:
    """Above every id that was ever given: those of deleted contacts keep their timelines."""
    fresh = max(world.account.timelines, default=3_000_000_000) + 1
    world.account.timelines[fresh] = Timeline()
    return fresh


def _add(world: World, params: Params, list_ids: list[int], contact_id: int) -> None:
    now = dt.datetime.now(dt.UTC).replace(second=0, microsecond=0)
    for list_id in list_ids:
        fields, email = _fields(world, list_id, params), text(params, "email", " ").strip()
        world.account.members.append(Member(list_id, contact_id, email, _status(params), now, fields))


def _change(world: World, member: Member, params: Params) -> None:
    member.email = text(params, "email", member.email or " ").strip()
    member.status = _status(params, member.status)
    member.fields |= _fields(world, member.list_id, params)


@write("emailmarketing/addcontact")
def addcontact(world: World, params: Params) -> dict[str, Any]:
    text(params, "status")
    wanted, fresh = _list_ids(world, params), _fresh_id(world)
    _add(world, params, wanted, fresh)
    return {"id": world.shape.num(fresh), "item": "The contact has been added"}


@write("emailmarketing/editcontact")
def editcontact(world: World, params: Params) -> dict[str, Any]:
    for member in _members(world, number(params, "id")):
        _change(world, member, params)
    return {"item": "The contact has been updated"}


def _members(world: World, contact_id: int) -> list[Member]:
    found = [member for member in world.account.members if member.contact_id == contact_id]
    if not found:
        raise ServiceFault(1004, "The contact doesn't exist")
    return found


@write("emailmarketing/synccontact")
def synccontact(world: World, params: Params) -> dict[str, Any]:
    """Every contact with the address in a given list is updated; where there is none, one is added. Queued
    (row 6)."""
    email, wanted = text(params, "email").lower(), _list_ids(world, params)
    if world.variants.status_required:
        text(params, "status")
    _status(params)
    if len(wanted) > 1 and world.variants.several_lists == "refused":
        raise ServiceFault(1003, "listid must be a number")
    wanted = wanted[:1] if world.variants.several_lists == "first" else wanted
    known = {member.contact_id for member in world.account.members if member.email.lower() == email}
    contact_id = min(known) if known else _fresh_id(world)
    world.soon(world.variants.delayed_writes, lambda: _sync(world, params, wanted, contact_id))
    return {"id": world.shape.num(contact_id), "item": "The contact has been queued"}


def _sync(world: World, params: Params, list_ids: list[int], contact_id: int) -> None:
    email = text(params, "email").lower()
    for list_id in list_ids:
        found = [
            each for each in world.account.members if each.list_id == list_id and each.email.lower() == email
        ]
        for member in found:
            _change(world, member, {name: value for name, value in params.items() if name != "email"})
        if not found:
            elsewhere = [each.contact_id for each in world.account.members if each.email.lower() == email]
            _add(world, params, [list_id], min(elsewhere, default=contact_id))


@write("emailmarketing/movecontact")
def movecontact(world: World, params: Params) -> dict[str, Any]:
    source, target = number(params, "sourceid"), _list_ids(world, params)[0]
    found = [member for member in _members(world, number(params, "id")) if member.list_id == source]
    if not found:
        raise ServiceFault(1004, "The contact is not in the source list")
    there = {member.list_id for member in _members(world, number(params, "id"))}
    for member in found:
        world.account.members.remove(member)
        if target not in there:
            world.account.members.append(replace(member, list_id=target))
    return {"item": "The contact has been moved"}


@write("emailmarketing/deletecontact")
def deletecontact(world: World, params: Params) -> dict[str, Any]:
    source = _list_ids(world, params)[0]
    found = [member for member in _members(world, number(params, "id")) if member.list_id == source]
    if not found:
        raise ServiceFault(1004, "The contact is not in this list")
    for member in found:
        world.account.members.remove(member)
    return {"item": "The contact has been deleted"}


def _tagged(world: World, params: Params, needed: str) -> tuple[set[int], set[str]]:
    """The contacts that id (or else email) names, and the tags."""
    email, contact_id = text(params, "email", " ").strip().lower(), number(params, "id", 0)
    if (not email and not contact_id) or (needed and not str(params.get(needed, "")).strip()):
        raise ServiceFault(1003, f"{needed or 'email'} is required")
    given = params.get("tagname", "")
    names = given if isinstance(given, list) else str(given).split(",")
    tags = {str(name).strip() for name in names} - {""}
    if not tags:
        raise ServiceFault(1003, "tagname is required")
    members = world.account.members
    found = {
        m.contact_id
        for m in members
        if (m.contact_id == contact_id if contact_id else m.email.lower() == email)
    }
    if not found:
        raise ServiceFault(1004, "The contact doesn't exist")
    return found, tags


@write("emailmarketing/addtag")
def addtag(world: World, params: Params) -> dict[str, Any]:
    found, tags = _tagged(world, params, "email" if world.variants.tag_needs == "email" else "")
    for contact_id in found:
        world.account.tags.setdefault(contact_id, set()).update(tags)
    return {"item": "The tag has been added"}


@write("emailmarketing/removetag")
def removetag(world: World, params: Params) -> dict[str, Any]:
    found, tags = _tagged(world, params, world.variants.tag_needs)
    for contact_id in found:
        world.account.tags.get(contact_id, set()).difference_update(tags)
    return {"item": "The tag has been removed"}


@write("emailmarketing/addactivity")
def addactivity(world: World, params: Params) -> dict[str, Any]:
    member = _members(world, number(params, "id"))[0]
    said, given = str(params.get("description", "")), text(params, "datetime").replace("T", " ")
    if not said.strip():
        raise ServiceFault(1003, "description is required")
    local = _date_time(given)
    event = _event(world, said, local)
    events = world.account.timelines[member.contact_id].events
    world.effects.append(Effect("emailmarketing/addactivity", params, member.contact_id, said, local))
    world.soon(world.variants.delayed_activities, lambda: _insert(events, event))
    return {"item": "The activity has been added"}


def _date_time(given: str) -> dt.datetime:
    for form in _DATE_TIMES:
        try:
            return dt.datetime.strptime(given, form)
        except ValueError:
            continue
    raise ServiceFault(1003, "datetime is not a date-time")


def _insert(events: list[Event], event: Event) -> None:
    events.append(event)
    events.sort(key=lambda each: each.at, reverse=True)


def _event(world: World, said: str, local: dt.datetime) -> Event:
    """The entry by which an activity shows; which of two equal clock times is meant, the service cannot know:
    the first."""
    v = world.variants
    at, shown = local.replace(tzinfo=world.account.zone).astimezone(dt.UTC), _worded(said, v.activity_text)
    snippet = shown[:_CLIP] if v.activity_text == "clipped" else shown
    details: list[tuple[str, str, str | int]] = (
        [("description", "Description", shown)] if v.activity_place != "snippet" else []
    )
    is_stamped = v.activity_time == "stamp"
    at = at if is_stamped else at.replace(second=0)
    return Event(
        v.activity_key,
        "Activity added by the interface" if v.activity_place == "detail" else snippet,
        at,
        details,
        is_stamped,
    )


def _worded(said: str, how: str) -> str:
    if how == "escaped":
        return html.escape(said).replace("&#x27;", "&#039;")
    return " ".join(said.split()) if how == "collapsed" else said.strip() if how == "trimmed" else said
