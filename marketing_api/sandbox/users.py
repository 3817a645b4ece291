"""Users, managers and groups: the seeded ones, and their rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from marketing_api.sandbox.moments import DAY
from marketing_api.sandbox.rules import RULES, CheckedCall, Payload, Shelf, Thing, missing, rule
from marketing_api.sandbox.words import FIRST_NAMES, LAST_NAMES

if TYPE_CHECKING:
    from marketing_api.sandbox.world import Account, World

_GROUPS = ("Administrators", "Marketing", "Front of house", "Shop")
_STAFF = (
    ("Helena Ortega", 0), ("Jonas Berg", 1), ("Priya Shah", 1), ("Theo Russo", 2), ("Mila Novak", None),
    ("Ines Costa", 0), ("Omar Haddad", 2), ("Viktor Holm", 0), ("Grace Lee", 3),
)  # fmt: skip


def seeded_groups(account: Account, _: int) -> Iterator[tuple[int, Thing]]:
    for place, name in enumerate(_GROUPS):
        yield 801 + place, {"name": name, "status": "Active"}


def seeded(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Five of the business, two of each sub-account, and a new one in every quarter."""
    main = account.business.business_id
    homes = [main] * 5 + [main + 501] * 2 + [main + 502] * 2
    for place, (name, group) in enumerate(_STAFF):
        yield 601 + place * 3, _seeded(homes[place], name, name.lower().replace(" ", "."), None if group is None else 801 + group)
    for quarter in range(1, (now - account.start) // (91 * DAY) + 1):
        name = f"{FIRST_NAMES[quarter * 7 % len(FIRST_NAMES)][0]} {LAST_NAMES[quarter * 11 % len(LAST_NAMES)][0]}"
        leaves = account.start + (quarter * 91 + 400) * DAY
        yield 640 + quarter, _seeded(main, name, f"user{quarter:03d}", 803, "Active" if now < leaves else "Disabled")


def _seeded(business: int, name: str, username: str, group: int | None, status: str = "Active") -> Thing:
    return {"business": business, "fullname": name, "username": username, "group": group, "status": status}


def seeded_managers(account: Account, _: int) -> Iterator[tuple[int, Thing]]:
    for place, name in enumerate(("Nora Lindberg", "Hassan Ali", "Greta Fischer")):
        email = f"{name.split()[0].lower()}.manager@example.org"
        yield 701 + place, {"fullname": name, "username": email, "email": email, "status": "Active" if place < 2 else "Disabled"}


@rule("user/lists")
def lists(world: World, call: CheckedCall) -> Payload:
    """Users by business: one's own and the sub-accounts', or those of the business that is given."""
    own = world.account.business.business_id
    known = [own, *world.businesses.all(call.now)]
    if call.has("businessid"):
        if call.id("businessid") not in known:
            raise missing("The business")
        known = [call.id("businessid")]
    groups = world.groups.all(call.now)
    users = world.users.all(call.now)
    by_business: dict[str, Any] = {}
    count = 0
    for business in known:
        here = {str(wanted): _user(user, groups) for wanted, user in users.items() if user["business"] == business}
        by_business[str(business)] = {"users": call.map(here)}
        count += len(here)
    return {"users": {"count": count, "items": call.map(by_business)}}


def _user(user: Thing, groups: dict[int, Thing]) -> dict[str, Any]:
    shown = {"fullname": user["fullname"], "username": user["username"]}
    if (group := groups.get(user["group"] or 0)) is not None:
        shown["group"] = group["name"]
    return {**shown, "status": user["status"]}


@rule("user/managers")
def managers(world: World, call: CheckedCall) -> Payload:
    members = ("fullname", "email", "status")
    managers = world.managers.all(call.now).items()
    found = [{"id": call.an_id(wanted), **{name: one[name] for name in members}} for wanted, one in managers]
    return call.listing("users", found)


@rule("user/groups")
def groups(world: World, call: CheckedCall) -> Payload:
    found = [{"id": call.an_id(wanted), **one} for wanted, one in world.groups.all(call.now).items()]
    return call.listing("groups", found)


def _shelf(world: World, call: CheckedCall) -> Shelf:
    return world.managers if call.get("type") == "manager" else world.users


def _given(world: World, call: CheckedCall) -> Thing:
    """The password is taken and forgotten, permissions show nowhere."""
    given: Thing = {"fullname": call.get("fullname"), "username": call.get("username"), "email": call.get("username")}
    call.must_exist("The group", call.ids("group"), world.groups.all(call.now))
    if call.has("group"):
        given["group"] = call.id("group")
    return given


def _changed_status(shelf: Shelf, call: CheckedCall) -> Payload:
    shelf.edited(call, {"status": "Active" if call.get("status").lower() in ("enable", "1") else "Disabled"})
    return {"item": "The status was changed successfully"}


@rule("user/add")
def add(world: World, call: CheckedCall) -> Payload:
    own = world.account.business.business_id
    return _shelf(world, call).added({"business": own, "group": None, "status": "Active", **_given(world, call)})


RULES["user/edit"] = lambda world, call: _shelf(world, call).edited(call, _given(world, call))
RULES["user/status"] = lambda world, call: _changed_status(_shelf(world, call), call)
RULES["user/delete"] = lambda world, call: _shelf(world, call).deleted(call)
RULES["user/groupstatus"] = lambda world, call: _changed_status(world.groups, call)
RULES["user/groupdelete"] = lambda world, call: world.groups.deleted(call)
