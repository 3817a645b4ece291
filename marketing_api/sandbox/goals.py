"""The rules of conversion goals."""

from typing import Any

from marketing_api.sandbox.rules import RULES, CheckedCall, Payload, added, rule
from marketing_api.sandbox.seed import WORDS, Thing

#: Tracked domains, named by goals and webhooks.
DOMAINS = (21, 22)


def _shown(call: CheckedCall, wanted: int, goal: Thing) -> dict[str, Any]:
    action = goal.get("action")
    if call.switches.is_on("action-deleted") and wanted == next(iter(call.world.goals.all(call.now))):
        action = {"id": 99, "name": "Action is deleted!"}
    words, value = WORDS["goal_words"], float(goal.get("value") or 0)
    return {
        "id": call.an_id(wanted),
        "name": goal["name"],
        "goal_value": {
            "type": goal.get("value_type", "fixed").title(),
            "value": f"{value:.{call.switches.number('goal-decimals')}f}",
        },
        "type": words["type"][goal["type"]],
        "event_type": words["event_type"].get(goal.get("event_type"), ""),
        "event_link_rule": words["goal_event_filter"].get(goal.get("goal_event_filter"), ""),
        "links": list(goal.get("event_links", ())),
        "has_action": "Yes" if action else "No",
        "action": {"id": call.an_id(action["id"]), "name": action["name"]} if action else call.map({}),
    }


@rule("goal/lists")
@rule("goal/listbydomain")
def lists(call: CheckedCall) -> Payload:
    goals, is_wanted = call.world.goals.all(call.now).items(), call.operation.name == "goal/lists"
    found = [
        _shown(call, wanted, goal)
        for wanted, goal in goals
        if is_wanted or goal["domainid"] == call.id("domainid")
    ]
    return call.listing("goals", found)


def _given(call: CheckedCall) -> Thing:
    names = ("name", "type", "value_type", "value", "event_type", "goal_event_filter")
    given: Thing = {name: call.params[name] for name in names if call.has(name)}
    links = call.words("event_links") or call.words("event_videos") or call.words("destination_url")
    return given | ({"event_links": links} if links else {})


@rule("goal/add")
def add(call: CheckedCall) -> Payload:
    call.must_exist("The domain", [call.id("domainid")], DOMAINS)
    return added(call.world.goals, {"domainid": call.id("domainid"), **_given(call)})


RULES |= {
    "goal/show": lambda call: {"goal": _shown(call, call.id(), call.existing(call.world.goals))},
    "goal/edit": lambda call: call.edited(call.world.goals, _given(call)),
    "goal/delete": lambda call: call.deleted(call.world.goals),
}
