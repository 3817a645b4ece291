"""The control paths under `/sandbox`: the clock, faults, the truth for tests, and what was
received.

They lie outside `/1`, need no key and count towards no limit. Responses are plain JSON without an
envelope."""

import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec.json import encode

from marketing_api.sandbox.app import App
from marketing_api.sandbox.responses import Request, Response
from marketing_api.sandbox.rules import Params
from marketing_api.sandbox.subscribers import BOUNCED, UNSUBSCRIBED
from marketing_api.sandbox.tenant import Tenant


@dataclass
class Asked:
    """A control request to one account; `real` is its time in unix seconds."""

    app: App
    tenant: Tenant
    params: Params
    real: float

    def number(self, name: str, default: int) -> int:
        return int(self.params.get(name, default))


def respond_to_control(app: App, request: Request, real: float) -> Response:
    """400 with `error` when the request makes no sense, 404 for an unknown path."""
    params = dict(urllib.parse.parse_qsl(f"{request.query}&{request.body.decode()}"))
    path = request.path.removeprefix("/sandbox").strip("/")
    paths = getattr(app, "control_paths", PATHS)
    if path not in paths:
        return Response(404, encode({"error": "unknown", "paths": [f"/sandbox/{path}" for path in paths]}))
    try:
        name = params.pop("account", "")
        asked = [Asked(app, one, params, real) for one in app.tenants.values() if name in ("", one.name)]
        if not asked:
            raise ValueError(f"there is no account {name}")
        for each in asked:
            each.tenant.settle(real)
        handle = paths[path]
        is_one = handle in _OF_ONE
        found = handle(asked[0]) if is_one else {each.tenant.name: handle(each) for each in asked}
        return Response(200, encode(found))
    except (ValueError, KeyError) as problem:
        return Response(400, encode({"error": str(problem)}))


def advance(asked: Asked) -> Any:
    """`days=1` (may be a fraction): let time pass; queued writes take effect."""
    days = float(asked.params.get("days", "1"))
    if days < 0:
        raise ValueError("time does not run backwards")
    asked.tenant.advance(days, asked.real)
    return {"now": asked.tenant.world.now()}


def faults(asked: Asked) -> Any:
    """`name=probability[@operations]…`, `rate-limit=10`, `off=1` for none; shows all that are on."""
    tenant = asked.tenant
    for name, value in asked.params.items():
        match name:
            case "off":
                tenant.faults.chances.clear()
            case "rate-limit":
                tenant.window.limit = int(value)
            case _:
                tenant.faults.set(name, value)
    return {name: str(chance) for name, chance in tenant.faults.chances.items()}


def leave(asked: Asked) -> Any:
    """`email=…`, `status=unsubscribed` (or `bounced`): somebody leaves all lists, at once or right behind the
    next response of `after=emailmarketing/getcontactbyemail` (or another operation) about the address; shows
    who is still to leave."""
    tenant, email = asked.tenant, asked.params["email"]
    status = {"unsubscribed": UNSUBSCRIBED, "bounced": BOUNCED}[asked.params.get("status", "unsubscribed")]
    if after := asked.params.get("after"):
        tenant.leaving[after, email.lower()] = status
    else:
        tenant.leave(email, status, tenant.world.now())
    return [email for _, email in tenant.leaving]


def statuses(asked: Asked) -> Any:
    """What writes have made of statuses, oldest first, those after number `since=0`: whose on which list,
    `before` of those with the address there, `elsewhere` on other lists and of those `gone`, and `after`."""
    changes = asked.tenant.world.subscribers.changes
    shown = [change._asdict() for change in changes[asked.number("since", 0) :]]
    return {"changes": len(changes), "items": shown}


def state(asked: Asked) -> Any:
    """The truth of one account: how many contacts there are, its sub-accounts, requests by operation and
    outcome."""
    tenant, world = asked.tenant, asked.tenant.world
    now = world.now()
    lists, businesses = (world.shelves[kind].all(now) for kind in ("list", "sub-account"))
    counted = {wanted: len(world.subscribers.on_list(wanted, now)) for wanted in lists}
    return {
        "now": now,
        "start": world.start,
        "timezone": world.origin.timezone,
        "seed": world.origin.seed,
        "contacts": sum(counted.values()),
        "contacts_by_list": counted,
        "sub_accounts": {wanted: each["name"] for wanted, each in businesses.items()},
        "account": tenant.name,
        "requests": sum(one.total() for one in tenant.outcomes.values()),
        "outcomes": tenant.outcomes,
    }


def written(asked: Asked) -> Any:
    """What writes have made of contacts, by contact id: the truth, and how many writes are
    still queued."""
    tenant, subscribers = asked.tenant, asked.tenant.world.subscribers
    now, contacts = tenant.world.now(), dict[int, Any]()
    for contact_id, contact in sorted(subscribers.contacts.items()):
        if contact.is_written and contact.exists(now):
            contacts[contact_id] = {
                "list_id": contact.list_id,
                "email": contact.email,
                "status": contact.status_at(now),
                "values": contact.values_at(now),
                "tags": sorted(contact.tags),
                "activities": contact.activities,  # (unix seconds, description), in order of writing
            }
        elif contact.is_written:  # it was deleted
            contacts[contact_id] = None
    return {"account": tenant.name, "queued": len(tenant.pending), "contacts": contacts}


def log(asked: Asked) -> Any:
    """Requests received (the last 50,000), oldest first: those after number `since=0`, at most
    `limit=1000`."""
    since, limit = asked.number("since", 0), asked.number("limit", 1000)
    found = [one._asdict() for one in asked.app.log if one.number > since]
    return {"requests": asked.app.requests, "items": found[:limit]}


_OF_ONE: tuple[Callable[[Asked], Any], ...] = (state, written, log, statuses)
#: The others are about every account, unless one is named.
PATHS = {handle.__name__: handle for handle in (advance, faults, *_OF_ONE[:3], leave, statuses)}
