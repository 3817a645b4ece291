"""The rules of lists and audiences."""

from marketing_api.sandbox.rules import CheckedCall, Resource, show_list, show_thing
from marketing_api.sandbox.seed import WORDS, Thing

#: Every audience by id.
AUDIENCE_IDS = {611 + place * 4: name for place, name in enumerate(WORDS["audiences"])}
_MEMBERS = (
    "name",
    "form_title",
    "email_subject",
    "reply_to",
    "from_email",
    "from_name",
    "confirmation_email",
    "success_email",
    "confirmation_message",
    "success_message",
    "error_message",
    "doubleOptin",
    "notify_email",
)


def _show(call: CheckedCall, list_id: int, thing: Thing) -> Thing:
    """With `confimation` as the service spells it."""
    texts = {member.replace("confirm", "confim"): thing.get(member, "") for member in _MEMBERS}
    created = call.moments.text(thing["since"])
    return show_thing(
        list_id, {}, **texts, creation_date=created, fields=find_fields(call, list_id)
    )


def find_fields(call: CheckedCall, list_id: int) -> dict[str, str]:
    """Labels of the list's custom fields by id; one may stand for the address (observation 38)."""
    added = {f"{list_id}0{position}": label for position, label in enumerate(WORDS["fields"][:2])}
    own: dict[str, str] = call.things("list")[list_id].get("fields", added)
    return {**own, field: "Email Address"} if (field := find_email_field(call, list_id)) else own


def find_email_field(call: CheckedCall, list_id: int) -> str:
    """The id of the list's field that stands for the address; empty where lists have none."""
    return f"{list_id}9" if call.observes("email-field") else ""


def getlists(call: CheckedCall) -> Thing:
    found = [_show(call, *one) for one in call.things("list").items()]
    for shown in found if not call.observes("listed-fields") else ():
        del shown["fields"]
    if not call.observes("contact-paging"):
        return show_list(found)
    count, page = call.page(found, 100)
    return {"count": count, "items": page}


def deletelist(call: CheckedCall) -> Thing:
    payload: Thing = editlist(call)
    for contact in list(call.subscribers.contacts.values()):
        if contact.list_id == call.id():  # nor does anybody register on it any more
            call.subscribers.delete(contact, call.now)
    return payload


def getaudiences(call: CheckedCall) -> Thing:
    return show_list([show_thing(one, {}, name=name) for one, name in AUDIENCE_IDS.items()])


getlist = addlist = editlist = Resource(
    "list",
    _show,
    lambda call: call.given(*call.params, fromemail="from_email"),
    lambda call: {"form_title": call["name"], "doubleOptin": "0"},
)
