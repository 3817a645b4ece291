"""The rules of conversion goals."""

from marketing_api.sandbox.rules import CheckedCall, Resource, rule
from marketing_api.sandbox.seed import WORDS, Thing

#: Tracked domains, named by goals and webhooks.
DOMAINS = (21, 22)


def _shown(call: CheckedCall, wanted: int, goal: Thing) -> Thing:
    action = goal.get("action")
    if call.switches.is_on("action-deleted") and wanted == next(iter(call.world.goals.all(call.now))):
        action = {"id": 99, "name": "Action is deleted!"}
    words, decimals = WORDS["goal_words"], call.switches.number("goal-decimals")
    return {
        "id": call.an_id(wanted),
        "name": goal["name"],
        "goal_value": {
            "type": goal.get("value_type", "fixed").title(),
            "value": f"{float(goal.get('value', 0)):.{decimals}f}",
        },
        "type": words["type"][goal["type"]],
        "event_type": words["event_type"].get(goal.get("event_type"), ""),
        "event_link_rule": words["goal_event_filter"].get(goal.get("goal_event_filter"), ""),
        "links": goal.get("event_links", []),
        "has_action": "Yes" if action else "No",
        "action": {"id": call.an_id(action["id"]), "name": action["name"]} if action else call.map({}),
    }


def _given(call: CheckedCall) -> Thing:
    call.must_exist("domain", call.ids("domainid"), DOMAINS)
    given = call.given("name", "type", "value_type", "value", "event_type", "goal_event_filter")
    if links := call.words("event_links") or call.words("event_videos") or call.words("destination_url"):
        given["event_links"] = links
    return given | ({"domainid": call.id("domainid")} if call.has("domainid") else {})


@rule("goal/listbydomain")
def listbydomain(call: CheckedCall) -> Thing:
    goals = call.world.goals.all(call.now).items()
    return call.listing([_shown(call, *one) for one in goals if one[1]["domainid"] == call.id("domainid")])


rule("goal/lists", "goal/show", "goal/add", "goal/edit", "goal/delete")(
    Resource(lambda call: call.world.goals, _shown, _given)
)
