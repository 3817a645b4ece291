"""From a request to its reply, without sockets: key, rate limit, faults, dispatch, envelope.

The arrival time is passed in, so that the same request at the same time gets the same reply. Not here: how the reply travels
(`server`), what an operation means (`AREA.py`), the control paths (`control`).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from marketing_api.operation import Effect, Operation, Question
from marketing_api.operations import ALL
from marketing_api.sandbox import areas
from marketing_api.sandbox.call import UNAVAILABLE, WRONG_KEY, Call, Refusal, Streamed
from marketing_api.sandbox.faults import Fault, Faults
from marketing_api.sandbox.intake import check, merge
from marketing_api.sandbox.journal import Journal
from marketing_api.sandbox.limits import RateReport, Window
from marketing_api.sandbox.moments import Moments
from marketing_api.sandbox.switches import Switches
from marketing_api.sandbox.world import World

RULES = areas.RULES
_JSON = "application/json"
_HTML = b"<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>"


@dataclass(frozen=True, slots=True)
class Request:
    """Header names are lower-case."""

    verb: str
    path: str
    query: str = ""
    content_type: str = ""
    body: bytes = b""


@dataclass(slots=True)
class Reply:
    """`mishap` tells the server to misbehave: reset, close (without an answer), or cut (in the middle of the body)."""

    status: int
    body: bytes | Iterator[bytes]
    kind: str = _JSON
    headers: bytes = b""
    mishap: str = ""
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Logged:
    """One request as it was received, without key and secrets; `outcome` is ok, an error code, or a fault's name."""

    number: int
    account: str
    operation: str
    verb: str
    params: dict[str, str]
    arrived: float
    status: int
    outcome: str


@dataclass
class Tenant:
    """One account on the server: its key, its world, its limit, and how it misbehaves."""

    name: str
    key: str
    world: World
    window: Window
    switches: Switches
    faults: Faults
    revoke_after: int = 0  # requests until the key stops working; 0: never
    asked: int = 0
    outcomes: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # by operation
    pending: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._moments: dict[str, Moments] = {}

    @property
    def moments(self) -> Moments:
        form = self.switches["dates"]
        if form not in self._moments:
            self._moments[form] = Moments(self.world.account.origin.timezone, form)
        return self._moments[form]

    def settle(self, real: float) -> None:
        """Let queued writes take effect that are due."""
        if self.pending:
            due = [action for at, action in self.pending if at <= real]
            self.pending = [one for one in self.pending if one[0] > real]
            for action in due:
                action()

    @property
    def is_revoked(self) -> bool:
        return bool(self.revoke_after) and self.asked > self.revoke_after


