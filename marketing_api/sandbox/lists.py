"""The rules of lists and audiences."""

from marketing_api.sandbox.rules import CheckedCall, Resource
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


def _shown(call: CheckedCall, wanted: int, thing: Thing) -> Thing:
    """With `confimation` as the service spells it."""
    shown = {member.replace("confirm", "confim"): thing.get(member, "") for member in _MEMBERS}
    created = call.moments.text(thing["created_at"])
    return call.shown(wanted, shown, *shown, creation_date=created, fields=labels(call, wanted))


def labels(call: CheckedCall, wanted: int) -> dict[str, str]:
    """Labels of the list's custom fields by id; one may stand for the address (observation 38)."""
    added = {f"{wanted}0{position}": label for position, label in enumerate(WORDS["fields"][:2])}
    own: dict[str, str] = call.things("list")[wanted].get("fields", added)
    return {**own, field: "Email Address"} if (field := email_field(call, wanted)) else own


def email_field(call: CheckedCall, wanted: int) -> str:
    """The id of the list's field that stands for the address; empty where lists have none."""
    return f"{wanted}9" if call.observes("email-field") else ""


def getlists(call: CheckedCall) -> Thing:
    found = [_shown(call, *one) for one in call.things("list").items()]
    if not call.observes("listed-fields"):
        found = [{name: value for name, value in one.items() if name != "fields"} for one in found]
    if not call.observes("contact-paging"):
        return call.listing(found)
    count, page = call.page(found, 100)
    return call.listing(page, count)


def deletelist(call: CheckedCall) -> Thing:
    payload: Thing = editlist(call)
    call.subscribers.delete_list(call.id(), call.now)
    return payload


def getaudiences(call: CheckedCall) -> Thing:
    return call.listing([call.shown(wanted, {}, name=name) for wanted, name in AUDIENCE_IDS.items()])


getlist = addlist = editlist = Resource(
    "list",
    _shown,
    lambda call: call.given(*call.params, fromemail="from_email"),
    lambda call: {"form_title": call["name"], "doubleOptin": "0", "created_at": call.now},
)
