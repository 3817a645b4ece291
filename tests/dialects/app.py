"""The sandbox's accounts, each with its switches: what they are asked and answer is translated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

from msgspec.json import decode, encode

from marketing_api.operation import Effect, Operation
from marketing_api.sandbox import options, responses
from marketing_api.sandbox.app import App
from marketing_api.sandbox.faults import Faults
from marketing_api.sandbox.responses import ERRORS, Request, Response
from marketing_api.sandbox.rules import NOT_VALID, CheckedCall, Params, Refusal
from marketing_api.sandbox.seed import WORDS
from marketing_api.sandbox.tenant import RateReport, Tenant, Window
from marketing_api.sandbox.world import World
from tests.dialects.control import PATHS, WatchedSubscribers
from tests.dialects.faults import FAULTS, HOSTILE, break_response
from tests.dialects.intake import translated
from tests.dialects.payloads import TRANSLATIONS, Moments
from tests.dialects.switches import AS_OBSERVED, Switches

#: Positions that are the product's own: the switch is a part of `--as-observed`.
_OWN = {name: value for name, value in AS_OBSERVED.items() if name in options.OBSERVED}


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


class RoughTenant(Tenant):
    """An account that behaves as its switches say."""

    switches: Switches
    revoke_after = 0
    stall_seconds = 60.0
    #: Operation and address → the status that somebody has behind it.
    leaving: dict[tuple[str, str], int]

    def leave(self, email: str, status: int, at: int) -> None:
        """Somebody unsubscribes, or bounces."""
        subscribers = self.world.subscribers
        assert isinstance(subscribers, WatchedSubscribers)
        subscribers.leave(email, status, at)
        self.note(at=at, leaves=email, status=status)

    def follow_switches(self) -> None:
        """Call after a switch was set."""
        switches = self.switches
        self.observed = frozenset(name for name, value in _OWN.items() if switches[name] == value)
        if switches["email-found"] == "by-list":
            self.observed |= {"email-found"}
        if switches["channels"] == "company-id":
            self.observed |= {"channels"}
        if switches["campaign-groups"] == "observed":
            self.observed |= {"campaign-groups"}
        self.observes = self.observed.__contains__
        self.sync_delay_s = float(switches["sync-delay"])
        self.window.after_s = int(switches["rate-limit-after"]) or 1
        self.moments = Moments(self.world.origin.timezone, switches["dates"])


class RoughApp(App):
    """`App` in every dialect; built of the `Options` of this module."""

    @property
    def more_paths(self) -> Mapping[str, Callable[..., Any]]:
        return PATHS

    def _made(self, name: str, world: World, window: Window) -> Tenant:
        chosen = self.options
        tenant = RoughTenant(name, world, window, Faults(chosen.fault_seed, chosen.faults, FAULTS))
        tenant.switches = Switches(getattr(chosen, "switches", {}))
        for observed in chosen.observed:
            tenant.switches.set(observed, AS_OBSERVED[observed])
        tenant.revoke_after = getattr(chosen, "revoke_after", 0)
        tenant.stall_seconds = chosen.stall_seconds
        tenant.leaving = {}
        tenant.follow_switches()
        WatchedSubscribers.watch(world.subscribers)
        return tenant

    def open_accounts(self) -> dict[str, Tenant]:
        every = getattr(self.options, "accounts", ())
        found = {one.key: self.open_account(one.name, one.seed, one.contacts) for one in every}
        return found or super().open_accounts()

    def _replay(self, tenant: Tenant, line: dict[str, Any]) -> None:
        if "leaves" in line and isinstance(tenant, RoughTenant):
            tenant.leave(line["leaves"], line["status"], line["at"])
        else:
            super()._replay(tenant, line)

    def respond(self, request: Request, arrived: float) -> Response:
        asked = self.tenants.get(self._asked_key(request), self.first)
        has_words = isinstance(asked, RoughTenant) and asked.switches.is_on("calendar-words")
        request = translated(request, self.first.moments, has_calendar_words=has_words)
        response = super().respond(request, arrived)
        if response.kind != "application/json" or response.mishap or response.wait:
            return response
        tenant = self.tenants.get(self._asked_key(request), self.first)
        return _enveloped(tenant, response) if isinstance(tenant, RoughTenant) else response

    def _asked_key(self, request: Request) -> str:
        found = re.search(r"(?:^|&)(?:key|api_key)=([^&]*)", request.query)
        return found[1] if found else ""

    def _key(self, query: Params, body: Params) -> str:
        first = self.first
        if isinstance(first, RoughTenant) and first.switches["key-place"] == "query":
            for name in ("key", "api_key"):
                body.pop(name, None)
        return super()._key(query, body)

    def _admit(
        self, tenant: Tenant | None, name: str, rate: RateReport, arrived: float
    ) -> tuple[Tenant, Operation]:
        if isinstance(tenant, RoughTenant) and not rate["reached"]:
            if 0 < tenant.revoke_after <= tenant.requests:
                tenant.requests += 1
                tenant = None
            elif name.startswith("reputation/") and tenant.switches["reputation"] != "present":
                is_gone = tenant.switches["reputation"] == "gone"
                raise Refusal(*ERRORS["unknown" if is_gone else "unknown-key"])
        return super()._admit(tenant, name, rate, arrived)

    def _apply(
        self, tenant: Tenant, operation: Operation, verb: str, given: Params, arrived: float, rate: RateReport
    ) -> Response:
        if not isinstance(tenant, RoughTenant):
            return super()._apply(tenant, operation, verb, given, arrived, rate)
        switches = tenant.switches
        given = _as_asked(operation, verb, given, switches)
        before = {one: len(each.activities) for one, each in tenant.world.subscribers.contacts.items()}
        try:
            with ExitStack() as stack:
                if switches["unknown-ids"] == "accept":
                    stack.enter_context(patch.object(CheckedCall, "must_exist", lambda *_: None))
                response = super()._apply(tenant, operation, verb, given, arrived, rate)
        except Refusal as refusal:
            member = switches["contact-exists"]
            if refusal.message != "The contact already exists" or member == "refused":
                raise
            return responses.success(tenant, operation, {"id": "0", member: refusal.message}, rate)
        if status := tenant.leaving.pop((operation.name, given.get("email", "").lower()), None):
            tenant.leave(given["email"], status, tenant.world.now())
        if operation.name == "emailmarketing/addactivity" and switches.number("activity-delay"):
            _delay_activity(tenant, before, arrived + switches.number("activity-delay"))
        return response

    def _carry_out(self, call: CheckedCall) -> Any:
        data, tenant = super()._carry_out(call), call.tenant
        if not isinstance(tenant, RoughTenant) or not (changed := tenant.switches.changed):
            return data
        data = decode(encode(data))
        for name, translate in TRANSLATIONS.items():
            if name in changed:
                data = translate(call, data, tenant.switches)
        return data

    def _break(self, tenant: Tenant, fault: str, rate: RateReport, response: Response) -> Response:
        if fault in HOSTILE:
            return break_response(tenant, fault, rate, response)
        response = super()._break(tenant, fault, rate, response)
        if fault == "stall" and isinstance(tenant, RoughTenant):
            response.wait = tenant.stall_seconds
        return response


def _as_asked(operation: Operation, verb: str, given: Params, switches: Switches) -> Params:
    """The call as the product's sandbox is to understand it. Raises Refusal where the dialect does."""
    if (
        operation.effect is Effect.DELETE
        and switches["deletions"] == "declared"
        and verb not in (operation.method, "HEAD")
    ):
        raise Refusal(405, f"Method {verb} is not allowed")
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
    if operation.is_read and (default := _PAGED.get(operation.name)):
        if switches.is_on("limit-ignored"):
            given.pop("limit", None)
        if cap := switches.number("page-cap"):
            asked = given.get("limit", "")
            given["limit"] = str(min(int(asked) if asked.isdecimal() else default, cap))
        if switches.is_on("page-ignored"):
            given["page"] = "1"
    return given


