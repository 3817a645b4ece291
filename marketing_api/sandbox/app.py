"""From a request to its response, without sockets: key, rate limit, faults, dispatch; and building the
accounts.

The arrival time is passed in, so that the same request at the same time gets the same response."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any, NamedTuple

from marketing_api.operation import Call, Operation
from marketing_api.operations import ALL, AREAS
from marketing_api.sandbox import responses
from marketing_api.sandbox.faults import Faults
from marketing_api.sandbox.intake import check, merge
from marketing_api.sandbox.options import Options
from marketing_api.sandbox.responses import ERRORS, Request, Response
from marketing_api.sandbox.rules import CheckedCall, Params, Refusal
from marketing_api.sandbox.seeded_account import Origin
from marketing_api.sandbox.tenant import Journal, RateReport, Tenant, Window
from marketing_api.sandbox.world import World

#: What a rule returns: for a read what stands at the declared member of `data`, or all of it where none is
#: declared; for a write the members of `data`.
Rule = Callable[[CheckedCall], Any]
#: The rule of an operation is what has its name in the module of its area.
RULES: dict[str, Rule] = {
    one.name: getattr(import_module(f"marketing_api.sandbox.{area}"), one.name.rpartition("/")[2])
    for area, operations in AREAS.items()
    for one in operations
}
#: So many of the latest requests can be looked at.
LOGGED = 50_000


class Logged(NamedTuple):
    """One request as it was received, without key and secrets; `outcome` is ok, an error code, or a fault's
    name."""

    number: int
    account: str
    operation: str
    verb: str
    params: dict[str, str]
    arrived: float
    status: int
    outcome: str


class App:
    """The accounts that the options name, with everything replayed that their journal holds; `more_paths` are
    control paths beside those of `control`."""

    more_paths: Mapping[str, Callable[..., Any]] = {}

    def __init__(self, options: Options) -> None:
        self.options = options
        self.journal = Journal(options.state) if options.state else None
        self.tenants = self.open_accounts()
        self.first = next(iter(self.tenants.values()))
        self.log: deque[Logged] = deque(maxlen=LOGGED)
        self.requests = 0
        self._strangers = Window(options.rate_limit)

    def open_accounts(self) -> dict[str, Tenant]:
        """By key."""
        return {self.options.key: self.open_account("main", self.options.seed, self.options.contacts)}

    def open_account(self, name: str, seed: int, contacts: int) -> Tenant:
        """As its journal left it."""
        options = self.options
        lines = self.journal.lines(name) if self.journal else iter(())
        base = int(time.time()) if options.now is None else options.now
        begun = next(lines, None)
        origin = Origin(**begun["origin"]) if begun else Origin(seed, contacts, base, options.timezone)
        window = Window(options.rate_limit, 2 if "rate-limit-after" in options.observed else 1)
        tenant = self._made(name, World(origin, options.now), window)
        for line in lines:
            self._replay(tenant, line)
        tenant.settle(float("inf"))
        tenant.journal = self.journal
        if begun is None:
            tenant.note(origin=asdict(origin))
        return tenant

    def _made(self, name: str, world: World, window: Window) -> Tenant:
        faults = Faults(self.options.fault_seed, self.options.faults)
        return Tenant(name, world, window, faults, self.options.observed)

    def _replay(self, tenant: Tenant, line: dict[str, Any]) -> None:
        """Carry out again what a line of the journal holds, a write at its own time."""
        if "advance" in line:
            tenant.world.advance(line["advance"])
        else:
            operation = ALL[line["operation"]]
            self._carry_out(CheckedCall(tenant, operation, line["params"], line["fields"], line["at"]))

    def respond(self, request: Request, arrived: float) -> Response:
        """The response to a request below `/1/` that was counted at `arrived` (real unix seconds)."""
        name = request.path.removeprefix("/1/").lower().rstrip("/").removesuffix(".json")
        try:
            query, body = merge(request.query, request.content_type, request.body)
        except Refusal as refusal:
            return responses.error(self.first, refusal, self._strangers.count(arrived))
        tenant, given = self.tenants.get(self._key(query, body)), {**body, **query}
        known, window = (tenant, tenant.window) if tenant else (self.first, self._strangers)
        rate, response, outcome, fault = window.count(arrived), Response(200, b""), "ok", ""
        try:
            tenant, operation = self._admit(tenant, name, rate, arrived)
            fault, has_effect = tenant.faults.draw(
                name, repr(sorted(given.items())), is_write=not operation.is_read
            )
            if has_effect:
                response = self._apply(tenant, operation, request.verb, given, arrived, rate)
        except Refusal as refusal:
            response, outcome = responses.error(known, refusal, rate), refusal.outcome
        if fault:
            response, outcome = self._break(known, fault, rate, response), fault
        self.requests += 1
        shown = Call(ALL[name], given).shown if name in ALL else given
        entry = (known.name, name, request.verb, shown, arrived, response.status, outcome)
        self.log.append(Logged(self.requests, *entry))
        return response

    def _key(self, query: Params, body: Params) -> str:
        """Wherever it is sent; it is taken out of the parameters."""
        found = [place.pop(name, "") for place in (query, body) for name in ("key", "api_key")]
        return next(filter(None, found), "").strip()

    def _admit(
        self, tenant: Tenant | None, name: str, rate: RateReport, arrived: float
    ) -> tuple[Tenant, Operation]:
        """Whose request it is, and for what; a Refusal where it comes too early, without a key, or for
        nothing that there is. Queued writes take effect."""
        if rate["reached"]:
            raise Refusal(*ERRORS["rate-limited"])
        if tenant is None:
            is_observed = self.first.observes("bad-key")
            raise Refusal(*ERRORS["unknown-key" if is_observed else "unknown"], outcome="key")
        tenant.requests += 1
        tenant.settle(arrived)
        if name not in ALL:
            raise Refusal(*ERRORS["unknown"])
        return tenant, ALL[name]

    def _apply(
        self, tenant: Tenant, operation: Operation, verb: str, given: Params, arrived: float, rate: RateReport
    ) -> Response:
        """Carry out a call by whatever verb (observation 13). Raises Refusal."""
        now, checked = tenant.world.now(), check(operation, given, tenant.observes)
        data = self._carry_out(CheckedCall(tenant, operation, *checked, now, arrived))
        return responses.success(tenant, operation, data, rate)

    def _carry_out(self, call: CheckedCall) -> Any:
        operation = call.operation
        data = RULES[operation.name](call)
        if not operation.is_read:
            shown = Call(operation, call.params).shown
            call.tenant.note(at=call.now, operation=operation.name, params=shown, fields=call.fields)
            call.tenant.settle(call.arrived)
        return data

    def _break(self, tenant: Tenant, fault: str, rate: RateReport, response: Response) -> Response:
        """The response as it arrives; what it was to be matters only where the fault has an effect."""
        if fault == "429":
            return responses.error(tenant, Refusal(*ERRORS["rate-limited"]), rate)
        if fault.startswith("500"):
            return Response(500, b"Internal Server Error", "text/plain", responses.rate_headers(rate))
        if fault == "lost-answer":
            response.mishap = "close"
        if fault == "stall":
            response.wait = self.options.stall_seconds
        return response
