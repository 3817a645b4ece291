"""The rules of users, managers and groups."""

from __future__ import annotations

from typing import Any

from marketing_api.sandbox.call import Call, Payload, missing, rule
from marketing_api.sandbox.seeds import Shelf, Thing
from marketing_api.sandbox.world import World


@rule("user/lists")
def lists(world: World, call: Call) -> Payload:
    """Users by business: one's own and the sub-accounts', or those of the business that is asked for."""
    own = world.account.business.business_id
    known = [own, *world.businesses.all(call.now)]
    if call.has("businessid"):
        if call.id("businessid") not in known:
            raise missing("The business")
        known = [call.id("businessid")]
    groups = world.groups.all(call.now)
    users = world.users.all(call.now)
    by_business: dict[str, Any] = {}
    count = 0
    for business in known:
        here = {str(wanted): _user(user, groups) for wanted, user in users.items() if user["business"] == business}
        by_business[str(business)] = {"users": call.map(here)}
        count += len(here)
    return {"users": {"count": count, "items": call.map(by_business)}}


def _user(user: Thing, groups: dict[int, Thing]) -> dict[str, Any]:
    shown = {"fullname": user["fullname"], "username": user["username"]}
    if (group := groups.get(user["group"] or 0)) is not None:
        shown["group"] = group["name"]
    return {**shown, "status": user["status"]}


@rule("user/managers")
def managers(world: World, call: Call) -> Payload:
    found = [
        {"id": call.an_id(wanted), "fullname": one["fullname"], "email": one["email"], "status": one["status"]}
        for wanted, one in world.managers.all(call.now).items()
    ]
    return {"users": {"count": len(found), "items": call.items(found)}}


@rule("user/groups")
def groups(world: World, call: Call) -> Payload:
    found = [{"id": call.an_id(wanted), **one} for wanted, one in world.groups.all(call.now).items()]
    return {"groups": {"count": len(found), "items": call.items(found)}}


def _shelf(world: World, call: Call) -> Shelf:
    return world.managers if call.get("type") == "manager" else world.users


def _given(world: World, call: Call) -> Thing:
    """The password is taken and forgotten, permissions show nowhere."""
    given: Thing = {"fullname": call.get("fullname"), "username": call.get("username"), "email": call.get("username")}
    call.must_exist("The group", call.ids("group"), world.groups.all(call.now))
    if call.has("group"):
        given["group"] = call.id("group")
    return given


def _status(call: Call) -> str:
    return "Active" if call.get("status").lower() in ("enable", "1") else "Disabled"


@rule("user/add")
def add(world: World, call: Call) -> Payload:
    _shelf(world, call).add({"business": world.account.business.business_id, "group": None, "status": "Active", **_given(world, call)})
    return {"item": f"The {call.get('type')} was added successfully"}


@rule("user/edit")
def edit(world: World, call: Call) -> Payload:
    _shelf(world, call).existing(call, f"The {call.get('type')}")
    _shelf(world, call).edit(call.id(), _given(world, call))
    return {"item": f"The {call.get('type')} was updated successfully"}


@rule("user/status")
def status(world: World, call: Call) -> Payload:
    _shelf(world, call).existing(call, f"The {call.get('type')}")
    _shelf(world, call).edit(call.id(), {"status": _status(call)})
    return {"item": "The status was changed successfully"}


@rule("user/delete")
def delete(world: World, call: Call) -> Payload:
    _shelf(world, call).existing(call, f"The {call.get('type')}")
    _shelf(world, call).delete(call.id())
    return {"item": f"The {call.get('type')} was deleted successfully"}


@rule("user/groupstatus")
def groupstatus(world: World, call: Call) -> Payload:
    world.groups.existing(call, "The group")
    world.groups.edit(call.id(), {"status": _status(call)})
    return {"item": "The status was changed successfully"}


@rule("user/groupdelete")
def groupdelete(world: World, call: Call) -> Payload:
    world.groups.existing(call, "The group")
    world.groups.delete(call.id())
    return {"item": "The group was deleted successfully"}
