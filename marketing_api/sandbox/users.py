"""The rules of users, managers and groups."""

from marketing_api.sandbox.rules import CheckedCall, Resource, missing, show_thing
from marketing_api.sandbox.seed import Thing


def lists(call: CheckedCall) -> Thing:
    """Users by business: one's own and the sub-accounts', or those of the business that is given."""
    businesses = [call.world.business_id, *call.things("sub-account")]
    if call["businessid"]:
        if call.id("businessid") not in businesses:
            raise missing("business")
        businesses = [call.id("businessid")]
    groups = call.things("group")
    found: dict[str, dict[str, Thing]] = {str(business): {} for business in businesses}
    for user_id, user in call.things("user").items():
        shown = {name: user[name] for name in ("fullname", "username", "status")}
        if group := groups.get(user.get("group", 0)):
            shown["group"] = group["name"]
        if user["business"] in businesses:
            found[str(user["business"])][str(user_id)] = shown
    items = {business: {"users": users} for business, users in found.items()}
    return {"count": sum(map(len, found.values())), "items": items}


def _read_given(call: CheckedCall) -> Thing:
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
    payload: Thing = Resource(kind, given=_read_given, new=lambda _: new)(call)
    return payload


edit = status = delete = add
managers = Resource("manager", lambda _, *one: show_thing(*one, "fullname", "email", "status"))
groups = groupstatus = groupdelete = Resource(
    "group", lambda _, *one: show_thing(*one, "name", "status"), _read_given
)
