"""From a request to its response, without sockets: key, rate limit, faults, dispatch; and building the accounts.

The arrival time is passed in, so that the same request at the same time gets the same response."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass

from marketing_api.operation import Call, Effect, Operation
from marketing_api.operations import ALL
from marketing_api.sandbox import account, campaigns, contacts, goals, lists, reputation, social, timelines, users, webhooks
from marketing_api.sandbox.faults import Faults
from marketing_api.sandbox.intake import Params, check, merge
from marketing_api.sandbox.options import AccountOptions, Options
from marketing_api.sandbox.responses import (
    Request,
    Response,
    as_xml,
    broken,
    error,
    failure,
    rate_limited,
    success,
    unavailable,
    unknown_key,
)
from marketing_api.sandbox.rules import RULES, CheckedCall, Payload, Refusal
from marketing_api.sandbox.switches import Switches
from marketing_api.sandbox.tenant import Journal, Logged, RateReport, Tenant, Window
from marketing_api.sandbox.world import Clock, Origin, World

#: Importing them declares their rules.
AREAS = (account, campaigns, contacts, goals, lists, reputation, social, timelines, users, webhooks)
#: So many of the latest requests can be looked at.
LOGGED = 50_000


@dataclass(slots=True)
class _Incoming:
    """A request below `/1/` to an account, with its parameters but the key; `operation` is None where the name is unknown."""

    operation: Operation | None
    name: str
    verb: str
    given: Params
    arrived: float
    rate: RateReport
    is_xml: bool


class App:
    """Every account of one server."""

    def __init__(self, tenants: list[Tenant], journal: Journal | None = None) -> None:
        self.tenants = {tenant.key: tenant for tenant in tenants}
        self.first = tenants[0]
        self.journal = journal
        self.log: deque[Logged] = deque(maxlen=LOGGED)
        self.requests = 0
        self._strangers = Window(tenants[0].window.limit)

    def respond(self, request: Request, arrived: float) -> Response:
        """The response to a request below `/1/` that was counted at `arrived` (real unix seconds)."""
        path = request.path[3:].lower().rstrip("/") if request.path.startswith("/1/") else request.path
        name = path.removesuffix(".json").removesuffix(".xml")
        try:
            query, body = merge(request.query, request.content_type, request.body)
        except Refusal as refusal:
            return error(self.first, refusal, self._strangers.count(arrived))
        given = {**body, **query}
        tenant = self.tenants.get(self._key(query, body))
        for secret in ("key", "api_key"):
            given.pop(secret, None)
        known = tenant or self.first
        rate = (tenant.window if tenant else self._strangers).count(arrived, known.switches.number("rate-limit-after"))
        incoming = _Incoming(ALL.get(name), name, request.verb, given, arrived, rate, path.endswith(".xml"))
        if rate.reached:
            response, outcome = rate_limited(known, rate), "429"
        elif tenant is None:
            response, outcome = unknown_key(known, rate), "key"
        else:
            response, outcome = self._with_faults(tenant, incoming)
        self._note(known, incoming, response.status, outcome)
        return as_xml(response) if incoming.is_xml else response

    def _key(self, query: Params, body: Params) -> str:
        places = (query,) if self.first.switches["key-place"] == "query" else (query, body)
        return next((key for place in places if (key := place.get("key") or place.get("api_key"))), "").strip()

    def _note(self, tenant: Tenant, incoming: _Incoming, status: int, outcome: str) -> None:
        shown = Call(incoming.operation, incoming.given).shown if incoming.operation else incoming.given
        self.requests += 1
        tenant.outcomes[incoming.name][outcome] += 1
        self.log.append(Logged(self.requests, tenant.name, incoming.name, incoming.verb, shown, incoming.arrived, status, outcome))

    def _with_faults(self, tenant: Tenant, incoming: _Incoming) -> tuple[Response, str]:
        operation, rate = incoming.operation, incoming.rate
        tenant.requests += 1
        tenant.settle(incoming.arrived)
        if tenant.is_revoked:
            return unknown_key(tenant, rate), "key"
        if operation is None or (operation.area == "reputation" and tenant.switches["reputation"] == "gone"):
            return unavailable(tenant, rate), "1002"
        fault = None
        if tenant.faults.chances:
            fault = tenant.faults.draw(operation.name, repr(sorted(incoming.given.items())), is_write=not operation.is_read)
        if fault is not None and not fault.has_effect:
            return failure(tenant, fault, rate), fault.name
        try:
            response, outcome = self._apply(tenant, operation, incoming), "ok"
        except Refusal as refusal:
            response, outcome = error(tenant, refusal, rate), str(refusal.code)
        if fault is None:
            return response, outcome
        return broken(tenant, fault, as_xml(response) if incoming.is_xml else response), fault.name

    def _apply(self, tenant: Tenant, operation: Operation, incoming: _Incoming) -> Response:
        verb, switches = incoming.verb, tenant.switches
        if operation.effect is Effect.DELETE and switches["deletions"] == "declared" and verb not in (operation.method, "HEAD"):
            raise Refusal(405, f"Method {verb} is not allowed")
        params, fields = check(operation, incoming.given, switches)
        data = self.carry_out(tenant, operation, params, fields, tenant.world.now(), incoming.arrived)
        return success(tenant, data, incoming.rate, is_bare=operation.is_read and switches["envelope"] == "writes")

    def carry_out(self, tenant: Tenant, operation: Operation, params: Params, fields: Params, now: int, arrived: float) -> Payload:
        """Apply an operation's rule; a write that took place is journalled."""

        def later(seconds: int, action: Callable[[], None]) -> None:
            if seconds:
                tenant.pending.append((arrived + seconds, action))
            else:
                action()

        data = RULES[operation.name](tenant.world, CheckedCall(operation, params, now, tenant.switches, tenant.moments, fields, later))
        if self.journal is not None and not operation.is_read:
            shown = Call(operation, params).shown
            self.journal.append(tenant.name, at=now, operation=operation.name, params=shown, fields=fields)
        return data

    def replay(self, journal: Journal) -> None:
        """Carry out again what the journal holds, each write at its own time."""
        by_name = {tenant.name: tenant for tenant in self.tenants.values()}
        journal.is_replaying = True
        for line in journal.lines():
            tenant = by_name.get(line["account"])
            if tenant is not None and "advance" in line:
                tenant.world.clock.advance(line["advance"])
            elif tenant is not None and "operation" in line:
                tenant.world.account.plan(line["at"])
                self.carry_out(tenant, ALL[line["operation"]], line["params"], line["fields"], line["at"], 0.0)
        for tenant in by_name.values():
            tenant.settle(float("inf"))
        journal.is_replaying = False


def build(options: Options) -> App:
    """The accounts that the options name, with everything replayed that their journal holds."""
    journal = Journal(options.state) if options.state else None
    app = App([_tenant(options, one, journal) for one in options.every_account], journal)
    if journal is not None:
        app.replay(journal)
    return app


def _tenant(options: Options, account: AccountOptions, journal: Journal | None) -> Tenant:
    faults = Faults(options.fault_seed, options.stall_seconds)
    for name, chance in options.faults.items():
        faults.set(name, chance)
    world = World(_origin(options, account, journal), Clock(options.now))
    window, switches = Window(options.rate_limit), Switches(options.switches)
    return Tenant(account.name, account.key, world, window, switches, faults, options.revoke_after)


def _origin(options: Options, account: AccountOptions, journal: Journal | None) -> Origin:
    """What the account was started from when it was first journalled, or what the options say."""
    for line in journal.lines() if journal else ():
        if line["account"] == account.name and "origin" in line:
            return Origin(**line["origin"])
    base = int(time.time()) if options.now is None else options.now
    origin = Origin(account.seed, account.contacts, base, options.timezone)
    if journal is not None:
        journal.append(account.name, origin=asdict(origin))
    return origin
