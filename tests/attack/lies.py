"""Lies at the n-th answer: things a service says once. `tell` changes the code of a sandbox."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from marketing_api.sandbox.app import App
from marketing_api.sandbox.faults import Faults
from marketing_api.sandbox.responses import Response
from tests.dialects.faults import FAULTS

#: On the way, any request; the effect of a write has taken place after the last six.
BROKEN = ("500-before", "502-html", "reset", "500-after", "html-200", "cut-json", "cut-body", "lost-answer")


def _nulled(data: Any) -> Any:
    """The first collection is null."""
    if isinstance(data, dict):
        for name, value in data.items():
            if isinstance(value, list | dict):
                return data | {name: None}
    return None


def _emptied(data: Any) -> Any:
    """The first collection is empty; a count that stands beside it stays."""
    if isinstance(data, dict):
        for name, value in data.items():
            if isinstance(value, list | dict):
                return data | {name: []}
    return []


def _halved(data: Any) -> Any:
    if isinstance(data, dict):
        for name, value in data.items():
            if isinstance(value, list):
                return data | {name: value[: len(value) // 2]}
            if isinstance(value, dict):
                return data | {name: dict(list(value.items())[: len(value) // 2])}
    return data


#: In the words of the service: reads only.
SAID: dict[str, Callable[[Any], Any]] = {
    "data-null": lambda data: None,
    "data-list": lambda data: [],
    "items-null": _nulled,
    "items-empty": _emptied,
    "items-halved": _halved,
}


def tell(lie: str, number: int, told: Path) -> None:
    """The answer to request `number` (from 1) is that lie if it fits; then there is a file `told`."""
    if lie in FAULTS:
        _fail(lie, number, told)
    else:
        _say(SAID[lie], number, told)


def _fail(name: str, number: int, told: Path) -> None:
    drawn, fault = 0, FAULTS[name]

    def draw(self: Faults, operation: str, given: str, *, is_write: bool) -> str:
        nonlocal drawn
        drawn += 1
        if drawn != number or (fault.writes_only and not is_write):
            return ""
        told.touch()
        return name

    Faults.draw = draw  # type: ignore[method-assign]


def _say(change: Callable[[Any], Any], number: int, told: Path) -> None:
    real, answered = App.apply, 0

    def answer(self: App, operation: Any, *args: Any) -> Response:
        nonlocal answered
        answered += 1
        reply = real(self, operation, *args)
        if answered != number or not operation.is_read:
            return reply
        told.touch()
        whole = json.loads(reply.body)
        whole["response"]["data"] = change(whole["response"]["data"])
        return Response(reply.status, json.dumps(whole).encode(), reply.kind, reply.headers)

    App.apply = answer  # type: ignore[method-assign]
