"""The rules of the business itself and an agency's sub-accounts."""

from marketing_api.sandbox.rules import CheckedCall, Payload, rule
from marketing_api.sandbox.seed import salt


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
    if call.switches["business-names"] == "observed":  # the short name under that of the service (row 47)
        shown |= {"sandboxName": shown.pop("serviceName"), "limits": {"contacts": 100_000, "users": 25}}
    if call.switches["business-names"] == "lower":
        shown = {
            name.lower() if name.startswith("business") else name: value for name, value in shown.items()
        }
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
