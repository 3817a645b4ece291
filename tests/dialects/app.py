"""The sandbox's account, with its switches: what it is asked and answers is translated."""

import itertools
import pickle
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from msgspec.json import decode, encode

from marketing_api.operation import Operation
from marketing_api.operations import ALL
from marketing_api.sandbox import options, responses
from marketing_api.sandbox.app import App
from marketing_api.sandbox.faults import Faults
from marketing_api.sandbox.responses import RateReport, Request, Response
from marketing_api.sandbox.rules import NOT_VALID, CheckedCall, Params, Refusal
from marketing_api.sandbox.seed import WORDS
from marketing_api.sandbox.world import Origin, World
from tests.dialects.control import PATHS, WatchedSubscribers
from tests.dialects.faults import FAULTS, HOSTILE, break_response
from tests.dialects.intake import translated
from tests.dialects.payloads import TRANSLATIONS
from tests.dialects.switches import AS_OBSERVED, Switches


@dataclass(frozen=True, slots=True)
class AccountOptions:
    """One of several accounts of a sandbox."""

    name: str
    key: str
    seed: int = 1
    contacts: int = 600


@dataclass(frozen=True)
class Options(options.Options):
    """`switches` map names to positions; the key stops working after `revoke_after` requests (0: never).
    With `accounts` there is no account under `key`."""

    switches: dict[str, str] = field(default_factory=dict)
    revoke_after: int = 0
    accounts: tuple[AccountOptions, ...] = ()


class RoughWorld(World):
    """An account that behaves as its switches say."""

    switches: Switches

    def observes(self, behaviour: str) -> bool:
        position = getattr(self, "switches", AS_OBSERVED)[behaviour]
        return position == AS_OBSERVED[behaviour] or position in ("by-list", "company-id")

    def leave(self, email: str, status: int, at: int) -> None:
        """Somebody unsubscribes, or bounces."""
        subscribers = self.subscribers
        assert isinstance(subscribers, WatchedSubscribers)
        subscribers.leave(email, status, at)

    def follow_switches(self) -> None:
        """Call after a switch was set."""
        self.sync_delay_s = float(self.switches["sync-delay"])


class RoughApp(App):
    """`App` in every dialect; built of the `Options` of this module. Other accounts are apps of their own."""

    world: RoughWorld
    control_paths: Mapping[str, Callable[..., Any]] = PATHS

    def __init__(self, chosen: options.Options) -> None:
        accounts = getattr(chosen, "accounts", ())
        first = accounts[0] if accounts else AccountOptions("main", chosen.key, chosen.seed, chosen.contacts)
        self.name = first.name
        self.others = {one.key: RoughApp(_of_account(chosen, one)) for one in accounts[1:]}
        self.revoke_after = getattr(chosen, "revoke_after", 0)
        self.stall_seconds = chosen.stall_seconds
        #: Operation and address → the status that somebody has after it.
        self.leaving: dict[tuple[str, str], int] = {}
        known = {name: chance for name, chance in chosen.faults.items() if name not in HOSTILE}
        chosen_here = replace(chosen, key=first.key, seed=first.seed, contacts=first.contacts, faults=known)
        super().__init__(_of_account(chosen_here, first) if self.others else chosen_here)
        self.faults = Faults(self.options.seed, chosen.faults, FAULTS)
        self.follow_switches()

    def make_world(self, origin: Origin) -> World:
        world = _make_known(origin, self.options.now)
        world.switches = Switches(getattr(self.options, "switches", {}))
        for name, position in AS_OBSERVED.items() if self.options.as_observed else ():
            world.switches.set(name, position)
        world.follow_switches()
        WatchedSubscribers.watch(world.subscribers)
        return world

    def follow_switches(self) -> None:
        """Call after a switch was set."""
        self.world.follow_switches()
        self.window.after_s = int(self.world.switches["rate-limit-after"]) or 1

    def leave(self, email: str, status: int) -> None:
        at = self.world.now()
        self.world.leave(email, status, at)
        self.journal.append(at=at, leaves=email, status=status)

    def repeat(self, line: dict[str, Any]) -> None:
        if "leaves" in line:
            self.world.leave(line["leaves"], line["status"], line["at"])
        else:
            super().repeat(line)
        if operation := ALL.get(line.get("operation", "")):
            _note_written(CheckedCall(self.world, operation, line["params"], line["fields"], line["at"]))

    def respond(self, request: Request, arrived: float) -> Response:
        if other := self.others.get(_asked_key(request.query)):
            response = other.respond(request, arrived)
            self.requests += 1
            self.log.append(other.log.pop()._replace(number=self.requests))
            return response
        return super().respond(translated(request, self.world.moments, self.world.switches), arrived)

    def admit(self, name: str, given: Params, rate: RateReport) -> Operation:
        if 0 < self.revoke_after <= self.requests:
            given["key"] = given["api_key"] = ""
        return super().admit(name, given, rate)

    def apply(self, operation: Operation, given: Params, arrived: float, rate: RateReport) -> Response:
        world = self.world
        given = _as_asked(operation, given, world.switches)
        before = {one: len(each.activities) for one, each in world.subscribers.contacts.items()}
        try:
            response = super().apply(operation, given, arrived, rate)
        except Refusal as refusal:
            member = world.switches["contact-exists"]
            if refusal.message != "The contact already exists" or member == "refused":
                raise
            return responses.success(world, operation, {"id": "0", member: refusal.message}, rate)
        if status := self.leaving.pop((operation.name, given.get("email", "").lower()), None):
            self.leave(given["email"], status)
        if operation.name == "emailmarketing/addactivity" and world.switches.number("activity-delay"):
            _delay_activity(world, before, arrived + world.switches.number("activity-delay"))
        return response

    def carry_out(self, call: CheckedCall) -> Any:
        data, world = super().carry_out(call), call.world
        if not call.operation.is_read:
            _note_written(call)
        if not isinstance(world, RoughWorld) or not (changed := world.switches.changed):
            return data
        data = decode(encode(data))
        for name, translate in TRANSLATIONS.items():
            if name in changed:
                data = translate(call, data, world.switches)
        return data

    def fail(self, fault: str, response: Response, rate: RateReport) -> Response:
        if fault in HOSTILE:
            return break_response(self.world, fault, rate, response)
        response = super().fail(fault, response, rate)
        if fault == "stall":
            response.wait = self.stall_seconds
        return response


