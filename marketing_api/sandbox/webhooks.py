"""The rules of behavioural webhooks."""

from typing import Any

from marketing_api.sandbox.goals import DOMAINS
from marketing_api.sandbox.rules import RULES, CheckedCall, added
from marketing_api.sandbox.seed import WORDS, Thing


def _shown(call: CheckedCall, wanted: int, webhook: Thing) -> dict[str, Any]:
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
            "delay": {
                part: str(webhook.get(f"delay_{part}", "0")) for part in ("hours", "minutes", "seconds")
            },
        },
        "action_stype": words["action_style"][webhook.get("action_style", "popup")],
    }


def _given(call: CheckedCall) -> Thing:
    call.must_exist("The domain", call.ids("domainid"), DOMAINS)
    call.must_exist("The list", call.ids("list_id"), call.world.lists.all(call.now))
    given: Thing = {
        name: value for name, value in call.params.items() if name not in ("id", "domainid") and value
    }
    return given | ({"domainid": call.id("domainid")} if call.has("domainid") else {})


RULES |= {
    "webhook/lists": lambda call: call.listing(
        "webhooks", [_shown(call, *one) for one in call.world.webhooks.all(call.now).items()]
    ),
    "webhook/show": lambda call: {"webhook": _shown(call, call.id(), call.existing(call.world.webhooks))},
    "webhook/add": lambda call: added(call.world.webhooks, {"domainid": 0, **_given(call)}),
    "webhook/edit": lambda call: call.edited(call.world.webhooks, _given(call)),
    "webhook/delete": lambda call: call.deleted(call.world.webhooks),
}
