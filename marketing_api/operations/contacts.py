"""What can be requested about contacts, their timelines and coupons, and how contacts, tags and activities are written."""

from marketing_api.operation import FIELDS, ID_ITEM, Effect, an_id, choice, email, ids, moment, paging, read, text, write
from marketing_api.records import contacts, timelines

#: Words of the specification; the codes are accepted beside them (api-observed row 18).
STATUS = ("Active", "Disactive", "0", "1", "2", "3")
_STATUS_DOC = "Codes: 0 unconfirmed, 1 active, 2 unsubscribed, 3 bounced."
_ID = an_id("id", "Contact id.", required=True)

GETCONTACTS = read(
    "emailmarketing/getcontacts",
    "The contacts of one list.",
    an_id("listid", "Optional in a variant.", required=True),
    *paging(is_specified=False),
    entries_at="contacts",
    # One response may hold a million contacts.
    timeout=300.0,
    records=(contacts.Contact,),
    rows=contacts.contacts,
    is_streamed=True,
)

GETCONTACTBYEMAIL = read(
    "emailmarketing/getcontactbyemail",
    "The contacts with an e-mail address, one per list.",
    email("email", required=True),
    an_id("listid"),
    at="contact",
)

GETCONTACT = read("emailmarketing/getcontact", "One contact.", _ID, at="contact")

TIMELINE = read(
    "emailmarketing/getcontacttimeline",
    "What happened to a contact. `count` below `total` means that the service cut it.",
    _ID,
    choice("include", "utm", "automated", many=True, doc="Page visits and automations beside the events."),
    members=("timeline",),
    echo="id",
    records=(timelines.TimelineEvent, timelines.TimelineVisit, timelines.TimelineAutomation),
    rows=timelines.timeline,
)

GETCOUPON = read(
    "emailmarketing/getcoupon",
    "The coupons that an e-mail address was given.",
    email("email", required=True),
    an_id("campaignid"),
    at="coupons",
    records=(contacts.Coupon,),
    rows=contacts.coupons,
)

EDITCONTACT = write(
    "emailmarketing/editcontact",
    "Change a contact.",
    _ID,
    email("email"),
    text("ipaddress"),
    choice("status", *STATUS, doc=_STATUS_DOC),
    FIELDS,
)

SYNCCONTACT = write(
    "emailmarketing/synccontact",
    "Add a contact to lists, or update every contact with its e-mail there. Queued: it shows seconds later (api-observed row 6).",
    email("email", required=True),
    ids("listid", required=True),
    choice("status", *STATUS, doc=f"Required in a variant. Without it a contact that is there keeps its own. {_STATUS_DOC}"),
    text("ipaddress"),
    FIELDS,
    result=ID_ITEM,
)

MOVECONTACT = write(
    "emailmarketing/movecontact",
    "Move a contact to another list.",
    _ID,
    an_id("listid", "Destination list.", required=True),
    an_id("sourceid", "Source list. Absent in a variant.", required=True),
)

DELETECONTACT = write(
    "emailmarketing/deletecontact",
    "Delete a contact from a list.",
    _ID,
    an_id("listid", "List to delete from.", required=True),
    effect=Effect.DELETE,
)

ADDACTIVITY = write(
    "emailmarketing/addactivity",
    "Write an entry into a contact's timeline.",
    _ID,
    text("description", required=True),
    moment("datetime", required=True),
)

_TAGS = text("tagname", "One tag or several.", required=True, many=True)

ADDTAG = write(
    "emailmarketing/addtag",
    "Tag a contact. An absent contact gets an `ok` header and a sentence (api-observed row 5).",
    email("email", "Optional in a variant.", required=True),
    an_id("id", "Contact id."),
    _TAGS,
)

REMOVETAG = write(
    "emailmarketing/removetag",
    "Take tags off a contact.",
    email("email", "Optional in a variant.", required=True),
    an_id("id", "Contact id. Optional in a variant.", required=True),
    _TAGS,
)