#: Lengths of pages where the call gives none.
_PAGED = {
    "emailmarketing/campaigns": 10,
    "socialmedia/calendar": 10,
    "emailmarketing/getcontacts": 100,
    "emailmarketing/getlists": 100,
}


def _delay_activity(tenant: RoughTenant, before: dict[int, int], at: float) -> None:
    """Take what was just added away until then."""
    for one, contact in tenant.world.subscribers.contacts.items():
        if len(contact.activities) > before.get(one, 0):
            tenant.run_later(partial(contact.activities.append, contact.activities.pop()), at)


def _enveloped(tenant: RoughTenant, response: Response) -> Response:
    """What surrounds the payload, in the dialect."""
    switches = tenant.switches
    if not switches.changed & {"error-status", "rate-limit-place", "rate-limit-values", "envelope"}:
        return response
    whole = json.loads(response.body)
    is_error = whole["response"]["header"]["status"] == "error"
    if switches["rate-limit-place"] == "headers-only":
        del whole["rate-limit"]
    elif switches["rate-limit-values"] == "number":
        whole["rate-limit"] = {name: int(value) for name, value in whole["rate-limit"].items()}
    is_write = not is_error and {"item"} >= whole["response"]["data"].keys() - {"id", "post_id", "error"}
    if switches["envelope"] == "writes" and not is_error and not is_write:
        whole = whole["response"]["data"]
    if is_error and response.status == 200:
        response.status = switches.number("error-status")
    response.body = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
    return response
