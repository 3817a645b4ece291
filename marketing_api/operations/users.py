"""What can be requested about users, managers and groups."""

from marketing_api.operation import Area
from marketing_api.records import users
from marketing_api.records.shapes import listing

AREA = Area(__file__)

LISTS = AREA.filling("user/lists", users.users, users.User)
MANAGERS = AREA.filling("user/managers", listing(users.Manager), users.Manager)
GROUPS = AREA.filling("user/groups", listing(users.UserGroup), users.UserGroup)
