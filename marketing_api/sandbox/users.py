"""The rules of users, managers and groups."""

from collections.abc import Callable

from marketing_api.sandbox.rules import CheckedCall, Resource, missing, rule
from marketing_api.sandbox.seed import Thing


@rule("user/lists")
def lists(call: CheckedCall) -> Thing:
    """Users by business: one's own and the sub-accounts', or those of the business that is given."""
    world, businesses = call.world, [call.world.business_id, *call.world.businesses.all(call.now)]
    if call.has("businessid"):
        if call.id("businessid") not in businesses:
            raise missing("business")
        businesses = [call.id("businessid")]
    groups = world.groups.all(call.now)
    found: dict[int, Thing] = {business: {} for business in businesses}
    for wanted, user in world.users.all(call.now).items():
        if user["business"] in found:
            group = {"group": groups[user["group"]]["name"]} if user.get("group") in groups else {}
            named = {"fullname": user["fullname"], "username": user["username"]}
            found[user["business"]][str(wanted)] = {**named, **group, "status": user["status"]}
    items = {str(business): {"users": call.map(users)} for business, users in found.items()}
    return {"count": sum(map(len, found.values())), "items": call.map(items)}


def _given(call: CheckedCall) -> Thing:
    """The password is taken and forgotten, permissions show nowhere."""
    call.must_exist("group", call.ids("group"), call.world.groups.all(call.now))
    given = call.given("fullname", "username") | call.given(username="email")
    if call.has("group"):
        given["group"] = call.id("group")
    if call.has("status"):
        given["status"] = "Active" if call.get("status") in ("enable", "1") else "Disabled"
    return given


def _shown(*members: str) -> Callable[[CheckedCall, int, Thing], Thing]:
    return lambda call, wanted, thing: {"id": call.an_id(wanted)} | {name: thing[name] for name in members}


rule("user/add", "user/edit", "user/status", "user/delete")(
    Resource(
        lambda call: call.world.managers if call.get("type") == "manager" else call.world.users,
        given=_given,
        new=lambda call: {"business": call.world.business_id, "status": "Active"},
    )
)
rule("user/managers")(Resource(lambda call: call.world.managers, _shown("fullname", "email", "status")))
rule("user/groups", "user/groupstatus", "user/groupdelete")(
    Resource(lambda call: call.world.groups, _shown("name", "status"), _given)
)
