"""The rules of behavioural webhooks."""

from marketing_api.sandbox.goals import DOMAINS
from marketing_api.sandbox.rules import CheckedCall, Resource, show_thing, translate_members
from marketing_api.sandbox.seed import Thing


def _show(call: CheckedCall, webhook_id: int, webhook: Thing) -> Thing:
    link, words = webhook["action_url"], translate_members("webhook", webhook)
    return show_thing(
        webhook_id,
        webhook | words,
        "name",
        "type",
        "action_type",
        domain_id=str(webhook["domainid"]),
        url={"filter": "Matches Exactly" if link else "", "link": link},
        action_rules={
            "execute_for": webhook["action_targetusers"].title(),
            "device_filter": webhook["action_devicefilter"].title(),
            "interval": words["action_frequency"],
            "delay": {unit: webhook[f"delay_{unit}"] for unit in ("hours", "minutes", "seconds")},
        },
        action_stype=words["action_style"],
    )


def _read_given(call: CheckedCall) -> Thing:
    call.must_exist("domain", call.ids("domainid"), DOMAINS)
    call.must_exist("list", call.ids("list_id"), call.things("list"))
    return call.given(*call.params) | call.given_ids("domainid")


lists = show = add = edit = delete = Resource("webhook", _show, _read_given)
