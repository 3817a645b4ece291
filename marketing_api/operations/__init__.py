"""Every operation of the service, found here by name.

Each is declared in the TOML file of its area. `records/AREA.py` names the operations that fill a
table, with the function that reads their rows, and those that code calls. All others are called by
name (`marketing-sync call`)."""

import difflib

from marketing_api.envelope import SUFFIX
from marketing_api.errors import InvalidCall
from marketing_api.operation import Operation
from marketing_api.records import (
    account,
    campaigns,
    contacts,
    goals,
    lists,
    reputation,
    social,
    users,
    webhooks,
)

__all__ = [
    "ALL",
    "AREAS",
    "account",
    "campaigns",
    "contacts",
    "find",
    "goals",
    "lists",
    "reputation",
    "social",
    "users",
    "webhooks",
]

_MODULES = (account, reputation, social, campaigns, contacts, lists, users, goals, webhooks)

#: The operations by area, in the order of the specification.
AREAS: dict[str, tuple[Operation, ...]] = {
    module.AREA.name: tuple(module.AREA.values()) for module in _MODULES
}

#: All operations by name, e.g. `emailmarketing/getcontacts`.
ALL: dict[str, Operation] = {
    operation.name: operation for operations in AREAS.values() for operation in operations
}


def find(name: str) -> Operation:
    """The operation of that name; case does not matter and `.json` is optional (observation 9).
    InvalidCall when there is none."""
    plain = name.strip().strip("/").lower().removesuffix(SUFFIX)
    operation = ALL.get(plain)
    if operation is not None:
        return operation
    near = [full for full in ALL if full.endswith(f"/{plain}")] or difflib.get_close_matches(
        plain, ALL, n=1
    )
    hint = f"did you mean {near[0]}?" if near else f"there are {len(ALL)}, e.g. {next(iter(ALL))}"
    raise InvalidCall(f"there is no operation {name}: {hint}", parameter="operation")
