"""Lists and audiences: the seeded ones, and their rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from marketing_api.sandbox.rules import RULES, CheckedCall, Payload, Thing, rule
from marketing_api.sandbox.seeded_contacts import field_id, list_id
from marketing_api.sandbox.words import AUDIENCES, FIELDS, LISTS

if TYPE_CHECKING:
    from marketing_api.sandbox.world import Account, World


def seeded(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """The contact lists."""
    for number, (name, _, title) in enumerate(LISTS):
        if (created := account.start + 8 * 3600 + number * 300) > now:
            continue
        thing: Thing = {
            "name": name, "form_title": title, "email_subject": f"Please confirm: {name}", "reply_to": "hello@example.com",
            "from_email": "news@example.com", "from_name": account.business.name,
            "confirmation_email": "<p>Please confirm: [confirmation_url]</p>",
            "success_email": f"<p>Welcome to {name}!</p><p>[business_name], [business_address]</p>",
            "confirmation_message": "Almost there: look into your inbox.", "success_message": "Thank you & welcome!",
            "error_message": "That did not work, please try again.", "double_opt_in": number in (0, 2),
            "notify_email": "office@example.com" if number == 4 else "", "created_at": created,
            "fields": {field_id(number, position): label for position, label in enumerate(FIELDS)},
        }  # fmt: skip
        yield list_id(number), thing


#: Every audience by id.
AUDIENCE_IDS = {611 + place * 4: name for place, name in enumerate(AUDIENCES)}
_TEXTS = ("name", "form_title", "email_subject", "reply_to", "from_email", "from_name")
#: Parameter → member of the list, where they differ.
_NAMES = {"fromemail": "from_email"}


def _shown(world: World, call: CheckedCall, wanted: int, thing: Thing, *, with_fields: bool) -> dict[str, Any]:
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
        shown["fields"] = call.map(labels(world, call, wanted))
    return shown


def labels(world: World, call: CheckedCall, wanted: int) -> dict[str, str]:
    """Labels of the list's custom fields by id; one may stand for the address (api-observed row 38)."""
    own: dict[str, str] = world.lists.all(call.now)[wanted]["fields"]
    return {**own, field: "Email Address"} if (field := email_field(call, wanted)) else own


def email_field(call: CheckedCall, wanted: int) -> str:
    """The id of the list's field that stands for the address; empty where lists have none."""
    return f"{wanted}9" if call.switches.is_on("email-field") else ""


@rule("emailmarketing/getlists")
def getlists(world: World, call: CheckedCall) -> Payload:
    with_fields = call.switches.is_on("listed-fields")
    found = [_shown(world, call, wanted, thing, with_fields=with_fields) for wanted, thing in world.lists.all(call.now).items()]
    count, found = call.page(found, 100) if call.switches["contact-paging"] == "honoured" else (None, found)
    return call.listing("lists", found, count)


@rule("emailmarketing/getlist")
def getlist(world: World, call: CheckedCall) -> Payload:
    return {"list": _shown(world, call, call.id(), world.lists.existing(call), with_fields=True)}


@rule("emailmarketing/getaudiences")
def getaudiences(_world: World, call: CheckedCall) -> Payload:
    found = [{"id": call.an_id(wanted), "name": name} for wanted, name in AUDIENCE_IDS.items()]
    return call.listing("audiences", found)


def _given(call: CheckedCall) -> Thing:
    known = (
        "name", "email_subject", "reply_to", "fromemail", "from_name", "notify", "notify_email", "success_email", "success_message",
        "error_message", "confirmation_email", "confirmation_message", "communications",
    )  # fmt: skip
    thing: Thing = {_NAMES.get(name, name): call.params[name] for name in known if name in call.params}
    if call.has("doubleOptin"):
        thing["double_opt_in"] = call.get("doubleOptin") == "1"
    return thing


@rule("emailmarketing/addlist")
def addlist(world: World, call: CheckedCall) -> Payload:
    thing = {"form_title": call.get("name"), **_given(call), "created_at": call.now, "fields": {}}
    new = world.lists.add(thing)
    world.lists.edit(new, {"fields": {f"{new}0{position}": label for position, label in enumerate(FIELDS[:2])}})
    return {"id": call.an_id(new), **world.lists.done("added")}


RULES["emailmarketing/editlist"] = lambda world, call: world.lists.edited(call, _given(call))


@rule("emailmarketing/deletelist")
def deletelist(world: World, call: CheckedCall) -> Payload:
    """Its contacts go with it."""
    done = world.lists.deleted(call)
    world.subscribers.delete_list(call.id(), call.now)
    return done