class App:
    """Every account of one server."""

    def __init__(self, tenants: list[Tenant], journal: Journal | None = None) -> None:
        self.tenants = {tenant.key: tenant for tenant in tenants}
        self.first = tenants[0]
        self.journal = journal
        self.log: deque[Logged] = deque(maxlen=50_000)
        self.requests = 0
        self._strangers = Window(tenants[0].window.limit)

    def answer(self, request: Request, arrived: float) -> Reply:
        """The reply to a request below `/1/` that was counted at `arrived` (real unix seconds)."""
        name = request.path[3:].lower().rstrip("/").removesuffix(".json") if request.path.startswith("/1/") else request.path
        try:
            query, body = merge(request.query, request.content_type, request.body)
        except Refusal as refusal:
            return self._refused(self.first, refusal, self._strangers.count(arrived))
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
            reply, outcome = self._limited(known, rate), "429"
        elif tenant is None:
            reply, outcome = self._unknown_key(known, rate), "key"
        else:
            reply, outcome = self._with_faults(tenant, operation, request.verb, given, rate, arrived)
        self._note(known, operation, name, request.verb, given, arrived, reply.status, outcome)
        return reply

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
        shown = Question(operation, given).shown if operation else given
        self.requests += 1
        tenant.outcomes[name][outcome] += 1
        self.log.append(Logged(self.requests, tenant.name, name, verb, shown, arrived, status, outcome))

    # errors

    def _limited(self, tenant: Tenant, rate: RateReport) -> Reply:
        reply = self._refused(tenant, Refusal(429, "Too Many Requests"), rate)
        reply.status = 429
        return reply

    def _unknown_key(self, tenant: Tenant, rate: RateReport) -> Reply:
        if tenant.switches["bad-key"] == "1002":
            return self._refused(tenant, Refusal(UNAVAILABLE, "The system cannot find the requested action"), rate)
        reply = self._refused(tenant, Refusal(WRONG_KEY, "Authentication failed: the key is missing or wrong"), rate)
        reply.status = 401
        return reply

    def _refused(self, tenant: Tenant, refusal: Refusal, rate: RateReport) -> Reply:
        data: dict[str, Any] = {"errorCode": refusal.code, "errorMessage": refusal.message}
        if refusal.fields and tenant.switches.is_on("validation-fields"):
            data["fields"] = list(refusal.fields)
        head, tail = _envelope(tenant, rate, "error")
        body = _joined(head, json.dumps(data), tail).encode()
        return Reply(int(tenant.switches["error-status"]), body, headers=rate.headers())

    # answers

    def _with_faults(
        self, tenant: Tenant, operation: Operation | None, verb: str, given: dict[str, str], rate: RateReport, arrived: float
    ) -> tuple[Reply, str]:
        tenant.asked += 1
        tenant.settle(arrived)
        if tenant.is_revoked:
            return self._unknown_key(tenant, rate), "key"
        if operation is None or (operation.area == "reputation" and tenant.switches["reputation"] == "gone"):
            return self._refused(tenant, Refusal(UNAVAILABLE, "The system cannot find the requested action"), rate), str(UNAVAILABLE)
        fault = (
            tenant.faults.draw(operation.name, repr(sorted(given.items())), is_write=not operation.is_read)
            if tenant.faults.chances
            else None
        )
        if fault is not None and not fault.has_effect:
            return self._failed(tenant, fault, rate), fault.name
        try:
            reply, outcome = self._answered(tenant, operation, verb, given, rate, arrived), "ok"
        except Refusal as refusal:
            reply, outcome = self._refused(tenant, refusal, rate), str(refusal.code)
            if refusal.code == 405:
                reply.status = 405
        if fault is not None:
            return _spoilt(tenant, fault, reply), fault.name
        return reply, outcome

    def _failed(self, tenant: Tenant, fault: Fault, rate: RateReport) -> Reply:
        match fault.name:
            case "429":
                return self._limited(tenant, rate)
            case "502-html":
                return Reply(502, _HTML, "text/html", rate.headers())
            case "1002":
                return self._refused(tenant, Refusal(UNAVAILABLE, "The system cannot find the requested action"), rate)
            case "reset":
                return Reply(200, b"", mishap="reset")
            case _:
                return Reply(500, b"Internal Server Error", "text/plain", rate.headers())

    def _answered(self, tenant: Tenant, operation: Operation, verb: str, given: dict[str, str], rate: RateReport, arrived: float) -> Reply:
        switches = tenant.switches
        if operation.effect is Effect.DELETE and switches["deletions"] == "declared" and verb not in (operation.method, "HEAD"):
            raise Refusal(405, f"Method {verb} is not allowed")
        params, fields = check(operation, given, variants=switches["required"] == "variants")
        data = self.carry_out(tenant, operation, params, fields, tenant.world.now(), arrived)
        head, tail = _envelope(tenant, rate, "ok", is_bare=operation.is_read and switches["envelope"] == "writes")
        if isinstance(data, Streamed):
            return Reply(200, _stream(_joined(head, data.head, ""), data, tail), headers=rate.headers())
        return Reply(200, _joined(head, msgspec.json.encode(data).decode(), tail).encode(), headers=rate.headers())

    def carry_out(
        self, tenant: Tenant, operation: Operation, params: dict[str, str], fields: dict[str, str], now: int, arrived: float
    ) -> dict[str, Any] | Streamed:
        """Apply an operation's rule; a write that took place is journalled. Also how a journal is replayed."""

        def later(seconds: int, action: Callable[[], None]) -> None:
            if seconds:
                tenant.pending.append((arrived + seconds, action))
            else:
                action()

        call = Call(operation, params, now, tenant.switches, tenant.moments, fields, later)
        data = RULES[operation.name](tenant.world, call)
        if self.journal is not None and not operation.is_read:
            self.journal.write(tenant.name, Question(operation, params), fields, now)
        return data


def _joined(head: str, data: str, tail: str) -> str:
    """A head that ends inside `data` (rate-limit object placed there) takes the place of the payload's opening brace."""
    return head + (data[1:] if head.endswith(",") else data) + tail


def _stream(head: str, data: Streamed, tail: str) -> Iterator[bytes]:
    yield head.encode()
    done = 0
    for batch in data.batches:
        lead = "," if done else ""
        if data.numbered:
            batch = [f'"{place}":{item}' for place, item in enumerate(batch, done + 1)]
        done += len(batch)
        yield (lead + ",".join(batch)).encode()
    yield (data.tail + tail).encode()


def _envelope(tenant: Tenant, rate: RateReport, status: str, *, is_bare: bool = False) -> tuple[str, str]:
    """What stands before and after the payload."""
    if is_bare:
        return "", ""
    switches = tenant.switches
    place = switches["rate-limit-place"]
    member = "" if place == "headers-only" else f',"rate-limit":{rate.members(as_text=switches["rate-limit-values"] == "text")}'
    limit = f',"limit":{rate.limit}' if status == "ok" else ""
    if switches.is_on("header-extras"):
        limit = (limit.replace(":", ':"') + '"' if limit else "") + ',"cached":false'
    header = f'{{"status":"{status}","dataType":"array"{limit}{member if place == "header" else ""}}}'
    head = f'{{"response":{{"header":{header},"data":'
    if place == "data":
        head += '{"rate-limit":' + rate.members(as_text=switches["rate-limit-values"] == "text") + ","
        return head, "}}"
    return head, (member if place == "response" else "") + "}" + (member if place == "top" else "") + "}"


def _spoilt(tenant: Tenant, fault: Fault, reply: Reply) -> Reply:
    """The answer to a request that took effect, as it arrives."""
    match fault.name:
        case "500-after":
            return Reply(500, b"Internal Server Error", "text/plain", reply.headers)
        case "html-200":
            return Reply(200, _HTML, "text/html", reply.headers)
        case "lost-answer":
            return Reply(200, b"", mishap="close")
        case "stall":
            reply.wait = tenant.faults.stall_seconds
        case "cut-json":
            reply.body = reply.body[: len(reply.body) * 3 // 5] if isinstance(reply.body, bytes) else _ending_early(reply.body)
        case "cut-body":
            reply.mishap = "cut"
    return reply


def _ending_early(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for number, piece in enumerate(pieces):
        yield piece[: len(piece) // 2 + 1]
        if number:
            break
