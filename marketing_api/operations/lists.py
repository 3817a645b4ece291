"""What can be requested about contact lists and audiences."""

from marketing_api.operation import an_id, paging, read
from marketing_api.records import lists
from marketing_api.records.shapes import listing

_ID = an_id("id", "List id.", required=True)

GETLISTS = read(
    "emailmarketing/getlists",
    "All contact lists.",
    *paging(is_specified=False),
    entries_at="lists",
    records=(lists.ContactList, lists.ListField),
    rows=lists.lists,
)

GETLIST = read(
    "emailmarketing/getlist",
    "One list with its custom fields.",
    _ID,
    at="list",
    records=(lists.ContactList, lists.ListField),
    rows=lists.contact_list,
)

GETAUDIENCES = read(
    "emailmarketing/getaudiences",
    "All audiences.",
    entries_at="audiences",
    records=(lists.Audience,),
    rows=listing(lists.Audience),
)
