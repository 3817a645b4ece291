"""The rules of tracked domains: their conversion goals and behavioural webhooks."""

from typing import Any

from marketing_api.sandbox.rules import RULES, CheckedCall, Payload, added, rule
from marketing_api.sandbox.seed import WORDS, Thing

#: Tracked domains, named by goals and webhooks.
DOMAINS = (21, 22)


def _goal(call: CheckedCall, wanted: int, goal: Thing) -> dict[str, Any]:
    action = goal.get("action")
    if call.switches.is_on("action-deleted") and wanted == next(iter(call.world.goals.all(call.now))):
        action = {"id": 99, "name": "Action is deleted!"}
    words, value = WORDS["goal_words"], float(goal.get("value") or 0)
    return {
        "id": call.an_id(wanted),
        "name": goal["name"],
        "goal_value": {"type": goal.get("value_type", "fixed").title(), "value": f"{value:.{call.switches.number('goal-decimals')}f}"},
        "type": words["type"][goal["type"]],
        "event_type": words["event_type"].get(goal.get("event_type"), ""),
        "event_link_rule": words["goal_event_filter"].get(goal.get("goal_event_filter"), ""),
        "links": list(goal.get("event_links", ())),
        "has_action": "Yes" if action else "No",
        "action": {"id": call.an_id(action["id"]), "name": action["name"]} if action else call.map({}),
    }


@rule("goal/lists")
@rule("goal/listbydomain")
def goals(call: CheckedCall) -> Payload:
    goals, is_wanted = call.world.goals.all(call.now).items(), call.operation.name == "goal/lists"
    found = [_goal(call, wanted, goal) for wanted, goal in goals if is_wanted or goal["domainid"] == call.id("domainid")]
    return call.listing("goals", found)


def _given_goal(call: CheckedCall) -> Thing:
    names = ("name", "type", "value_type", "value", "event_type", "goal_event_filter")
    given: Thing = {name: call.params[name] for name in names if call.has(name)}
    links = call.words("event_links") or call.words("event_videos") or call.words("destination_url")
    return given | ({"event_links": links} if links else {})


@rule("goal/add")
def add_goal(call: CheckedCall) -> Payload:
    call.must_exist("The domain", [call.id("domainid")], DOMAINS)
    return added(call.world.goals, {"domainid": call.id("domainid"), **_given_goal(call)})


def _webhook(call: CheckedCall, wanted: int, webhook: Thing) -> dict[str, Any]:
    link, words = webhook.get("action_url", ""), WORDS["webhook_words"]
    return {
        "id": call.an_id(wanted),
        "name": webhook["name"],
        "type": words["type"][webhook["type"]],
        "domain_id": call.an_id(webhook["domainid"]),
        "url": {"filter": "Matches Exactly" if link else "", "link": link},
        "action_type": words["action_type"][webhook.get("action_type", "")],
        "action_rules": {
            "execute_for": webhook.get("action_targetusers", "all").title(),
            "device_filter": webhook.get("action_devicefilter", "all").title(),
            "interval": words["action_frequency"][webhook.get("action_frequency", "one_time")],
            "delay": {part: str(webhook.get(f"delay_{part}", "0")) for part in ("hours", "minutes", "seconds")},
        },
        "action_stype": words["action_style"][webhook.get("action_style", "popup")],
    }


def _given_webhook(call: CheckedCall) -> Thing:
    call.must_exist("The domain", call.ids("domainid"), DOMAINS)
    call.must_exist("The list", call.ids("list_id"), call.world.lists.all(call.now))
    given: Thing = {name: value for name, value in call.params.items() if name not in ("id", "domainid") and value}
    return given | ({"domainid": call.id("domainid")} if call.has("domainid") else {})


RULES |= {
    "goal/show": lambda call: {"goal": _goal(call, call.id(), call.existing(call.world.goals))},
    "goal/edit": lambda call: call.edited(call.world.goals, _given_goal(call)),
    "goal/delete": lambda call: call.deleted(call.world.goals),
    "webhook/lists": lambda call: call.listing("webhooks", [_webhook(call, *one) for one in call.world.webhooks.all(call.now).items()]),
    "webhook/show": lambda call: {"webhook": _webhook(call, call.id(), call.existing(call.world.webhooks))},
    "webhook/add": lambda call: added(call.world.webhooks, {"domainid": 0, **_given_webhook(call)}),
    "webhook/edit": lambda call: call.edited(call.world.webhooks, _given_webhook(call)),
    "webhook/delete": lambda call: call.deleted(call.world.webhooks),
}
