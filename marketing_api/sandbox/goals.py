"""The rules of conversion goals. The words shown for inputs are assumed where no sample shows them."""

from __future__ import annotations

from typing import Any

from marketing_api.sandbox.call import Call, Payload, rule
from marketing_api.sandbox.seeds import DOMAINS, Thing
from marketing_api.sandbox.world import World

_TYPES = {
    "url": "Destination URL",
    "duration": "Visit Duration",
    "pages": "Pages per Visit",
    "ppc": "Pay per Click",
    "event": "Event Triggered",
    "funnel": "Funnel",
}
_EVENTS = {"links": "Link(s) Clicked", "videos": "Video(s) Watched", "form": "Form Submitted"}
_RULES = {"all": "All of the links are clicked", "any": "Any of the links is clicked"}


def _shown(call: Call, wanted: int, goal: Thing, *, is_first: bool) -> dict[str, Any]:
    action = goal.get("action")
    if is_first and call.switches.is_on("action-deleted"):
        action = {"id": 99, "name": "Action is deleted!"}
    value = float(goal.get("value") or 0)
    return {
        "id": call.an_id(wanted),
        "name": goal["name"],
        "goal_value": {"type": goal.get("value_type", "fixed").title(), "value": f"{value:.{call.switches.number('goal-decimals')}f}"},
        "type": _TYPES[goal["type"]],
        "event_type": _EVENTS.get(goal.get("event_type", ""), ""),
        "event_link_rule": _RULES.get(goal.get("goal_event_filter", ""), ""),
        "links": list(goal.get("event_links", ())),
        "has_action": "Yes" if action else "No",
        "action": {"id": call.an_id(action["id"]), "name": action["name"]} if action else call.map({}),
    }


def _listed(world: World, call: Call, domain: int | None = None) -> Payload:
    goals = world.goals.all(call.now)
    first = next(iter(goals), None)
    found = [
        _shown(call, wanted, goal, is_first=wanted == first)
        for wanted, goal in goals.items()
        if domain is None or goal["domainid"] == domain
    ]
    return {"goals": {"count": len(found), "items": call.items(found)}}


@rule("goal/lists")
def lists(world: World, call: Call) -> Payload:
    return _listed(world, call)


@rule("goal/listbydomain")
def listbydomain(world: World, call: Call) -> Payload:
    return _listed(world, call, call.id("domainid"))


@rule("goal/show")
def show(world: World, call: Call) -> Payload:
    goal = world.goals.existing(call, "The goal")
    return {"goal": _shown(call, call.id(), goal, is_first=call.id() == next(iter(world.goals.all(call.now))))}


def _given(call: Call) -> Thing:
    given: Thing = {
        name: call.params[name] for name in ("name", "type", "value_type", "value", "event_type", "goal_event_filter") if call.has(name)
    }
    links = call.words("event_links") or call.words("event_videos") or call.words("destination_url")
    if links:
        given["event_links"] = links
    return given


@rule("goal/add")
def add(world: World, call: Call) -> Payload:
    call.must_exist("The domain", [call.id("domainid")], DOMAINS)
    world.goals.add({"domainid": call.id("domainid"), **_given(call)})
    return {"item": "The goal was added successfully"}


@rule("goal/edit")
def edit(world: World, call: Call) -> Payload:
    world.goals.existing(call, "The goal")
    world.goals.edit(call.id(), _given(call))
    return {"item": "The goal was updated successfully"}


@rule("goal/delete")
def delete(world: World, call: Call) -> Payload:
    world.goals.existing(call, "The goal")
    world.goals.delete(call.id())
    return {"item": "The goal was deleted successfully"}
