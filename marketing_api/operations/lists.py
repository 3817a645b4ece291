"""What can be requested about contact lists and audiences."""

from marketing_api.operation import Area
from marketing_api.records import lists
from marketing_api.records.shapes import listing

AREA = Area(__file__)

GETLISTS = AREA.filling("emailmarketing/getlists", lists.lists, lists.ContactList, lists.ListField)
GETLIST = AREA.filling("emailmarketing/getlist", lists.contact_list, lists.ContactList, lists.ListField)
GETAUDIENCES = AREA.filling("emailmarketing/getaudiences", listing(lists.Audience), lists.Audience)
