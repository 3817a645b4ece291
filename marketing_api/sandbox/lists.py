"""The rules of lists and audiences."""

from typing import Any

from marketing_api.sandbox.rules import RULES, CheckedCall, Payload, done, rule
from marketing_api.sandbox.seed import WORDS, Thing

#: Every audience by id.
AUDIENCE_IDS = {611 + place * 4: name for place, name in enumerate(WORDS["audiences"])}
_TEXTS = ("name", "form_title", "email_subject", "reply_to", "from_email", "from_name")


def _shown(call: CheckedCall, wanted: int, thing: Thing, *, with_fields: bool) -> dict[str, Any]:
    spelling = call.switches["confirmation"]
    shown: dict[str, Any] = {"id": call.an_id(wanted), **{name: thing.get(name, "") for name in _TEXTS}}
    for part in ("email", "message"):
        for spelled in ("confimation", "confirmation") if spelling == "both" else (spelling,):
            shown[f"{spelled}_{part}"] = thing.get(f"confirmation_{part}", "")
        shown[f"success_{part}"] = thing.get(f"success_{part}", "")
    shown["error_message"] = thing.get("error_message", "")
    shown["doubleOptin"] = "1" if thing.get("double_opt_in") else "0"
    shown["notify_email"] = thing.get("notify_email", "")
    shown["creation_date"] = call.moments.text(thing["created_at"])
    if with_fields:
        shown["fields"] = call.map(labels(call, wanted))
    return shown


def labels(call: CheckedCall, wanted: int) -> dict[str, str]:
    """Labels of the list's custom fields by id; one may stand for the address (api-observed row 38)."""
    own: dict[str, str] = call.world.lists.all(call.now)[wanted]["fields"]
    return {**own, field: "Email Address"} if (field := email_field(call, wanted)) else own


def email_field(call: CheckedCall, wanted: int) -> str:
    """The id of the list's field that stands for the address; empty where lists have none."""
    return f"{wanted}9" if call.switches.is_on("email-field") else ""


@rule("emailmarketing/getlists")
def getlists(call: CheckedCall) -> Payload:
    with_fields = call.switches.is_on("listed-fields")
    found = [
        _shown(call, wanted, thing, with_fields=with_fields)
        for wanted, thing in call.world.lists.all(call.now).items()
    ]
    count, found = call.page(found, 100) if call.switches["contact-paging"] == "honoured" else (None, found)
    return call.listing("lists", found, count)


def _given(call: CheckedCall) -> Thing:
    thing: Thing = {
        {"fromemail": "from_email"}.get(name, name): value
        for name, value in call.params.items()
        if name != "id"
    }
    return thing | ({"double_opt_in": call.get("doubleOptin") == "1"} if call.has("doubleOptin") else {})


@rule("emailmarketing/addlist")
def addlist(call: CheckedCall) -> Payload:
    lists = call.world.lists
    new = lists.add({"form_title": call.get("name"), **_given(call), "created_at": call.now})
    lists.edit(
        new, {"fields": {f"{new}0{position}": label for position, label in enumerate(WORDS["fields"][:2])}}
    )
    return {"id": call.an_id(new), **done(lists, "added")}


@rule("emailmarketing/deletelist")
def deletelist(call: CheckedCall) -> Payload:
    payload = call.deleted(call.world.lists)
    call.world.subscribers.deleted_lists.add(call.id())
    return payload


RULES |= {
    "emailmarketing/getlist": lambda call: {
        "list": _shown(call, call.id(), call.existing(call.world.lists), with_fields=True)
    },
    "emailmarketing/getaudiences": lambda call: call.listing(
        "audiences", [{"id": call.an_id(wanted), "name": name} for wanted, name in AUDIENCE_IDS.items()]
    ),
    "emailmarketing/editlist": lambda call: call.edited(call.world.lists, _given(call)),
}
