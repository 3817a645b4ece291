"""Control paths that only tests need: switches, people who leave, and the truth about what was written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from marketing_api.sandbox import control
from marketing_api.sandbox.app import App
from marketing_api.sandbox.rules import Params
from marketing_api.sandbox.subscribers import BOUNCED, UNSUBSCRIBED, Contact, Subscribers

if TYPE_CHECKING:
    from tests.dialects.app import RoughTenant


class Change(NamedTuple):
    """A write that gave somebody a status on a list. `before`: those of everybody with the address there;
    `elsewhere`: on other lists; `gone`: the last ones of those who were deleted from it."""

    email: str
    list_id: int
    contact_id: int
    before: tuple[int, ...]
    elsewhere: tuple[int, ...]
    gone: tuple[int, ...]
    after: int


class WatchedSubscribers(Subscribers):
    """Contacts of whom every change of a status by a write is noted, oldest first."""

    changes: list[Change]

    @classmethod
    def watch(cls, subscribers: Subscribers) -> None:
        subscribers.__class__ = cls
        assert isinstance(subscribers, cls)
        subscribers.changes = []

    def add(
        self, where: int, email: str, status: int, now: int, values: dict[str, str], reserved: int = 0
    ) -> int:
        at = len(self.changes)
        self._note(email, where, reserved, status, now)
        new = super().add(where, email, status, now, values, reserved)
        self.changes[at] = self.changes[at]._replace(contact_id=new)
        return new

    def edit(
        self,
        contact: Contact,
        now: int,
        email: str = "",
        status: int | None = None,
        values: dict[str, str] | None = None,
    ) -> None:
        if status is not None and status != contact.status_at(now):
            self._note(contact.email, contact.list_id, contact.contact_id, status, now)
        super().edit(contact, now, email, status, values)

    def move(self, contact: Contact, where: int, now: int) -> None:
        self._note(contact.email, where, contact.contact_id, contact.status_at(now), now)
        super().move(contact, where, now)

    def leave(self, email: str, status: int, now: int) -> None:
        """The person unsubscribes, or the address bounces, on every list: no write of ours."""
        for contact in self.by_email(email, now):
            self._quiet(contact, status, now)

    def _note(self, email: str, where: int, contact_id: int, status: int, now: int) -> None:
        every = [one for one in self._by_email.get(email.lower(), ()) if one.registered_at <= now]
        there = [contact for contact in every if contact.exists(now)]
        before = tuple(one.status_at(now) for one in there if one.list_id == where)
        elsewhere = tuple(one.status_at(now) for one in there if one.list_id != where)
        deleted = (one for one in every if one.is_written and not one.exists(now))
        gone = tuple(one.status for one in deleted if one.list_id == where)
        self.changes.append(Change(email.lower(), where, contact_id, before, elsewhere, gone, status))


def _only(app: App, params: Params) -> RoughTenant:
    tenant: Any = next(control.meant(app, params))
    return tenant  # type: ignore[no-any-return]


def switches(app: App, params: Params, real: float) -> Any:
    """`name=value…`: set switches; shows all of them."""
    tenant = _only(app, params)
    for name, value in params.items():
        tenant.switches.set(name, value)
    tenant.follow_switches()
    return {tenant.name: tenant.switches}


def faults(app: App, params: Params, real: float) -> Any:
    """Those of the product, `stall-seconds=5` and `revoke-after=10`."""
    tenant = _only(app, dict(params))
    tenant.stall_seconds = float(params.pop("stall-seconds", tenant.stall_seconds))
    if more := params.pop("revoke-after", ""):
        tenant.revoke_after = tenant.requests + int(more)
    if "off" in params:
        tenant.revoke_after = 0
    return control.faults(app, params, real)


def state(app: App, params: Params, real: float) -> Any:
    """What the product shows, and the sub-accounts."""
    tenant = _only(app, dict(params))
    businesses = tenant.world.shelves["sub-account"].all(tenant.world.now())
    shown: dict[str, Any] = control.state(app, params, real)
    return shown | {"sub_accounts": {wanted: one["name"] for wanted, one in businesses.items()}}


def leave(app: App, params: Params, real: float) -> Any:
    """`email=…`, `status=unsubscribed` (or `bounced`): somebody leaves all lists, at once or right behind the
    next response of `after=emailmarketing/getcontactbyemail` (or another operation) about the address; shows
    who is still to leave."""
    tenant, email = _only(app, params), params["email"]
    status = {"unsubscribed": UNSUBSCRIBED, "bounced": BOUNCED}[params.get("status", "unsubscribed")]
    if after := params.get("after"):
        tenant.leaving[after, email.lower()] = status
    else:
        tenant.leave(email, status, tenant.world.now())
    return {tenant.name: [email for _, email in tenant.leaving]}


def statuses(app: App, params: Params, real: float) -> Any:
    """What writes have made of statuses, oldest first, those after number `since=0`."""
    subscribers = _only(app, params).world.subscribers
    assert isinstance(subscribers, WatchedSubscribers)
    changes = subscribers.changes
    return {
        "changes": len(changes),
        "items": [one._asdict() for one in changes[int(params.get("since", 0)) :]],
    }


def written(app: App, params: Params, real: float) -> Any:
    """What writes have made of contacts, by contact id: the truth, whatever the switches show; and how many
    writes are still queued."""
    tenant = _only(app, params)
    tenant.settle(real)
    now, contacts = tenant.world.now(), dict[int, Any]()
    for contact_id, contact in sorted(tenant.world.subscribers.contacts.items()):
        if contact.is_written:  # None in place of one that was deleted
            contacts[contact_id] = _truth(contact, now) if contact.exists(now) else None
    return {"account": tenant.name, "queued": len(tenant.pending), "contacts": contacts}


def _truth(contact: Contact, now: int) -> dict[str, Any]:
    return {
        "list_id": contact.list_id,
        "email": contact.email,
        "status": contact.status_at(now),
        "values": contact.values_at(now),
        "tags": sorted(contact.tags),
        "activities": contact.activities,  # (unix seconds, description), in order of writing
    }


PATHS: Mapping[str, Callable[..., Any]] = {
    one.__name__: one for one in (switches, faults, state, leave, statuses, written)
}
