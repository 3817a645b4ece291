"""Records of users, managers and groups, and the operations that return them."""

from typing import Any

from marketing_api.operation import Area
from marketing_api.records.fields import AsWorded, MaybeText, Record, Rows, field, key, mark_missing
from marketing_api.records.shapes import (
    Params,
    as_object,
    is_collection,
    is_whole,
    items_of,
    read_listing,
)


class User(Record):
    """One user of one business."""

    business_id: int = key("The business that the user belongs to.")
    user_id: int = key("The service's id of the user.", "id")
    full_name: MaybeText = field("Full name.", "fullname", personal=True)
    username: MaybeText = field("Name to log in with.", personal=True)
    user_group: MaybeText = field("Group of the user, if any.", "group")
    status: AsWorded = field("Status, e.g. Active.")


class Manager(Record):
    """One manager."""

    manager_id: int = key("The service's id of the manager.", "id")
    full_name: MaybeText = field("Full name.", "fullname", personal=True)
    email: MaybeText = field("E-mail address.", personal=True)
    status: AsWorded = field("Status, e.g. Active.")


class UserGroup(Record):
    """One group of users."""

    group_id: int = key("The service's id of the group.", "id")
    name: MaybeText = field("Name of the group.")
    status: AsWorded = field("Status, e.g. Active.")


def read_users(payload: Any, params: Params) -> Rows:
    """`read_users`: {count, items: {business id: {users: {user id: user}}}}."""
    items = items_of(payload)
    if not is_collection(items):
        yield User, items
        return
    for name, value in as_object(items).items():
        yield from _shape_users(
            value, name if isinstance(items, dict) else params.get("businessid")
        )


def _shape_users(value: Any, business: str | None) -> Rows:
    """Ids are the keys of the maps. If a list came instead, the entries must have them."""
    parts = value if isinstance(value, dict) else {}
    people = next((part for key, part in parts.items() if key.lower() == "users"), value)
    if not is_collection(people):
        yield User, people
        return
    if not is_whole(value, people):
        yield mark_missing(User, "users")
    known = {}
    if business is not None:
        known = {"business_id": business}
    for number, person in as_object(people).items():
        if not isinstance(person, dict):
            yield User, person
            continue
        has_id = "id" in person or isinstance(people, list)
        yield User, person | known | ({} if has_id else {"user_id": number})


AREA = Area("users")
LISTS = AREA.declare_rows("user/lists", read_users, User)
MANAGERS = AREA.declare_rows("user/managers", read_listing(Manager), Manager)
GROUPS = AREA.declare_rows("user/groups", read_listing(UserGroup), UserGroup)
