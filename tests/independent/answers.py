"""What a read operation answers: the member(s) of `data`, from the account and the variants. One pure
function per operation.

Belongs here: the registry, and the areas with one or two operations (app, user, goal, webhook). The others
are in `answers_AREA`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .account import Account, Goal, Webhook
from .shape import Params, ServiceFault, Shape, number
from .variants import Variants


@dataclass
class World:
    account: Account
    variants: Variants

    @property
    def shape(self) -> Shape:
        return Shape(self.variants, self.account.zone)


Answer = Callable[[World, Params], dict[str, Any]]
READS: dict[str, Answer] = {}


def read(name: str) -> Callable[[Answer], Answer]:
    def register(function: Answer) -> Answer:
        READS[name] = function
        return function

    return register


@read("app/me")
def me(world: World, params: Params) -> dict[str, Any]:
    mine, s = world.account.business, world.shape
    names = (
        ("businessname", "contactname")
        if world.variants.lowercase_business
        else ("businessName", "contactName")
    )
    found = s.entry(
        id=s.num(mine.business_id),
        phoneNumber=mine.phone,
        serviceName=mine.service_name,
        package=mine.package,
    )
    found |= dict(zip(names, (mine.name, mine.contact), strict=True))
    if world.account.zone_name:
        found["timezone"] = world.account.zone_name
    return {"business": found}


@read("user/lists")
def users(world: World, params: Params) -> dict[str, Any]:
    s, only = world.shape, number(params, "businessid", 0)
    items: dict[str, Any] = {}
    for user in world.account.users:
        if only in (0, user.business_id):
            shown = s.entry(fullname=user.full_name, username=user.username, status=user.status)
            shown |= {"group": user.group} if user.group else {}
            items.setdefault(str(user.business_id), {"users": {}})["users"][str(user.user_id)] = shown
    count = sum(len(item["users"].keys()) for item in items.values())
    return {"users": s.listing(s.obj(items), count)}


@read("user/managers")
def managers(world: World, params: Params) -> dict[str, Any]:
    s = world.shape
    items = [
        s.entry(id=s.num(m.manager_id), fullname=m.full_name, email=m.email, status=m.status)
        for m in world.account.managers
    ]
    return {"users": s.listing(s.rows(items), len(items))}


@read("user/groups")
def groups(world: World, params: Params) -> dict[str, Any]:
    s = world.shape
    items = [
        s.entry(id=s.num(group.group_id), name=group.name, status=group.status)
        for group in world.account.groups
    ]
    return {"groups": s.listing(s.rows(items), len(items))}


def _goal(world: World, goal: Goal, *, thin: bool) -> dict[str, Any]:
    s = world.shape
    shown = s.entry(id=s.num(goal.goal_id), name=goal.name, type=goal.type)
    if thin:
        return shown
    value = float(goal.value) if world.variants.numbers else f"{goal.value:.4f}"
    action = {"id": s.num(goal.action[0]), "name": goal.action[1]} if goal.action else {}
    return shown | {
        "goal_value": {"type": goal.value_type, "value": value},
        "event_type": goal.event_type,
        "event_link_rule": goal.rule,
        "links": s.rows(list(goal.links), nested=True),
        "has_action": s.flag(goal.action is not None, ("No", "Yes")),
        "action": s.obj(action),
    }


def _goals(world: World, domain: int | None) -> dict[str, Any]:
    found = [goal for goal in world.account.goals if domain in (None, goal.domain_id)]
    items = [_goal(world, goal, thin=world.variants.thin_listings) for goal in found]
    return {"goals": world.shape.listing(world.shape.rows(items), len(items))}


@read("goal/lists")
def goals(world: World, params: Params) -> dict[str, Any]:
    return _goals(world, None)


@read("goal/listbydomain")
def goals_by_domain(world: World, params: Params) -> dict[str, Any]:
    return _goals(world, number(params, "domainid"))


@read("goal/show")
def goal(world: World, params: Params) -> dict[str, Any]:
    wanted = number(params, "id")
    for each in world.account.goals:
        if each.goal_id == wanted:
            return {"goal": _goal(world, each, thin=False)}
    raise ServiceFault(1004, "The goal was not found")


def _webhook(world: World, hook: Webhook, *, thin: bool) -> dict[str, Any]:
    s = world.shape
    shown = s.entry(id=s.num(hook.webhook_id), name=hook.name, type=hook.type)
    if thin:
        return shown
    delay = dict(zip(("hours", "minutes", "seconds"), map(s.num, hook.delay), strict=True))
    rules = {
        "execute_for": hook.execute_for,
        "device_filter": hook.device_filter,
        "interval": hook.interval,
        "delay": delay,
    }
    return shown | {
        "domain_id": s.num(hook.domain_id or 0),
        "url": {"filter": hook.url_filter, "link": hook.url_link},
        "action_type": hook.action_type,
        "action_rules": rules,
        "action_stype": hook.style,
    }


@read("webhook/lists")
def webhooks(world: World, params: Params) -> dict[str, Any]:
    items = [_webhook(world, hook, thin=world.variants.thin_listings) for hook in world.account.webhooks]
    return {"webhooks": world.shape.listing(world.shape.rows(items), len(items))}


@read("webhook/show")
def webhook(world: World, params: Params) -> dict[str, Any]:
    wanted = number(params, "id")
    for each in world.account.webhooks:
        if each.webhook_id == wanted:
            return {"webhook": _webhook(world, each, thin=False)}
    raise ServiceFault(1004, "The webhook was not found")
