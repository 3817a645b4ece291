"""The business itself and an agency's sub-accounts: the seeded ones, and their rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from marketing_api.sandbox.chance import salt
from marketing_api.sandbox.moments import DAY
from marketing_api.sandbox.rules import CheckedCall, Payload, Thing, rule

if TYPE_CHECKING:
    from marketing_api.sandbox.world import Account, World


def seeded(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """The sub-accounts of the agency."""
    for place, (name, contact) in enumerate((("East Pier", "Ines Costa"), ("Old Mill", "Viktor Holm"))):
        opened = account.start + (60 + place * 200) * DAY
        if opened <= now:
            email = f"{contact.split()[0].lower()}@example.net"
            thing = {"name": f"{account.business.name} – {name}", "contact": contact, "email": email}
            yield account.business.business_id + 501 + place, thing


@rule("app/me")
def me(world: World, call: CheckedCall) -> Payload:
    business = world.account.business
    shown = {
        "id": call.an_id(business.business_id),
        "businessName": business.name,
        "contactName": business.contact,
        "phoneNumber": "+15550100100",
        "serviceName": business.service_name,
        "package": "Agency Pro",
    }
    if call.switches["business-names"] == "lower":
        shown = {name.lower() if name.startswith("business") else name: value for name, value in shown.items()}
    if call.switches.is_on("show-timezone"):
        shown["timezone"] = world.account.origin.timezone
    return {"business": shown}


@rule("register/createaccount")
def createaccount(world: World, call: CheckedCall) -> Payload:
    """The new account is listed among the agency's sub-accounts, with its contact as the first user."""
    email = call.get("business_email")
    new = world.businesses.add({"name": call.get("business_name"), "contact": call.get("contact_name"), "email": email})
    world.users.add({"business": new, "fullname": call.get("contact_name"), "username": email, "group": None, "status": "Active"})
    return {"item": "The account was created successfully"}


@rule("account/getsubaccountautologin")
def autologin(world: World, call: CheckedCall) -> Payload:
    """The link holds a token that changes with every request."""
    business = world.businesses.existing(call)
    expires = call.now + int(float(call.get("expire", "3600")))
    token = f"{salt(world.account.origin.seed, call.id(), call.now):08x}"
    return {
        "id": call.id(),
        "name": business["name"],
        "email": business["email"],
        "login-url": f"https://app.example.com/autologin?account={call.id()}&expires={expires}&token={token}",
    }