#: By origin and words: the first id of what is added to such a world, and all else of it.
_contents: dict[tuple[Origin, bytes], tuple[int, bytes]] = {}


def _make_known(origin: Origin, fixed: int | None) -> RoughWorld:
    """A world of that origin; one whose clock stands still is copied if there was one like it."""
    if fixed is None or origin.contacts > 300:  # copying that many takes as long as making them
        return RoughWorld(origin, fixed)
    key = origin, encode(WORDS)
    if key in _contents:
        first_id, content = _contents[key]
        world: RoughWorld = pickle.loads(content)
        world.fixed = fixed
    else:
        world = RoughWorld(origin, fixed)
        first_id = next(world.ids)
        del world.ids  # Python 3.14 can't pickle it
        _contents[key] = first_id, pickle.dumps(world)
    world.ids = itertools.count(first_id)
    return world


def _of_account(chosen: options.Options, one: AccountOptions) -> options.Options:
    state = chosen.state and chosen.state.with_name(f"{one.name}-{chosen.state.name}")
    made = replace(chosen, key=one.key, seed=one.seed, contacts=one.contacts, state=state)
    return replace(made, accounts=(one,)) if isinstance(made, Options) else made


def _asked_key(query: str) -> str:
    found = re.search(r"(?:^|&)(?:key|api_key)=([^&]*)", query)
    return found[1] if found else ""


def _as_asked(operation: Operation, given: Params, switches: Switches) -> Params:
    """The call as the product's sandbox is to understand it. Raises Refusal where the dialect does."""
    given = dict(given)
    if switches["required"] == "variants":
        needed = WORDS["required_by_a_variant"].get(operation.name, ())
        if absent := tuple(name for name in needed if not given.get(name.lower(), "").strip()):
            raise Refusal(NOT_VALID, "; ".join(f"{name} is required" for name in absent), absent)
    if switches["sender-domain"] == "verified" and operation.name.endswith(("addcampaign", "editcampaign")):
        domain = given.get("fromemail", "").rpartition("@")[2].lower()
        if domain and domain != "example.com":
            raise Refusal(NOT_VALID, "The sender domain is not verified", ("fromemail",))
    if operation.name == "emailmarketing/synccontact" and "," in given.get("listid", ""):
        if switches["sync-lists"] == "refuse":
            raise Refusal(NOT_VALID, "listid must be a number", ("listid",))
        if switches["sync-lists"] == "first":
            given["listid"] = given["listid"].partition(",")[0]
    cap = switches.number("page-cap")
    if cap and operation.is_read and (default := _PAGED.get(operation.name)):
        asked = given.get("limit", "")
        given["limit"] = str(min(int(asked) if asked.isdecimal() else default, cap))
    return given


#: Lengths of pages where the call gives none.
_PAGED = {
    "emailmarketing/campaigns": 10,
    "socialmedia/calendar": 10,
    "emailmarketing/getcontacts": 100,
    "emailmarketing/getlists": 100,
}


def _note_written(call: CheckedCall) -> None:
    """Of tags and activities, which no method of `Subscribers` adds."""
    subscribers = call.subscribers
    if call.operation.name.endswith(("tag", "addactivity")) and isinstance(subscribers, WatchedSubscribers):
        with suppress(Refusal):  # nobody was tagged
            subscribers.written.update(contact.contact_id for contact in call.contacts())


def _delay_activity(world: RoughWorld, before: dict[int, int], at: float) -> None:
    """Take what was just added away until then."""
    for one, contact in world.subscribers.contacts.items():
        if len(contact.activities) > before.get(one, 0):
            world.queue.append((at, partial(contact.activities.append, contact.activities.pop())))
