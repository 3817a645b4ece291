"""The rules of the business itself and an agency's sub-accounts."""

from marketing_api.sandbox.rules import CheckedCall
from marketing_api.sandbox.seed import Thing, salt


def me(call: CheckedCall) -> Thing:
    world = call.world
    shown: Thing = {
        "id": str(world.business_id),
        "businessName": world.business,
        "contactName": world.contact,
        "phoneNumber": "+15550100100",
        "serviceName": world.service_name,
        "package": "Agency Pro",
    }
    if call.observes("business-names"):  # the short name under that of the service (row 47)
        shown |= {"sandboxName": shown.pop("serviceName"), "limits": {"contacts": 100_000, "users": 25}}
    return shown | ({"timezone": world.origin.timezone} if call.observes("show-timezone") else {})


def createaccount(call: CheckedCall) -> Thing:
    """The new account is listed among the agency's sub-accounts, with its contact as the first user."""
    name, contact, email = call["business_name"], call["contact_name"], call["business_email"]
    new = call.shelf("sub-account").add({"name": name, "contact": contact, "email": email})
    call.shelf("user").add({"business": new, "fullname": contact, "username": email, "status": "Active"})
    return call.done("account", "created")


def getsubaccountautologin(call: CheckedCall) -> Thing:
    """The link holds a token that changes with every request."""
    wanted = call.id()
    expires = call.now + int(float(call["expire"] or 3600))
    token = f"{salt(call.world.origin.seed, wanted, call.now):08x}"
    url = f"https://app.example.com/autologin?account={wanted}&expires={expires}&token={token}"
    return call.shown(wanted, call.existing("sub-account"), "name", "email") | {
        "id": wanted,
        "login-url": url,
    }
