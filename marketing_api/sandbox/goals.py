"""The rules of conversion goals."""

from marketing_api.sandbox.rules import (
    CheckedCall,
    Resource,
    show_list,
    show_thing,
    translate_members,
)
from marketing_api.sandbox.seed import Thing

#: Tracked domains, named by goals and webhooks.
DOMAINS = (21, 22)


def _show(call: CheckedCall, goal_id: int, goal: Thing) -> Thing:
    action, words = goal.get("action"), translate_members("goal", goal)
    return show_thing(
        goal_id,
        goal | words,
        "name",
        "type",
        "event_type",
        goal_value={"type": goal["value_type"].title(), "value": f"{float(goal['value']):.2f}"},
        event_link_rule=words["goal_event_filter"],
        links=goal["event_links"],
        has_action="Yes" if action else "No",
        action=show_thing(action["id"], action, "name") if action else {},
    )


def _read_given(call: CheckedCall) -> Thing:
    call.must_exist("domain", call.ids("domainid"), DOMAINS)
    given = call.given("name", "type", "value_type", "value", "event_type", "goal_event_filter")
    if (
        links := call.words("event_links")
        or call.words("event_videos")
        or call.words("destination_url")
    ):
        given["event_links"] = links
    return given | call.given_ids("domainid")


def listbydomain(call: CheckedCall) -> Thing:
    goals, domain = call.things("goal").items(), call.id("domainid")
    return show_list([_show(call, *one) for one in goals if one[1]["domainid"] == domain])


lists = show = add = edit = delete = Resource("goal", _show, _read_given)
