"""The rules of behavioural webhooks."""

from marketing_api.sandbox.goals import DOMAINS
from marketing_api.sandbox.rules import CheckedCall, Resource, rule
from marketing_api.sandbox.seed import WORDS, Thing


def _shown(call: CheckedCall, wanted: int, webhook: Thing) -> Thing:
    link, words = webhook.get("action_url", ""), WORDS["webhook_words"]
    units = ("hours", "minutes", "seconds")
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
            "delay": {unit: webhook.get(f"delay_{unit}", "0") for unit in units},
        },
        "action_stype": words["action_style"][webhook.get("action_style", "popup")],
    }


def _given(call: CheckedCall) -> Thing:
    call.must_exist("domain", call.ids("domainid"), DOMAINS)
    call.must_exist("list", call.ids("list_id"), call.world.lists.all(call.now))
    domain = {"domainid": call.id("domainid")} if call.has("domainid") else {}
    return call.given(*call.params) | domain


rule("webhook/lists", "webhook/show", "webhook/add", "webhook/edit", "webhook/delete")(
    Resource(lambda call: call.world.webhooks, _shown, _given, lambda _: {"domainid": 0})
)
