"""Write operations: they change the account, answer as api-observed row 7 says, and show in later reads."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .account import Event, Member, Timeline
from .answers import World
from .dates import moment
from .shape import Params, ServiceFault, number, text

Write = Callable[[World, Params], dict[str, Any]]
WRITES: dict[str, Write] = {}
_lock = threading.Lock()
_CODES = {"active": 1, "disactive": 2, "unconfirmed": 0, "bounced": 3, "0": 0, "1": 1, "2": 2, "3": 3}


def write(name: str) -> Callable[[Write], Write]:
    def register(function: Write) -> Write:
        def one_at_a_time(world: World, params: Params) -> dict[str, Any]:
            with _lock:
                return function(world, params)

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


def _add(world: World, params: Params, list_ids: list[int], *, seen_from: float = 0.0) -> int:
    made = world.account
    fresh = max((member.contact_id for member in made.members), default=3_000_000_000) + 1
    now = dt.datetime.now(dt.UTC).replace(second=0, microsecond=0)
    for list_id in list_ids:
        fields = {str(name): str(value) for name, value in params.get("fields", {}).items()}
        made.members.append(Member(list_id, fresh, text(params, "email", " ").strip(), _status(params), now, fields, seen_from=seen_from))
    made.timelines[fresh] = Timeline()
    return fresh


def _change(member: Member, params: Params) -> None:
    member.email = text(params, "email", member.email or " ").strip()
    member.status = _status(params, member.status)
    member.fields |= {str(name): str(value) for name, value in params.get("fields", {}).items()}


@write("emailmarketing/addcontact")
def addcontact(world: World, params: Params) -> dict[str, Any]:
    text(params, "status")
    fresh = _add(world, params, _list_ids(world, params))
    return {"id": world.shape.num(fresh), "item": "The contact has been added"}


@write("emailmarketing/editcontact")
def editcontact(world: World, params: Params) -> dict[str, Any]:
    for member in _members(world, number(params, "id")):
        _change(member, params)
    return {"item": "The contact has been updated"}


def _members(world: World, contact_id: int) -> list[Member]:
    found = [member for member in world.account.members if member.contact_id == contact_id]
    if not found:
        raise ServiceFault(1004, "The contact was not found")
    return found


@write("emailmarketing/synccontact")
def synccontact(world: World, params: Params) -> dict[str, Any]:
    """Every contact with the address in a given list is updated; where there is none, one is added (perhaps seen later)."""
    email, contact_id = text(params, "email"), 0
    for list_id in _list_ids(world, params):
        found = [each for each in world.account.members if each.list_id == list_id and each.email.lower() == email.lower()]
        for member in found:
            _change(member, params)
            contact_id = member.contact_id
        if not found:
            contact_id = _add(world, params, [list_id], seen_from=time.monotonic() + world.variants.delayed_writes)
    return {"id": world.shape.num(contact_id), "item": "The contact has been queued"}


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


def _tagged(world: World, params: Params) -> tuple[set[int], set[str]]:
    email, contact_id = text(params, "email", " ").strip().lower(), number(params, "id", 0)
    if not email and not contact_id:
        raise ServiceFault(1003, "email is required")
    found = {m.contact_id for m in world.account.members if m.contact_id == contact_id or (email and m.email.lower() == email)}
    given = params.get("tagname", "")
    names = given if isinstance(given, list) else str(given).split(",")
    tags = {str(name).strip() for name in names} - {""}
    if not tags:
        raise ServiceFault(1003, "tagname is required")
    return found, tags


@write("emailmarketing/addtag")
def addtag(world: World, params: Params) -> dict[str, Any]:
    found, tags = _tagged(world, params)
    if not found:  # row 5: header ok, and nothing happened
        return {"item": "The contact doesn't exist"}
    for contact_id in found:
        world.account.tags.setdefault(contact_id, set()).update(tags)
    return {"item": "The tag has been added"}


@write("emailmarketing/removetag")
def removetag(world: World, params: Params) -> dict[str, Any]:
    found, tags = _tagged(world, params)
    if not found:
        return {"item": "The contact doesn't exist"}
    for contact_id in found:
        world.account.tags.get(contact_id, set()).difference_update(tags)
    return {"item": "The tag has been removed"}


@write("emailmarketing/addactivity")
def addactivity(world: World, params: Params) -> dict[str, Any]:
    member, said = _members(world, number(params, "id"))[0], text(params, "description")
    given = text(params, "datetime").replace("T", " ")
    for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M"):
        try:
            at = moment(dt.datetime.strptime(given, form), world.account.zone)
            break
        except ValueError:
            continue
    else:
        raise ServiceFault(1003, "datetime is not a date-time")
    events = world.account.timelines[member.contact_id].events
    events.append(Event("custom-activity", said, at, []))
    events.sort(key=lambda event: event.at, reverse=True)
    return {"item": "The activity has been added"}
