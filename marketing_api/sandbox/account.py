"""The rules of the business itself and an agency's sub-accounts."""

from marketing_api.sandbox.rules import CheckedCall
from marketing_api.sandbox.seed import Thing


def me(call: CheckedCall) -> Thing:
    world = call.world
    business: Thing = {
        "id": str(world.business_id),
        "phoneNumber": "+15550100100",
        "package": "Agency Pro",
        **world.business,
    }
    if call.observes("business-names"):  # the short name under that of the service (row 47)
        business |= {
            "sandboxName": business.pop("serviceName"),
            "limits": {"contacts": 100_000, "users": 25},
        }
    if call.observes("show-timezone"):
        business["timezone"] = world.origin.timezone
    return business


def createaccount(call: CheckedCall) -> Thing:
    """The new account is listed among the agency's sub-accounts, with its contact as the first
    user."""
    name = call["business_name"]
    contact = call["contact_name"]
    email = call["business_email"]
    new = call.add("sub-account", {"name": name, "contact": contact, "email": email})
    offset = new - call.world.business_id
    user = {"fullname": contact, "username": email, "status": "Active"}
    call.add("user", user | {"business_offset": offset})
    return call.done("account", "created")


def getsubaccountautologin(call: CheckedCall) -> Thing:
    """The link holds a token that changes with every second."""
    account_id = call.id()
    account = call.existing("sub-account")
    expires = call.now + int(float(call["expire"] or 3600))
    url = f"https://app.example.com/autologin?account={account_id}&expires={expires}&token={call.now:x}"
    return {
        "id": account_id,
        "name": account["name"],
        "email": account["email"],
        "login-url": url,
    }
