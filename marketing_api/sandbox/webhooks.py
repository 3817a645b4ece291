"""The rules of behavioural webhooks. The words shown for inputs are assumed where no sample shows them."""

from typing import Any

from marketing_api.sandbox.goals import DOMAINS
from marketing_api.sandbox.rules import RULES, CheckedCall, added
from marketing_api.sandbox.words import Thing

_TYPES = {"page_exit": "On Page Exit", "page_entry": "On Page Entry", "goal_trigger": "On Goal Trigger"}
_ACTIONS = {"html_msg": "HTML Message", "form": "Form", "poll": "Poll", "redirection": "Redirection", "trigger_js": "Trigger JS", "": ""}
_STYLES = {"popup": "Popup", "sticky_bar": "Sticky Bar"}
_INTERVALS = {"repeat": "Repeat", "one_time": "One Time"}


def _shown(call: CheckedCall, wanted: int, webhook: Thing) -> dict[str, Any]:
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


def _given(call: CheckedCall) -> Thing:
    call.must_exist("The domain", call.ids("domainid"), DOMAINS)
    call.must_exist("The list", call.ids("list_id"), call.world.lists.all(call.now))
    given: Thing = {name: value for name, value in call.params.items() if name not in ("id", "domainid") and value}
    return given | ({"domainid": call.id("domainid")} if call.has("domainid") else {})


RULES |= {
    "webhook/lists": lambda call: call.listing("webhooks", [_shown(call, *one) for one in call.world.webhooks.all(call.now).items()]),
    "webhook/show": lambda call: {"webhook": _shown(call, call.id(), call.existing(call.world.webhooks))},
    "webhook/add": lambda call: added(call.world.webhooks, {"domainid": 0, **_given(call)}),
    "webhook/edit": lambda call: call.edited(call.world.webhooks, _given(call)),
    "webhook/delete": lambda call: call.deleted(call.world.webhooks),
}
