"""The rules of conversion goals."""

from marketing_api.sandbox.rules import CheckedCall, Resource, worded
from marketing_api.sandbox.seed import Thing

#: Tracked domains, named by goals and webhooks.
DOMAINS = (21, 22)


def _shown(call: CheckedCall, wanted: int, goal: Thing) -> Thing:
    action, words = goal.get("action"), worded("goal", goal)
    value = f"{float(goal['value']):.2f}"
    return call.shown(
        wanted,
        goal | words,
        "name",
        "type",
        "event_type",
        goal_value={"type": goal["value_type"].title(), "value": value},
        event_link_rule=words["goal_event_filter"],
        links=goal["event_links"],
        has_action="Yes" if action else "No",
        action=call.shown(action["id"], action, "name") if action else {},
    )


def _given(call: CheckedCall) -> Thing:
    call.must_exist("domain", call.ids("domainid"), DOMAINS)
    given = call.given("name", "type", "value_type", "value", "event_type", "goal_event_filter")
    if links := call.words("event_links") or call.words("event_videos") or call.words("destination_url"):
        given["event_links"] = links
    return given | call.given_ids("domainid")


def listbydomain(call: CheckedCall) -> Thing:
    goals, domain = call.things("goal").items(), call.id("domainid")
    return call.listing([_shown(call, *one) for one in goals if one[1]["domainid"] == domain])


lists = show = add = edit = delete = Resource("goal", _shown, _given)
