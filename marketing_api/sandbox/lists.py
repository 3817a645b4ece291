"""The rules of lists and audiences."""

from marketing_api.sandbox.rules import CheckedCall, Resource
from marketing_api.sandbox.seed import WORDS, Thing


def find_fields(call: CheckedCall, list_id: int) -> dict[str, str]:
    """Labels of the list's custom fields by id; one may hold the address (observation 38)."""
    labels = enumerate(WORDS["fields"][:2])
    added = {f"{list_id}0{position}": label for position, label in labels}
    fields: dict[str, str] = dict(call.things("list")[list_id].get("fields", added))
    email_field = find_email_field(call, list_id)
    if email_field:
        fields[email_field] = "Email Address"
    return fields


def find_email_field(call: CheckedCall, list_id: int) -> str:
    """The id of the list's field that holds the address; empty where lists have none."""
    if call.observes("email-field"):
        return f"{list_id}9"
    return ""


def _compute_members(call: CheckedCall, list_id: int, thing: Thing) -> Thing:
    return {
        "creation_date": call.moments.text(thing["since"]),
        "fields": find_fields(call, list_id),
    }


getlist = addlist = editlist = Resource(
    "list",
    make_members=lambda call: {"form_title": call["name"], "doubleOptin": "0"},
    compute_members=_compute_members,
)


def getlists(call: CheckedCall) -> Thing:
    count, page = call.page_as_observed(list(call.things("list").items()))
    items = [getlist.show(call, *one) for one in page]
    if not call.observes("listed-fields"):
        for item in items:
            del item["fields"]
    return {"count": count, "items": items}


def deletelist(call: CheckedCall) -> Thing:
    payload = editlist(call)
    for contact in call.subscribers.contacts.values():
        if contact.list_id == call.id():  # nor does anybody register on it any more
            call.subscribers.delete(contact, call.now)
    return payload


getaudiences = Resource("audience")
