"""Every operation of the service (63), found here by name.

What fills a table, or is called by code, is declared in the Python file of its area, everything else in `called_by_name.toml`.
"""

import difflib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from marketing_api.errors import InvalidCall
from marketing_api.operation import ITEM, Effect, Operation, Parameter
from marketing_api.operations import account, campaigns, contacts, goals, lists, reputation, social, users, webhooks

_MODULES = (account, reputation, social, campaigns, contacts, lists, users, goals, webhooks)

_DECLARED = tomllib.loads(Path(__file__).with_name("called_by_name.toml").read_text(encoding="utf-8"))


def _called_by_name(area: str) -> Iterator[Operation]:
    for name, declared in _DECLARED.get(area, {}).items():
        rows = [*declared.pop("parameters", ()), *_DECLARED["content"].get(declared.pop("content", ""), ())]
        parameters = msgspec.convert(rows, tuple[Parameter, ...])
        effect, method = Effect(declared.pop("effect", "write")), declared.pop("method", "POST")
        result = () if effect is Effect.READ else tuple(declared.pop("result", ITEM))
        members: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in declared.items()}
        yield Operation(name, method, effect, parameters=parameters, result=result, **members)


def _operations(module: ModuleType, area: str) -> tuple[Operation, ...]:
    return (*(each for each in vars(module).values() if isinstance(each, Operation)), *_called_by_name(area))


#: The operations by area, in the order of the specification.
AREAS: dict[str, tuple[Operation, ...]] = {
    area: _operations(module, area) for module in _MODULES if (area := module.__name__.rpartition(".")[2])
}

#: All operations by name, e.g. `emailmarketing/getcontacts`.
ALL: dict[str, Operation] = {operation.name: operation for operations in AREAS.values() for operation in operations}


def find(name: str) -> Operation:
    """The operation of that name; case does not matter and `.json` is optional (api-observed row 9). InvalidCall when there is none."""
    plain = name.strip().strip("/").lower().removesuffix(".json")
    if (operation := ALL.get(plain)) is not None:
        return operation
    near = difflib.get_close_matches(plain, ALL, n=1) or [full for full in ALL if full.endswith(f"/{plain}")][:1]
    hint = f"did you mean {near[0]}?" if near else f"there are {len(ALL)}, e.g. {next(iter(ALL))}"
    raise InvalidCall(f"there is no operation {name}: {hint}", parameter="operation")
