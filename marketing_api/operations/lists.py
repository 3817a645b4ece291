"""What can be requested about contact lists and audiences, and how lists are written."""

from marketing_api.operation import ID_ITEM, PAGED, Effect, an_id, each, flag, paging, read, text, write
from marketing_api.records import lists
from marketing_api.records.shapes import listing

_ID = an_id("id", "List id.", required=True)

GETLISTS = read(
    "emailmarketing/getlists",
    "All contact lists.",
    *paging(is_specified=False),
    entries_at="lists",
    paging=PAGED,
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

#: Ten of these are optional in one variant and required in another, so they are always sent.
_CONTENT = (
    *each(text, "name", "email_subject", "reply_to", "fromemail", "from_name", required=True),
    flag("doubleOptin", "Confirm a subscription by e-mail.", required=True),
    *each(text, "notify", "notify_email", "success_email", "success_message", "error_message", required=True),
    *each(text, "confirmation_email", "confirmation_message"),
    flag("communications", "1 turns off communications."),
)

ADDLIST = write("emailmarketing/addlist", "Create a list.", *_CONTENT, result=ID_ITEM)

EDITLIST = write("emailmarketing/editlist", "Change a list.", _ID, *_CONTENT)

DELETELIST = write("emailmarketing/deletelist", "Delete a list.", _ID, effect=Effect.DELETE)
