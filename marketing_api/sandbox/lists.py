"""The rules of lists and audiences."""

from __future__ import annotations

from typing import Any

from marketing_api.sandbox.call import Call, Payload, rule
from marketing_api.sandbox.seeds import Thing
from marketing_api.sandbox.words import AUDIENCES, FIELDS
from marketing_api.sandbox.world import World

#: Every audience by id.
AUDIENCE_IDS = {611 + place * 4: name for place, name in enumerate(AUDIENCES)}
_TEXTS = ("name", "form_title", "email_subject", "reply_to", "from_email", "from_name")
#: Parameter → member of the list, where they differ.
_NAMES = {"fromemail": "from_email"}


def _shown(call: Call, wanted: int, thing: Thing, *, with_fields: bool) -> dict[str, Any]:
    spelling = call.switches["confirmation"]
    shown: dict[str, Any] = {"id": call.an_id(wanted), **{name: thing.get(name, "") for name in _TEXTS}}
    for part in ("email", "message"):
        value = thing.get(f"confirmation_{part}", "")
        if spelling != "confirmation":
            shown[f"confimation_{part}"] = value
        if spelling != "confimation":
            shown[f"confirmation_{part}"] = value
        shown[f"success_{part}"] = thing.get(f"success_{part}", "")
    shown["error_message"] = thing.get("error_message", "")
    shown["doubleOptin"] = "1" if thing.get("double_opt_in") else "0"
    shown["notify_email"] = thing.get("notify_email", "")
    shown["creation_date"] = call.when(thing["created_at"])
    if with_fields:
        shown["fields"] = call.map(labels(call, wanted, thing))
    return shown


def labels(call: Call, wanted: int, thing: Thing) -> dict[str, str]:
    """Labels of the list's custom fields by id; one may stand for the address (api-observed row 38)."""
    own: dict[str, str] = thing["fields"]
    return {**own, field: "Email Address"} if (field := email_field(call, wanted)) else own


def email_field(call: Call, wanted: int) -> str:
    """The id of the list's field that stands for the address; empty where lists have none."""
    return f"{wanted}9" if call.switches.is_on("email-field") else ""


@rule("emailmarketing/getlists")
def getlists(world: World, call: Call) -> Payload:
    with_fields = call.switches.is_on("listed-fields")
    found = [_shown(call, wanted, thing, with_fields=with_fields) for wanted, thing in world.lists.all(call.now).items()]
    if call.switches["contact-paging"] == "honoured":
        count, found = call.page(found, 100)
    else:
        count = len(found)
    return {"lists": {"count": count, "items": call.items(found)}}


@rule("emailmarketing/getlist")
def getlist(world: World, call: Call) -> Payload:
    return {"list": _shown(call, call.id(), world.lists.existing(call, "The list"), with_fields=True)}


@rule("emailmarketing/getaudiences")
def getaudiences(_world: World, call: Call) -> Payload:
    found = [{"id": call.an_id(wanted), "name": name} for wanted, name in AUDIENCE_IDS.items()]
    return {"audiences": {"count": len(found), "items": call.items(found)}}


def _given(call: Call) -> Thing:
    known = (
        "name", "email_subject", "reply_to", "fromemail", "from_name", "notify", "notify_email", "success_email", "success_message",
        "error_message", "confirmation_email", "confirmation_message", "communications",
    )  # fmt: skip
    thing: Thing = {_NAMES.get(name, name): call.params[name] for name in known if name in call.params}
    if call.has("doubleOptin"):
        thing["double_opt_in"] = call.get("doubleOptin") == "1"
    return thing


@rule("emailmarketing/addlist")
def addlist(world: World, call: Call) -> Payload:
    thing = {"form_title": call.get("name"), **_given(call), "created_at": call.now, "fields": {}}
    new = world.lists.add(thing)
    world.lists.edit(new, {"fields": {f"{new}0{position}": label for position, label in enumerate(FIELDS[:2])}})
    return {"id": call.an_id(new), "item": "The list was added successfully"}


@rule("emailmarketing/editlist")
def editlist(world: World, call: Call) -> Payload:
    world.lists.existing(call, "The list")
    world.lists.edit(call.id(), _given(call))
    return {"item": "The list was updated successfully"}


@rule("emailmarketing/deletelist")
def deletelist(world: World, call: Call) -> Payload:
    """Its contacts go with it."""
    world.lists.existing(call, "The list")
    world.lists.delete(call.id())
    world.subscribers.delete_list(call.id(), call.now)
    return {"item": "The list was deleted successfully"}
