"""Control paths that only tests need: switches, people who leave, and the truth about what was written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from marketing_api.sandbox import control
from marketing_api.sandbox.rules import Params
from marketing_api.sandbox.subscribers import BOUNCED, UNSUBSCRIBED, Contact, Subscribers

if TYPE_CHECKING:
    from tests.dialects.app import RoughApp


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
    #: Ids of those that a write has changed.
    written: set[int]

    @classmethod
    def watch(cls, subscribers: Subscribers) -> None:
        subscribers.__class__ = cls
        assert isinstance(subscribers, cls)
        subscribers.changes = []
        subscribers.written = set()

    def add(self, contact: Contact) -> None:
        self._note(contact.email, contact.list_id, contact.contact_id, contact.status, contact.registered_at)
        super().add(contact)
        self.written.add(contact.contact_id)

    def edit(
        self,
        contact: Contact,
        now: int,
        email: str,
        status: int | None,
        values: dict[str, str],
    ) -> None:
        if status is not None and status != contact.status_at(now):
            self._note(contact.email, contact.list_id, contact.contact_id, status, now)
        super().edit(contact, now, email, status, values)
        self.written.add(contact.contact_id)

    def move(self, contact: Contact, where: int, now: int) -> None:
        self._note(contact.email, where, contact.contact_id, contact.status_at(now), now)
        super().move(contact, where, now)
        self.written.add(contact.contact_id)

    def delete(self, contact: Contact, now: int) -> None:
        super().delete(contact, now)
        self.written.add(contact.contact_id)

    def leave(self, email: str, status: int, now: int) -> None:
        """The person unsubscribes, or the address bounces, on every list: no write of ours."""
        for contact in self.by_email(email, now):
            contact.set_status(status, now)
            self.written.add(contact.contact_id)

    def _note(self, email: str, where: int, contact_id: int, status: int, now: int) -> None:
        folded = email.lower()
        every = [
            one for one in self.contacts.values() if one.email.lower() == folded and one.registered_at <= now
        ]
        there = [contact for contact in every if contact.exists(now)]
        before = tuple(one.status_at(now) for one in there if one.list_id == where)
        elsewhere = tuple(one.status_at(now) for one in there if one.list_id != where)
        deleted = (one for one in every if one.contact_id in self.written and not one.exists(now))
        gone = tuple(one.status for one in deleted if one.list_id == where)
        self.changes.append(Change(email.lower(), where, contact_id, before, elsewhere, gone, status))


def switches(app: RoughApp, params: Params, real: float) -> Any:
    """`name=value…`: set switches; shows all of them."""
    for name, value in params.items():
        app.world.switches.set(name, value)
    app.follow_switches()
    return app.world.switches


def faults(app: RoughApp, params: Params, real: float) -> Any:
    """Those of the product, `stall-seconds=5` and `revoke-after=10`."""
    app.stall_seconds = float(params.pop("stall-seconds", app.stall_seconds))
    if more := params.pop("revoke-after", ""):
        app.revoke_after = app.requests + int(more)
    if "off" in params:
        app.revoke_after = 0
    return control.faults(app, params, real)


def state(app: RoughApp, params: Params, real: float) -> Any:
    """The account: its time, how many contacts there are on each list, and the sub-accounts."""
    now = app.world.now()
    lists = app.world.find_things("list", now)
    counts = {list_id: len(app.world.subscribers.on_list(list_id, now)) for list_id in lists}
    businesses = app.world.find_things("sub-account", now)
    return {
        "now": now,
        "contacts": sum(counts.values()),
        "contacts_by_list": counts,
        "requests": app.requests,
        "sub_accounts": {wanted: one["name"] for wanted, one in businesses.items()},
    }


def leave(app: RoughApp, params: Params, real: float) -> Any:
    """`email=…`, `status=unsubscribed` (or `bounced`): somebody leaves all lists, at once or right behind the
    next response of `after=emailmarketing/getcontactbyemail` (or another operation) about the address; shows
    who is still to leave."""
    email = params["email"]
    status = {"unsubscribed": UNSUBSCRIBED, "bounced": BOUNCED}[params.get("status", "unsubscribed")]
    if after := params.get("after"):
        app.leaving[after, email.lower()] = status
    else:
        app.leave(email, status)
    return [email for _, email in app.leaving]


def statuses(app: RoughApp, params: Params, real: float) -> Any:
    """What writes have made of statuses, oldest first, those after number `since=0`."""
    subscribers = app.world.subscribers
    assert isinstance(subscribers, WatchedSubscribers)
    changes = subscribers.changes
    return {
        "changes": len(changes),
        "items": [one._asdict() for one in changes[int(params.get("since", 0)) :]],
    }


def written(app: RoughApp, params: Params, real: float) -> Any:
    """What writes have made of contacts, by id, whatever the switches show; and the queued writes."""
    app.world.settle(real)
    subscribers = app.world.subscribers
    assert isinstance(subscribers, WatchedSubscribers)
    now, contacts = app.world.now(), dict[int, Any]()
    for contact_id, contact in sorted(app.world.subscribers.contacts.items()):
        if contact_id in subscribers.written:  # None in place of one that was deleted
            contacts[contact_id] = _truth(contact, now) if contact.exists(now) else None
    return {"account": app.name, "queued": len(app.world.queue), "contacts": contacts}


def _truth(contact: Contact, now: int) -> dict[str, Any]:
    return {
        "list_id": contact.list_id,
        "email": contact.email,
        "status": contact.status_at(now),
        "values": {name: value for name, value in contact.values.items() if value},
        "tags": sorted(contact.tags),
        "activities": contact.activities,  # (unix seconds, description), in order of writing
    }


def _of_account(handle: Callable[..., Any]) -> Callable[..., Any]:
    """With `account=…` for that account, else for all; shows the first one."""

    def respond(app: RoughApp, params: Params, real: float) -> Any:
        name = params.pop("account", "")
        meant = [one for one in (app, *app.others.values()) if name in ("", one.name)]
        shown = [handle(one, dict(params), real) for one in meant]
        return shown[0]

    return respond


PATHS: Mapping[str, Callable[..., Any]] = {
    name: _of_account(handle)
    for name, handle in {
        **control.PATHS,
        **{one.__name__: one for one in (switches, faults, state, leave, statuses, written)},
    }.items()
}
