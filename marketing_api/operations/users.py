"""What can be requested about users, managers and groups."""

from marketing_api.operation import an_id, read
from marketing_api.records import users
from marketing_api.records.shapes import listing

LISTS = read(
    "user/lists",
    "Users by business.",
    an_id("businessid", "Business id, for an agency."),
    entries_at="users",
    records=(users.User,),
    rows=users.users,
)

MANAGERS = read("user/managers", "All managers.", entries_at="users", records=(users.Manager,), rows=listing(users.Manager))

GROUPS = read("user/groups", "All user groups.", entries_at="groups", records=(users.UserGroup,), rows=listing(users.UserGroup))
