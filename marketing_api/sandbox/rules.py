"""The table of rules: which function answers which operation. The areas' files fill it; a test holds it against the declarations."""

from __future__ import annotations

from collections.abc import Callable

from marketing_api.sandbox.call import Call, Payload
from marketing_api.sandbox.world import World

Rule = Callable[[World, Call], Payload]
RULES: dict[str, Rule] = {}


def rule(name: str) -> Callable[[Rule], Rule]:
    """Declare that the function answers the operation of that name."""

    def declare(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return declare
