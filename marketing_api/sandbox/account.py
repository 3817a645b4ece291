"""The rules of the business itself and of an agency's sub-accounts."""

from __future__ import annotations

from marketing_api.sandbox.call import Call, Payload, rule
from marketing_api.sandbox.chance import salt
from marketing_api.sandbox.world import World


@rule("app/me")
def me(world: World, call: Call) -> Payload:
    business = world.account.business
    shown = {
        "id": call.an_id(business.business_id),
        "businessName": business.name,
        "contactName": business.contact,
        "phoneNumber": business.phone,
        "serviceName": business.service_name,
        "package": business.package,
    }
    if call.switches["business-names"] == "lower":
        shown = {name.lower() if name.startswith("business") else name: value for name, value in shown.items()}
    if call.switches.is_on("show-timezone"):
        shown["timezone"] = business.timezone
    return {"business": shown}


@rule("register/createaccount")
def createaccount(world: World, call: Call) -> Payload:
    """The new account is listed among the agency's sub-accounts, with its contact as the first user."""
    email = call.get("business_email")
    new = world.businesses.add({"name": call.get("business_name"), "contact": call.get("contact_name"), "email": email})
    world.users.add({"business": new, "fullname": call.get("contact_name"), "username": email, "group": None, "status": "Active"})
    return {"item": "The account was created successfully"}


@rule("account/getsubaccountautologin")
def autologin(world: World, call: Call) -> Payload:
    """The link holds a token that changes with every asking."""
    business = world.businesses.existing(call, "The sub-account")
    expires = call.now + int(float(call.get("expire", "3600")))
    token = f"{salt(world.account.origin.seed, call.id(), call.now):08x}"
    return {
        "id": call.id(),
        "name": business["name"],
        "email": business["email"],
        "login-url": f"https://app.example.com/autologin?account={call.id()}&expires={expires}&token={token}",
    }
