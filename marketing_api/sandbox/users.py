"""The rules of users, managers and groups."""

from marketing_api.sandbox.rules import CheckedCall, Resource, show_thing
from marketing_api.sandbox.seed import Thing


def lists(call: CheckedCall) -> Thing:
    """Users by business: one's own and the sub-accounts', or those of the business that is
    given."""
    known = [call.world.business_id, *call.things("sub-account")]
    call.must_exist("business", call.ids("businessid"), known)
    groups, users = call.things("group"), call.things("user").items()
    items: dict[str, Thing] = {str(one): {"users": {}} for one in call.ids("businessid") or known}
    for user_id, user in users:
        shown = {name: user[name] for name in ("fullname", "username", "status")}
        if group := groups.get(user.get("group", 0)):
            shown["group"] = group["name"]
        if business := items.get(str(user["business"])):
            business["users"][str(user_id)] = shown
    return {"count": sum(len(one["users"]) for one in items.values()), "items": items}


def _read_given(call: CheckedCall) -> Thing:
    """The password is taken and forgotten, permissions show nowhere."""
    call.must_exist("group", call.ids("group"), call.things("group"))
    given = (
        call.given("fullname", "username") | call.given(username="email") | call.given_ids("group")
    )
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
