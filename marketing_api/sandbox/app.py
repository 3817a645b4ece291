"""From a request to its response, without sockets: key, rate limit, faults, dispatch; and building the
accounts.

The arrival time is passed in, so that the same request at the same time gets the same response."""

import time
from collections import deque
from dataclasses import asdict

from marketing_api.operation import Call, Effect, Operation
from marketing_api.operations import ALL
from marketing_api.sandbox import (
    account,
    campaigns,
    contacts,
    goals,
    lists,
    reputation,
    responses,
    social,
    users,
    webhooks,
)
from marketing_api.sandbox.faults import Faults
from marketing_api.sandbox.intake import check, merge
from marketing_api.sandbox.options import Options
from marketing_api.sandbox.responses import Request, Response
from marketing_api.sandbox.rules import RULES, CheckedCall, Params, Payload, Refusal
from marketing_api.sandbox.seeded_account import Origin
from marketing_api.sandbox.switches import Switches
from marketing_api.sandbox.tenant import Journal, Logged, RateReport, Tenant, Window
from marketing_api.sandbox.world import World

#: Importing them declares their rules.
AREAS = (account, campaigns, contacts, goals, lists, reputation, social, users, webhooks)
#: So many of the latest requests can be looked at.
LOGGED = 50_000


class App:
    def __init__(self, tenants: list[Tenant]) -> None:
        self.tenants = {tenant.key: tenant for tenant in tenants}
        self.first = tenants[0]
        self.journal: Journal | None = None
        self.log: deque[Logged] = deque(maxlen=LOGGED)
        self.requests = 0
        self._strangers = Window(tenants[0].window.limit)

    def respond(self, request: Request, arrived: float) -> Response:
        """The response to a request below `/1/` that was counted at `arrived` (real unix seconds)."""
        path = request.path[3:].lower().rstrip("/") if request.path.startswith("/1/") else request.path
        name = "/".join(path.removesuffix(".json").split("/")[:2])  # api-observed row 53
        try:
            query, body = merge(request.query, request.content_type, request.body)
        except Refusal as refusal:
            return responses.error(self.first, refusal, self._strangers.count(arrived))
        places = (query,) if self.first.switches["key-place"] == "query" else (query, body)
        key = next((key for place in places if (key := place.get("key") or place.get("api_key"))), "").strip()
        given = {
            parameter: value
            for parameter, value in {**body, **query}.items()
            if parameter not in ("key", "api_key")
        }
        tenant, operation, fault = self.tenants.get(key), ALL.get(name), None
        known = tenant or self.first
        rate = (tenant.window if tenant else self._strangers).count(
            arrived, known.switches.number("rate-limit-after")
        )
        response, outcome = Response(200, b""), "ok"
        try:
            if rate.reached:
                raise Refusal(*responses.RATE_LIMITED)
            if tenant is None or not tenant.admits(arrived):
                outcome = "key"
                raise Refusal(
                    *(responses.UNKNOWN if known.switches["bad-key"] == "1002" else responses.UNKNOWN_KEY)
                )
            if operation is None:
                raise Refusal(*responses.UNKNOWN)
            if operation.area == "reputation" and (
                words := responses.OF_REPUTATION.get(tenant.switches["reputation"])
            ):
                raise Refusal(*words)
            if tenant.faults.chances:
                fault = tenant.faults.draw(
                    operation.name, repr(sorted(given.items())), is_write=not operation.is_read
                )
            if fault is None or fault.has_effect:
                response = self._apply(tenant, operation, request.verb, given, arrived, rate)
                self.leave(
                    tenant,
                    given.get("email", ""),
                    tenant.leaving.pop((name, given.get("email", "").lower()), None),
                )
        except Refusal as refusal:
            response = responses.error(known, refusal, rate)
            outcome = str(refusal.code) if outcome == "ok" else outcome
        if fault is not None:
            response, outcome = responses.broken(known, fault, rate, response), fault.name
        self.requests += 1
        known.outcomes[name][outcome] += 1
        shown = Call(operation, given).shown if operation else given
        self.log.append(
            Logged(self.requests, known.name, name, request.verb, shown, arrived, response.status, outcome)
        )
        return response

    def _apply(
        self, tenant: Tenant, operation: Operation, verb: str, given: Params, arrived: float, rate: RateReport
    ) -> Response:
        switches = tenant.switches
        if (
            operation.effect is Effect.DELETE
            and switches["deletions"] == "declared"
            and verb not in (operation.method, "HEAD")
        ):
            raise Refusal(405, f"Method {verb} is not allowed")
        params, fields = check(operation, given, switches)
        data = self._carry_out(
            CheckedCall(tenant, operation, params, fields, tenant.world.now(), arrived), tenant.name
        )
        return responses.success(
            tenant, data, rate, is_bare=operation.is_read and switches["envelope"] == "writes"
        )

    def _carry_out(self, call: CheckedCall, account: str) -> Payload:
        operation, data = call.operation, RULES[call.operation.name](call)
        if self.journal is not None and not operation.is_read:
            shown = Call(operation, call.params).shown
            self.journal.append(
                account, at=call.now, operation=operation.name, params=shown, fields=call.fields
            )
        return data

    def leave(self, tenant: Tenant, email: str, status: int | None) -> None:
        """Somebody unsubscribes, or bounces; nobody without a status."""
        if status is not None:
            tenant.world.subscribers.leave(email, status, now := tenant.world.now())
            if self.journal is not None:
                self.journal.append(tenant.name, at=now, leaves=email, status=status)

    def replay(self, journal: Journal) -> None:
        """Carry out again what the journal holds, each write at its own time; then it takes what is written
        from now on."""
        by_name = {tenant.name: tenant for tenant in self.tenants.values()}
        for line in journal.lines():
            tenant = by_name.get(line["account"])
            if tenant is not None and "advance" in line:
                tenant.world.advance(line["advance"])
            elif tenant is not None and "leaves" in line:
                tenant.world.subscribers.leave(line["leaves"], line["status"], line["at"])
            elif tenant is not None and "operation" in line:
                tenant.world.account.plan(line["at"])
                self._carry_out(
                    CheckedCall(
                        tenant, ALL[line["operation"]], line["params"], line["fields"], line["at"], 0.0
                    ),
                    tenant.name,
                )
        for tenant in by_name.values():
            tenant.settle(float("inf"))
        self.journal = journal


def build(options: Options) -> App:
    """The accounts that the options name, with everything replayed that their journal holds."""
    journal = Journal(options.state) if options.state else None
    begun = (
        {line["account"]: Origin(**line["origin"]) for line in journal.lines() if "origin" in line}
        if journal
        else {}
    )
    base = int(time.time()) if options.now is None else options.now
    tenants = []
    for one in options.every_account:
        if (origin := begun.get(one.name)) is None:
            origin = Origin(one.seed, one.contacts, base, options.timezone)
            if journal is not None:
                journal.append(one.name, origin=asdict(origin))
        world, switches = World(origin, options.now), Switches(options.switches)
        faults = Faults(options.fault_seed, options.stall_seconds, options.faults)
        tenants.append(
            Tenant(
                one.name, one.key, world, Window(options.rate_limit), switches, faults, options.revoke_after
            )
        )
    app = App(tenants)
    if journal is not None:
        app.replay(journal)
    return app
