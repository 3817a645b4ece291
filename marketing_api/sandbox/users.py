"""The rules of users, managers and groups."""

from typing import Any

from marketing_api.sandbox.rules import RULES, CheckedCall, Payload, added, missing, rule
from marketing_api.sandbox.seed import Thing
from marketing_api.sandbox.world import Shelf


@rule("user/lists")
def lists(call: CheckedCall) -> Payload:
    """Users by business: one's own and the sub-accounts', or those of the business that is given."""
    world, businesses = call.world, [call.world.account.business_id, *call.world.businesses.all(call.now)]
    if call.has("businessid"):
        if call.id("businessid") not in businesses:
            raise missing("The business")
        businesses = [call.id("businessid")]
    groups, users = world.groups.all(call.now), world.users.all(call.now)
    found = {
        str(business): {
            str(wanted): _user(user, groups) for wanted, user in users.items() if user["business"] == business
        }
        for business in businesses
    }
    items = {business: {"users": call.map(here)} for business, here in found.items()}
    return {"users": {"count": sum(map(len, found.values())), "items": call.map(items)}}


def _user(user: Thing, groups: dict[int, Thing]) -> dict[str, Any]:
    group = {"group": groups[user["group"]]["name"]} if user.get("group") in groups else {}
    return {"fullname": user["fullname"], "username": user["username"], **group, "status": user["status"]}


def _shown(call: CheckedCall, shelf: Shelf, *members: str) -> list[dict[str, Any]]:
    return [
        {"id": call.an_id(wanted), **{name: one[name] for name in members}}
        for wanted, one in shelf.all(call.now).items()
    ]


def _shelf(call: CheckedCall) -> Shelf:
    return call.world.managers if call.get("type") == "manager" else call.world.users


def _given(call: CheckedCall) -> Thing:
    """The password is taken and forgotten, permissions show nowhere."""
    call.must_exist("The group", call.ids("group"), call.world.groups.all(call.now))
    given: Thing = {
        "fullname": call.get("fullname"),
        "username": call.get("username"),
        "email": call.get("username"),
    }
    return given | ({"group": call.id("group")} if call.has("group") else {})


def _with_status(call: CheckedCall, shelf: Shelf) -> Payload:
    call.edited(shelf, {"status": "Active" if call.get("status").lower() in ("enable", "1") else "Disabled"})
    return {"item": "The status was changed successfully"}


RULES |= {
    "user/managers": lambda call: call.listing(
        "users", _shown(call, call.world.managers, "fullname", "email", "status")
    ),
    "user/groups": lambda call: call.listing("groups", _shown(call, call.world.groups, "name", "status")),
    "user/add": lambda call: added(
        _shelf(call), {"business": call.world.account.business_id, "status": "Active", **_given(call)}
    ),
    "user/edit": lambda call: call.edited(_shelf(call), _given(call)),
    "user/status": lambda call: _with_status(call, _shelf(call)),
    "user/delete": lambda call: call.deleted(_shelf(call)),
    "user/groupstatus": lambda call: _with_status(call, call.world.groups),
    "user/groupdelete": lambda call: call.deleted(call.world.groups),
}
