"""The rules of the business itself and an agency's sub-accounts."""

from marketing_api.sandbox.rules import CheckedCall, rule
from marketing_api.sandbox.seed import Thing, salt


@rule("app/me")
def me(call: CheckedCall) -> Thing:
    world, names = call.world, call.switches["business-names"]
    shown: Thing = {
        "id": call.an_id(world.business_id),
        "businessName": world.business,
        "contactName": world.contact,
        "phoneNumber": "+15550100100",
        "serviceName": world.service_name,
        "package": "Agency Pro",
    }
    if names == "observed":  # the short name under that of the service (row 47)
        shown |= {"sandboxName": shown.pop("serviceName"), "limits": {"contacts": 100_000, "users": 25}}
    if names == "lower":
        shown = {name.replace("businessName", "businessname"): value for name, value in shown.items()}
    return shown | ({"timezone": world.origin.timezone} if call.switches.is_on("show-timezone") else {})


@rule("register/createaccount")
def createaccount(call: CheckedCall) -> Thing:
    """The new account is listed among the agency's sub-accounts, with its contact as the first user."""
    name, contact, email = call.get("business_name"), call.get("contact_name"), call.get("business_email")
    new = call.world.businesses.add({"name": name, "contact": contact, "email": email})
    call.world.users.add({"business": new, "fullname": contact, "username": email, "status": "Active"})
    return call.done("account", "created")


@rule("account/getsubaccountautologin")
def autologin(call: CheckedCall) -> Thing:
    """The link holds a token that changes with every request."""
    wanted, business = call.id(), call.existing(call.world.businesses)
    expires = call.now + int(float(call.get("expire", "3600")))
    token = f"{salt(call.world.origin.seed, wanted, call.now):08x}"
    url = f"https://app.example.com/autologin?account={wanted}&expires={expires}&token={token}"
    return {"id": wanted, "name": business["name"], "email": business["email"], "login-url": url}
