"""The rules of users, managers and groups."""

from marketing_api.sandbox.rules import CheckedCall, Resource, missing
from marketing_api.sandbox.seed import Thing


def lists(call: CheckedCall) -> Thing:
    """Users by business: one's own and the sub-accounts', or those of the business that is given."""
    businesses = [call.world.business_id, *call.things("sub-account")]
    if call["businessid"]:
        if call.id("businessid") not in businesses:
            raise missing("business")
        businesses = [call.id("businessid")]
    groups = call.things("group")
    found: dict[int, Thing] = {business: {} for business in businesses}
    for wanted, user in call.things("user").items():
        if user["business"] in found:
            shown = {name: user[name] for name in ("fullname", "username", "status")}
            if group := groups.get(user.get("group", 0)):
                shown["group"] = group["name"]
            found[user["business"]][str(wanted)] = shown
    items = {str(business): {"users": users} for business, users in found.items()}
    return {"count": sum(map(len, found.values())), "items": items}


def _given(call: CheckedCall) -> Thing:
    """The password is taken and forgotten, permissions show nowhere."""
    call.must_exist("group", call.ids("group"), call.things("group"))
    given = call.given("fullname", "username") | call.given(username="email") | call.given_ids("group")
    if call["status"]:
        given["status"] = "Active" if call["status"] in ("enable", "1") else "Disabled"
    return given


def add(call: CheckedCall) -> Thing:
    """And what else is done to those who were added."""
    new = {"business": call.world.business_id, "status": "Active"}
    kind = "manager" if call["type"] == "manager" else "user"
    payload: Thing = Resource(kind, given=_given, new=lambda _: new)(call)
    return payload


edit = status = delete = add
managers = Resource("manager", lambda call, *one: call.shown(*one, "fullname", "email", "status"))
groups = groupstatus = groupdelete = Resource(
    "group", lambda call, *one: call.shown(*one, "name", "status"), _given
)
