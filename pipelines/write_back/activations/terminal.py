"""Activations on the command line: each one's turnover and plan, and sending it. Not here: what that is (`activating`)."""

from __future__ import annotations

import shlex
import sys
from types import SimpleNamespace

from marketing_api.errors import MarketingApiError
from pipelines import exits
from pipelines.failures import explain
from pipelines.interrupts import Stop
from pipelines.options import ACTIVATIONS, words
from pipelines.settings import Settings
from pipelines.write_back.accounts import rate_of
from pipelines.write_back.activations.activating import activate, turnover, turnover_lines
from pipelines.write_back.activations.activations import FILE, Activation, chosen, read_activations
from pipelines.write_back.applying import watched
from pipelines.write_back.input.grid import InputError
from pipelines.write_back.reporting.report import plan_lines, result_lines, say
from pipelines.write_back.reporting.result import new_run
from warehouse.errors import WarehouseError


def run(arguments: SimpleNamespace, settings: Settings, stop: Stop) -> int:
    """Each for itself: what is wrong with one does not hold up the others."""
    codes = [exits.DONE]
    for activation in chosen(read_activations(settings.folder), arguments.names):
        try:
            codes.append(_activation(arguments, settings, activation, stop))
        except (InputError, MarketingApiError, WarehouseError) as problem:
            text, code = explain(problem)
            say([f"marketing-sync: {text}"], sys.stderr)
            codes.append(code)
    if len(codes) == 1:
        say([f"no activation is enabled; {FILE} names them, see docs/sending-back.md"])
    elif not arguments.apply:
        typed = ["marketing-sync", "push", "activations", *words(ACTIVATIONS, vars(arguments)), "--apply"]
        say(["", "nothing was sent; to send it:", f"  {shlex.join(typed)}"])
    return max(codes)


def _activation(arguments: SimpleNamespace, settings: Settings, activation: Activation, stop: Stop) -> int:
    found = turnover(settings, activation, accept_shrink=arguments.accept_shrink)
    say(["", *turnover_lines(found)])
    if found.planned is not None:
        say(plan_lines(found.planned.plan, rate=rate_of(settings, found.account), reject_limit=found.planned.order.reject_limit))
    if not arguments.apply:
        return exits.DONE
    stop.check()
    result = watched(stop, lambda watch: activate(settings, found, new_run("push_activations"), watch))
    say(["", *result_lines(result)] if result else [])
    return exits.INCOMPLETE if result and result.shortfall else exits.DONE
