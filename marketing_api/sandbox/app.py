"""From a request to its reply, without sockets: key, rate limit, faults, dispatch.

The arrival time is passed in, so that the same request at the same time gets the same reply. Not here: how the reply looks
(`replies`) and travels (`server`), what an operation means (`AREA.py`), the control paths (`control`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from marketing_api.operation import Call as ServiceCall
from marketing_api.operation import Effect, Operation
from marketing_api.operations import ALL
from marketing_api.sandbox.areas import RULES
from marketing_api.sandbox.call import Call, Payload, Refusal
from marketing_api.sandbox.intake import check, merge
from marketing_api.sandbox.replies import Reply, Request, answered, as_xml, failed, limited, refused, spoilt, unavailable, unknown_key
from marketing_api.sandbox.tenant import Journal, Logged, RateReport, Tenant, Window

#: So many of the latest requests can be looked at.
LOGGED = 50_000


class App:
    """Every account of one server."""

    def __init__(self, tenants: list[Tenant], journal: Journal | None = None) -> None:
        self.tenants = {tenant.key: tenant for tenant in tenants}
        self.first = tenants[0]
        self.journal = journal
        self.log: deque[Logged] = deque(maxlen=LOGGED)
        self.requests = 0
        self._strangers = Window(tenants[0].window.limit)

    def answer(self, request: Request, arrived: float) -> Reply:
        """The reply to a request below `/1/` that was counted at `arrived` (real unix seconds)."""
        name = request.path[3:].lower().rstrip("/") if request.path.startswith("/1/") else request.path
        name, is_xml = name.removesuffix(".json").removesuffix(".xml"), name.endswith(".xml")
        try:
            query, body = merge(request.query, request.content_type, request.body)
        except Refusal as refusal:
            return refused(self.first, refusal, self._strangers.count(arrived))
        given = {**body, **query}
        key = self._key(query, body)
        for secret in ("key", "api_key"):
            given.pop(secret, None)
        tenant = self.tenants.get(key)
        known = tenant or self.first
        window = tenant.window if tenant else self._strangers
        rate = window.count(arrived, known.switches.number("rate-limit-after"))
        operation = ALL.get(name)
        if rate.reached:
            reply, outcome = limited(known, rate), "429"
        elif tenant is None:
            reply, outcome = unknown_key(known, rate), "key"
        else:
            reply, outcome = self._with_faults(tenant, operation, request.verb, given, rate, arrived, is_xml=is_xml)
        self._note(known, operation, name, request.verb, given, arrived, reply.status, outcome)
        return as_xml(reply) if is_xml else reply

    def _key(self, query: Mapping[str, str], body: Mapping[str, str]) -> str:
        key = query.get("key") or query.get("api_key")
        if not key and self.first.switches["key-place"] == "any":
            key = body.get("key") or body.get("api_key")
        return (key or "").strip()

    def _note(
        self,
        tenant: Tenant,
        operation: Operation | None,
        name: str,
        verb: str,
        given: dict[str, str],
        arrived: float,
        status: int,
        outcome: str,
    ) -> None:
        shown = ServiceCall(operation, given).shown if operation else given
        self.requests += 1
        tenant.outcomes[name][outcome] += 1
        self.log.append(Logged(self.requests, tenant.name, name, verb, shown, arrived, status, outcome))

    def _with_faults(
        self,
        tenant: Tenant,
        operation: Operation | None,
        verb: str,
        given: dict[str, str],
        rate: RateReport,
        arrived: float,
        *,
        is_xml: bool,
    ) -> tuple[Reply, str]:
        tenant.asked += 1
        tenant.settle(arrived)
        if tenant.is_revoked:
            return unknown_key(tenant, rate), "key"
        if operation is None or (operation.area == "reputation" and tenant.switches["reputation"] == "gone"):
            return unavailable(tenant, rate), "1002"
        fault = (
            tenant.faults.draw(operation.name, repr(sorted(given.items())), is_write=not operation.is_read)
            if tenant.faults.chances
            else None
        )
        if fault is not None and not fault.has_effect:
            return failed(tenant, fault, rate), fault.name
        try:
            reply, outcome = self._answered(tenant, operation, verb, given, rate, arrived), "ok"
        except Refusal as refusal:
            reply, outcome = refused(tenant, refusal, rate), str(refusal.code)
        if is_xml:
            reply = as_xml(reply)
        if fault is not None:
            return spoilt(tenant, fault, reply), fault.name
        return reply, outcome

    def _answered(self, tenant: Tenant, operation: Operation, verb: str, given: dict[str, str], rate: RateReport, arrived: float) -> Reply:
        switches = tenant.switches
        if operation.effect is Effect.DELETE and switches["deletions"] == "declared" and verb not in (operation.method, "HEAD"):
            raise Refusal(405, f"Method {verb} is not allowed")
        params, fields = check(operation, given, switches)
        data = self.carry_out(tenant, operation, params, fields, tenant.world.now(), arrived)
        return answered(tenant, data, rate, is_bare=operation.is_read and switches["envelope"] == "writes")

    def carry_out(
        self, tenant: Tenant, operation: Operation, params: dict[str, str], fields: dict[str, str], now: int, arrived: float
    ) -> Payload:
        """Apply an operation's rule; a write that took place is journalled. Also how a journal is replayed."""

        def later(seconds: int, action: Callable[[], None]) -> None:
            if seconds:
                tenant.pending.append((arrived + seconds, action))
            else:
                action()

        call = Call(operation, params, now, tenant.switches, tenant.moments, fields, later)
        data = RULES[operation.name](tenant.world, call)
        if self.journal is not None and not operation.is_read:
            self.journal.write(tenant.name, ServiceCall(operation, params), fields, now)
        return data
