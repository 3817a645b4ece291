"""The rules of the business itself, an agency's sub-accounts, and users, managers and groups."""

from typing import Any

from marketing_api.sandbox.rules import RULES, CheckedCall, Payload, added, missing, rule
from marketing_api.sandbox.seed import Thing, salt
from marketing_api.sandbox.world import Shelf


@rule("app/me")
def me(call: CheckedCall) -> Payload:
    account = call.world.account
    shown = {
        "id": call.an_id(account.business_id),
        "businessName": account.business,
        "contactName": account.contact,
        "phoneNumber": "+15550100100",
        "serviceName": account.service_name,
        "package": "Agency Pro",
    }
    if call.switches["business-names"] == "lower":
        shown = {name.lower() if name.startswith("business") else name: value for name, value in shown.items()}
    if call.switches.is_on("show-timezone"):
        shown["timezone"] = account.origin.timezone
    return {"business": shown}


@rule("register/createaccount")
def createaccount(call: CheckedCall) -> Payload:
    """The new account is listed among the agency's sub-accounts, with its contact as the first user."""
    name, contact, email = call.get("business_name"), call.get("contact_name"), call.get("business_email")
    new = call.world.businesses.add({"name": name, "contact": contact, "email": email})
    call.world.users.add({"business": new, "fullname": contact, "username": email, "status": "Active"})
    return {"item": "The account was created successfully"}


@rule("account/getsubaccountautologin")
def autologin(call: CheckedCall) -> Payload:
    """The link holds a token that changes with every request."""
    business = call.existing(call.world.businesses)
    expires = call.now + int(float(call.get("expire", "3600")))
    token = f"{salt(call.world.account.origin.seed, call.id(), call.now):08x}"
    return {
        "id": call.id(),
        "name": business["name"],
        "email": business["email"],
        "login-url": f"https://app.example.com/autologin?account={call.id()}&expires={expires}&token={token}",
    }


@rule("user/lists")
def users(call: CheckedCall) -> Payload:
    """Users by business: one's own and the sub-accounts', or those of the business that is given."""
    world, businesses = call.world, [call.world.account.business_id, *call.world.businesses.all(call.now)]
    if call.has("businessid"):
        if call.id("businessid") not in businesses:
            raise missing("The business")
        businesses = [call.id("businessid")]
    groups, users = world.groups.all(call.now), world.users.all(call.now)
    found = {
        str(business): {str(wanted): _user(user, groups) for wanted, user in users.items() if user["business"] == business}
        for business in businesses
    }
    items = {business: {"users": call.map(here)} for business, here in found.items()}
    return {"users": {"count": sum(map(len, found.values())), "items": call.map(items)}}


def _user(user: Thing, groups: dict[int, Thing]) -> dict[str, Any]:
    group = {"group": groups[user["group"]]["name"]} if user.get("group") in groups else {}
    return {"fullname": user["fullname"], "username": user["username"], **group, "status": user["status"]}


def _people(call: CheckedCall, shelf: Shelf, *members: str) -> list[dict[str, Any]]:
    return [{"id": call.an_id(wanted), **{name: one[name] for name in members}} for wanted, one in shelf.all(call.now).items()]


def _shelf(call: CheckedCall) -> Shelf:
    return call.world.managers if call.get("type") == "manager" else call.world.users


def _given(call: CheckedCall) -> Thing:
    """The password is taken and forgotten, permissions show nowhere."""
    call.must_exist("The group", call.ids("group"), call.world.groups.all(call.now))
    given: Thing = {"fullname": call.get("fullname"), "username": call.get("username"), "email": call.get("username")}
    return given | ({"group": call.id("group")} if call.has("group") else {})


def _with_status(call: CheckedCall, shelf: Shelf) -> Payload:
    call.edited(shelf, {"status": "Active" if call.get("status").lower() in ("enable", "1") else "Disabled"})
    return {"item": "The status was changed successfully"}


RULES |= {
    "user/managers": lambda call: call.listing("users", _people(call, call.world.managers, "fullname", "email", "status")),
    "user/groups": lambda call: call.listing("groups", _people(call, call.world.groups, "name", "status")),
    "user/add": lambda call: added(_shelf(call), {"business": call.world.account.business_id, "status": "Active", **_given(call)}),
    "user/edit": lambda call: call.edited(_shelf(call), _given(call)),
    "user/status": lambda call: _with_status(call, _shelf(call)),
    "user/delete": lambda call: call.deleted(_shelf(call)),
    "user/groupstatus": lambda call: _with_status(call, call.world.groups),
    "user/groupdelete": lambda call: call.deleted(call.world.groups),
}
