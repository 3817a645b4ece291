"""Conversion goals: the seeded ones, and their rules. The words shown for inputs are assumed where no sample shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from marketing_api.sandbox.moments import DAY
from marketing_api.sandbox.rules import RULES, CheckedCall, Payload, Thing, rule
from marketing_api.sandbox.words import SITE

if TYPE_CHECKING:
    from marketing_api.sandbox.world import Account, World

#: Tracked domains, named by goals and webhooks.
DOMAINS = (21, 22)


def seeded(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Six over two domains, made one after the other in the first year."""
    texts = (
        ("Table booked", "event", "links", "all", (f"{SITE}/book", f"{SITE}/book/thanks"), "80"),
        ("Menu downloaded", "event", "links", "any", (f"{SITE}/menu.pdf",), "2.5"),
        ("Three pages seen", "pages", "", "", (), "0"),
        ("Class booked", "url", "", "", (f"{SITE}/classes/thanks",), "45"),
        ("Video watched", "event", "videos", "any", (f"{SITE}/videos/dumplings",), "1"),
        ("Catering request", "event", "form", "", (), "250"),
    )
    names = ("name", "type", "event_type", "goal_event_filter", "event_links", "value")
    for place, text in enumerate(texts):
        thing: Thing = dict(zip(names, text, strict=True))
        thing |= {"domainid": DOMAINS[place // 4], "value_type": "variable" if thing["value"] == "0" else "fixed"}
        if place in (0, 5):
            thing["action"] = {"id": 31 + place, "name": "Add tag: guest" if place else "Send to list: Loyalty club"}
        if account.start + place * 60 * DAY <= now:
            yield 301 + place * 2, thing


_TYPES = {
    "url": "Destination URL", "duration": "Visit Duration", "pages": "Pages per Visit", "ppc": "Pay per Click",
    "event": "Event Triggered", "funnel": "Funnel",
}  # fmt: skip
_EVENTS = {"links": "Link(s) Clicked", "videos": "Video(s) Watched", "form": "Form Submitted"}
_RULES = {"all": "All of the links are clicked", "any": "Any of the links is clicked"}


def _shown(call: CheckedCall, wanted: int, goal: Thing, *, is_first: bool) -> dict[str, Any]:
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


def _listed(world: World, call: CheckedCall, domain: int | None = None) -> Payload:
    goals = world.goals.all(call.now)
    first = next(iter(goals), None)
    found = [
        _shown(call, wanted, goal, is_first=wanted == first)
        for wanted, goal in goals.items()
        if domain is None or goal["domainid"] == domain
    ]
    return call.listing("goals", found)


RULES["goal/lists"] = lambda world, call: _listed(world, call)
RULES["goal/listbydomain"] = lambda world, call: _listed(world, call, call.id("domainid"))


@rule("goal/show")
def show(world: World, call: CheckedCall) -> Payload:
    goal = world.goals.existing(call)
    return {"goal": _shown(call, call.id(), goal, is_first=call.id() == next(iter(world.goals.all(call.now))))}


def _given(call: CheckedCall) -> Thing:
    names = ("name", "type", "value_type", "value", "event_type", "goal_event_filter")
    given: Thing = {name: call.params[name] for name in names if call.has(name)}
    links = call.words("event_links") or call.words("event_videos") or call.words("destination_url")
    if links:
        given["event_links"] = links
    return given


@rule("goal/add")
def add(world: World, call: CheckedCall) -> Payload:
    call.must_exist("The domain", [call.id("domainid")], DOMAINS)
    return world.goals.added({"domainid": call.id("domainid"), **_given(call)})


RULES["goal/edit"] = lambda world, call: world.goals.edited(call, _given(call))
RULES["goal/delete"] = lambda world, call: world.goals.deleted(call)
