"""Behavioural webhooks: the seeded ones, and their rules. The words shown for inputs are assumed where no sample shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from marketing_api.sandbox.goals import DOMAINS
from marketing_api.sandbox.moments import DAY
from marketing_api.sandbox.rules import RULES, CheckedCall, Payload, Thing, rule
from marketing_api.sandbox.words import SITE

if TYPE_CHECKING:
    from marketing_api.sandbox.world import Account, World


def seeded(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Five over the same domains."""
    texts = (
        ("Don't leave hungry", "page_exit", "html_msg", f"{SITE}/menu", "popup"),
        ("Newsletter form", "page_entry", "form", f"{SITE}/", "sticky_bar"),
        ("What shall we cook?", "page_entry", "poll", f"{SITE}/classes", "popup"),
        ("After booking", "goal_trigger", "redirection", f"{SITE}/book/thanks", "popup"),
        ("Shop exit", "page_exit", "html_msg", f"{SITE}/shop", "sticky_bar"),
    )
    names = ("name", "type", "action_type", "action_url", "action_style")
    for place, text in enumerate(texts):
        if account.start + place * 90 * DAY <= now:
            thing: Thing = dict(zip(names, text, strict=True)) | {
                "domainid": DOMAINS[place % 2],
                "action_targetusers": ("all", "anonymous", "subscribers")[place % 3],
                "action_devicefilter": ("all", "desktop", "mobile")[place % 3],
                "action_frequency": "repeat" if place % 2 else "one_time",
                "delay_minutes": str(place),
                "delay_seconds": str(place * 15 % 60),
            }
            yield 501 + place * 2, thing


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


@rule("webhook/lists")
def lists(world: World, call: CheckedCall) -> Payload:
    found = [_shown(call, wanted, webhook) for wanted, webhook in world.webhooks.all(call.now).items()]
    return call.listing("webhooks", found)


@rule("webhook/show")
def show(world: World, call: CheckedCall) -> Payload:
    return {"webhook": _shown(call, call.id(), world.webhooks.existing(call))}


def _given(world: World, call: CheckedCall) -> Thing:
    call.must_exist("The domain", call.ids("domainid"), DOMAINS)
    call.must_exist("The list", call.ids("list_id"), world.lists.all(call.now))
    given: Thing = {name: value for name, value in call.params.items() if name not in ("id", "domainid") and value}
    if call.has("domainid"):
        given["domainid"] = call.id("domainid")
    return given


RULES["webhook/add"] = lambda world, call: world.webhooks.added({"domainid": 0, **_given(world, call)})
RULES["webhook/edit"] = lambda world, call: world.webhooks.edited(call, _given(world, call))
RULES["webhook/delete"] = lambda world, call: world.webhooks.deleted(call)
