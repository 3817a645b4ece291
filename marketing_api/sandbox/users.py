"""The rules of users, managers and groups."""

from marketing_api.sandbox.rules import CheckedCall, Resource, show_thing
from marketing_api.sandbox.seed import Thing


def lists(call: CheckedCall) -> Thing:
    """Users by business: one's own and the sub-accounts', or those of the business that is
    given."""
    own_id = call.world.business_id
    known = [own_id, *call.things("sub-account")]
    call.must_exist("business", call.ids("businessid"), known)
    users_by_business: dict[int, Thing] = {one: {} for one in call.ids("businessid") or known}
    group_names = {str(one): group["name"] for one, group in call.things("group").items()}
    for user_id, user in call.things("user").items():
        entry = show_thing("user", user_id, user)
        group_name = group_names.get(user.get("group", ""))
        if group_name:
            entry["group"] = group_name
        users = users_by_business.get(own_id + user["business_offset"], {})
        users[entry.pop("id")] = entry
    items = {str(business): {"users": users} for business, users in users_by_business.items()}
    return {"count": sum(map(len, users_by_business.values())), "items": items}


def _read_members(call: CheckedCall) -> Thing:
    """The password is taken and forgotten, permissions show nowhere."""
    call.must_exist("group", call.ids("group"), call.things("group"))
    members = call.pick("fullname", "username", "group")
    if call["status"]:
        members["status"] = "Active" if call["status"] in ("enable", "1") else "Disabled"
    return members


def add(call: CheckedCall) -> Thing:
    """And what else is done to those who were added."""
    kind = "manager" if call["type"] == "manager" else "user"
    rule = Resource(kind, _read_members, lambda _: {"business_offset": 0, "status": "Active"})
    return rule(call)


edit = status = delete = add
managers = Resource("manager")
groups = groupstatus = groupdelete = Resource("group", _read_members)
