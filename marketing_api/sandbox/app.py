"""From a request to its response, without sockets: key, rate limit, faults, dispatch.

The arrival time is passed in, so that the same request at the same time gets the same response."""

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from marketing_api.envelope import SUFFIX
from marketing_api.operation import Call, Operation
from marketing_api.operations import ALL, AREAS
from marketing_api.pacing import SPECIFIED_RATE
from marketing_api.sandbox import responses
from marketing_api.sandbox.faults import Faults
from marketing_api.sandbox.intake import check_params, read_params
from marketing_api.sandbox.journal import Journal
from marketing_api.sandbox.options import RATE_OBSERVED, Options
from marketing_api.sandbox.responses import ERRORS, RateReport, Request, Response, Window
from marketing_api.sandbox.rules import CheckedCall, Params, Refusal
from marketing_api.sandbox.world import Origin, World

#: What a rule returns: for a read the declared member of `data`, or all of it where none is
#: declared; for a write the members of `data`.
Rule = Callable[[CheckedCall], Any]
#: The rule of an operation is what has its name in the module of its area.
RULES: dict[str, Rule] = {
    operation.name: getattr(
        import_module(f"marketing_api.sandbox.{area}"), operation.name.rpartition("/")[2]
    )
    for area, operations in AREAS.items()
    for operation in operations
}


class Logged(NamedTuple):
    """One request as it was received, without key and secrets; `outcome` is ok, an error code, or a
    fault's name."""

    number: int
    operation: str
    verb: str
    params: dict[str, str]
    arrived: float
    status: int
    outcome: str


class App:
    """The account that the options name, with everything repeated that its journal holds;
    `control_paths` replace those of `control`, if there are any."""

    control_paths: Mapping[str, Callable[..., Any]] = {}

    def __init__(self, options: Options) -> None:
        self.options = options
        limit = RATE_OBSERVED
        if not options.as_observed:
            limit = int(SPECIFIED_RATE)
        if options.rate_limit is not None:
            limit = options.rate_limit
        self.window = Window(limit, 2 if options.as_observed else 1)
        self.faults = Faults(options.seed, options.faults)
        self.log: deque[Logged] = deque(maxlen=50_000)
        self.requests = 0
        self.journal = Journal(options.state or Path(os.devnull))
        if self.journal.lines:
            origin = Origin(**self.journal.lines.pop(0)["origin"])
        else:
            base = int(time.time()) if options.now is None else options.now
            origin = Origin(options.seed, options.contacts, base, options.timezone)
            self.journal.append(origin=asdict(origin))
        self.world = self.make_world(origin)
        for line in self.journal.lines:
            with contextlib.suppress(Refusal):  # of an account that another version made
                self.repeat(line)

    def make_world(self, origin: Origin) -> World:
        return World(origin, self.options.now, self.options.as_observed)

    def repeat(self, line: dict[str, Any]) -> None:
        """Carry out again what a line of the journal holds, a write at its own time."""
        if "advance" in line:
            self.world.advance(line["advance"])
        else:
            operation = ALL[line["operation"]]
            call = CheckedCall(self.world, operation, line["params"], line["fields"], line["at"])
            RULES[operation.name](call)
            self.world.settle(call.arrived)

    def respond(self, request: Request, arrived: float) -> Response:
        """The response to a request below `/1/` that was counted at `arrived` (real unix
        seconds)."""
        name = request.path.removeprefix("/1/").lower().rstrip("/").removesuffix(SUFFIX)
        rate = self.window.count(arrived)
        received = Params()
        fault = ""
        response = Response(200, b"")
        outcome = "ok"
        try:
            received = read_params(request)
            operation = self.admit(name, received, rate)
            self.world.settle(arrived)
            fault = self.faults.draw(
                name, repr(sorted(received.items())), is_write=not operation.is_read
            )
            if not fault or self.faults.known[fault].has_effect:
                response = self.apply(operation, received, arrived, rate)
        except Refusal as refusal:
            response = responses.error(self.world, refusal, rate)
            outcome = str(refusal.code)
        if fault:
            response = self.fail(fault, response, rate)
            outcome = fault
        self.requests += 1
        public = Call(ALL[name], received).public_params if name in ALL else received
        self.log.append(
            Logged(self.requests, name, request.verb, public, arrived, response.status, outcome)
        )
        return response

    def admit(self, name: str, received: Params, rate: RateReport) -> Operation:
        """What is requested; a Refusal where it comes too early, without the key, or for nothing
        that there is. The key is taken out of the parameters."""
        keys = [received.pop(place, "").strip() for place in ("key", "api_key")]
        if rate["reached"]:
            raise Refusal(*ERRORS["rate-limited"])
        if self.options.key not in keys:
            is_observed = self.world.observes("bad-key")
            raise Refusal(*ERRORS["unknown-key" if is_observed else "unknown"])
        if name not in ALL:
            raise Refusal(*ERRORS["unknown"])
        return ALL[name]

    def apply(
        self, operation: Operation, received: Params, arrived: float, rate: RateReport
    ) -> Response:
        """Carry out a call with any HTTP verb (observation 13). Raises Refusal."""
        checked = check_params(operation, received)
        now = self.world.now()
        data = self.carry_out(CheckedCall(self.world, operation, *checked, now, arrived))
        return responses.success(self.world, operation, data, rate)

    def carry_out(self, call: CheckedCall) -> Any:
        operation = call.operation
        data = RULES[operation.name](call)
        if not operation.is_read:
            public = Call(operation, call.params).public_params
            self.journal.append(
                at=call.now, operation=operation.name, params=public, fields=call.fields
            )
            self.world.settle(call.arrived)
        return data

    def fail(self, fault: str, response: Response, rate: RateReport) -> Response:
        """The response as it arrives; what it was to be matters only where the fault has an
        effect."""
        match fault:
            case "429":
                return responses.error(self.world, Refusal(*ERRORS["rate-limited"]), rate)
            case "lost-answer":
                response.mishap = "close"
            case "stall":
                response.wait = self.options.stall_seconds
            case _:
                return Response(
                    500, b"Internal Server Error", "text/plain", responses.rate_headers(rate)
                )
        return response
