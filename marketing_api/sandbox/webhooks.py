"""The rules of behavioural webhooks. The words shown for inputs are assumed where no sample shows them."""

from __future__ import annotations

from typing import Any

from marketing_api.sandbox.call import Call, Payload, rule
from marketing_api.sandbox.seeds import DOMAINS, Thing
from marketing_api.sandbox.world import World

_TYPES = {"page_exit": "On Page Exit", "page_entry": "On Page Entry", "goal_trigger": "On Goal Trigger"}
_ACTIONS = {"html_msg": "HTML Message", "form": "Form", "poll": "Poll", "redirection": "Redirection", "trigger_js": "Trigger JS", "": ""}
_STYLES = {"popup": "Popup", "sticky_bar": "Sticky Bar"}
_INTERVALS = {"repeat": "Repeat", "one_time": "One Time"}


def _shown(call: Call, wanted: int, webhook: Thing) -> dict[str, Any]:
    link = webhook.get("action_url", "")
    return {
        "id": call.an_id(wanted),
        "name": webhook["name"],
        "type": _TYPES[webhook["type"]],
        "domain_id": call.an_id(webhook["domainid"]),
        "url": {"filter": "Matches Exactly" if link else "", "link": link},
        "action_type": _ACTIONS[webhook.get("action_type", "")],
        "action_rules": {
            "execute_for": webhook.get("action_targetusers", "all").title(),
            "device_filter": webhook.get("action_devicefilter", "all").title(),
            "interval": _INTERVALS[webhook.get("action_frequency", "one_time")],
            "delay": {part: str(webhook.get(f"delay_{part}", "0")) for part in ("hours", "minutes", "seconds")},
        },
        "action_stype": _STYLES[webhook.get("action_style", "popup")],
    }


@rule("webhook/lists")
def lists(world: World, call: Call) -> Payload:
    found = [_shown(call, wanted, webhook) for wanted, webhook in world.webhooks.all(call.now).items()]
    return {"webhooks": {"count": len(found), "items": call.items(found)}}


@rule("webhook/show")
def show(world: World, call: Call) -> Payload:
    return {"webhook": _shown(call, call.id(), world.webhooks.existing(call, "The webhook"))}


def _given(world: World, call: Call) -> Thing:
    call.must_exist("The domain", call.ids("domainid"), DOMAINS)
    call.must_exist("The list", call.ids("list_id"), world.lists.all(call.now))
    given: Thing = {name: value for name, value in call.params.items() if name not in ("id", "domainid") and value}
    if call.has("domainid"):
        given["domainid"] = call.id("domainid")
    return given


@rule("webhook/add")
def add(world: World, call: Call) -> Payload:
    world.webhooks.add({"domainid": 0, **_given(world, call)})
    return {"item": "The webhook was added successfully"}


@rule("webhook/edit")
def edit(world: World, call: Call) -> Payload:
    world.webhooks.existing(call, "The webhook")
    world.webhooks.edit(call.id(), _given(world, call))
    return {"item": "The webhook was updated successfully"}


@rule("webhook/delete")
def delete(world: World, call: Call) -> Payload:
    world.webhooks.existing(call, "The webhook")
    world.webhooks.delete(call.id())
    return {"item": "The webhook was deleted successfully"}
