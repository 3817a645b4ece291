"""What an operation is: the one declaration from which validation, routes, pages and tests follow.

Belongs here: the shape of an operation, and binding values to its parameters (`parameter.py`) as a question.
Not here: the operations themselves (`operations/`), how a request is sent (`wire`, `client`).
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from marketing_api.errors import InvalidCall
from marketing_api.parameter import Kind, Parameter

if TYPE_CHECKING:
    from marketing_api.records.fields import Record, Rows

    #: Turns an operation's payload into (record type, raw entry) pairs; the second argument is what was asked.
    ReadRows = Callable[[Any, Mapping[str, str]], Rows]


class Effect(StrEnum):
    """What a call does to the account. Only reads may be repeated without thinking."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    SEND = "send"  # reaches people: publishes a post, may send a campaign, charges a card


@dataclass(frozen=True, slots=True)
class Paging:
    """A listing that honours `limit` and `page`, whether or not its specification says so.

    `by_group`: its entries come in groups, each of which a service may page for itself, so that the size of a page says nothing.
    """

    size: int = 1000
    by_group: bool = False


@dataclass(frozen=True)
class Operation:
    """One operation of the service. `at` names the member of `data` that holds the payload; where it is empty the payload is
    `data` itself, and `members` are those without which it is not whole.

    `records` are the record types that a read yields and `rows` the function that finds them in the payload; a look-up
    or a write has neither.
    """

    name: str  # `area/operation`, as in its path
    method: str
    effect: Effect
    doc: str
    parameters: tuple[Parameter, ...] = ()
    needs_one: tuple[str, ...] = ()  # parameters of which at least one must be given
    at: str = ""
    members: tuple[str, ...] = ()
    echo: str = ""  # the required parameter that `data` repeats, where it does
    is_listing: bool = False  # the payload is a wrapper `{count, items}`
    is_streamed: bool = False  # its entries stand alone, so that a huge answer may be read in batches
    records: tuple[type[Record], ...] = ()
    rows: ReadRows | None = None
    paging: Paging | None = None
    is_secret: bool = False  # the answer holds a secret: never archived, never shown in logs
    timeout: float = 30.0  # seconds without a byte before the answer counts as lost
    result: tuple[str, ...] = ()  # members of a write's answer (api-observed row 7)

    def __hash__(self) -> int:
        return hash(self.name)

    @cached_property
    def _by_name(self) -> dict[str, Parameter]:
        return {parameter.name.lower(): parameter for parameter in self.parameters}

    @property
    def path(self) -> str:
        """Below the base address, e.g. `/app/me.json`."""
        return f"/{self.name}.json"

    @property
    def area(self) -> str:
        return self.name.partition("/")[0]

    @property
    def is_read(self) -> bool:
        return self.effect is Effect.READ

    def bind(self, **values: Any) -> Question:
        """Check `values` against the declaration and return the question to ask.

        Python's reserved words take a trailing underscore (`from_`). None means "not given". Raises InvalidCall, naming
        the parameter and what is allowed, before a request is spent.
        """
        wire: dict[str, str] = {}
        for name, value in values.items():
            if value is not None:
                wire.update(self._encode(name, value))
        for parameter in self.parameters:
            if parameter.required and not _is_given(parameter, wire):
                if parameter.default is None:
                    raise InvalidCall(f"{self.name}: {parameter.name} is required ({parameter.hint})", parameter=parameter.name)
                wire[parameter.name] = parameter.default
        if self.needs_one and not any(name in wire for name in self.needs_one):
            raise InvalidCall(f"{self.name}: one of {', '.join(self.needs_one)} is required", parameter=self.needs_one[0])
        order = {parameter.name: index for index, parameter in enumerate(self.parameters)}
        return Question(self, dict(sorted(wire.items(), key=lambda item: (order[item[0].partition("[")[0]], item[0]))))

    def _encode(self, name: str, value: Any) -> dict[str, str]:
        """`fields={"12": "x"}` and `fields[12]="x"` (as it is typed on a command line) mean the same."""
        head, bracket, key = name.partition("[")
        parameter = self._parameter(head)
        if bracket and parameter.kind is Kind.FIELDS:
            value = {key.rstrip("]"): value}
        return parameter.encode(value, self.name)

    def _parameter(self, name: str) -> Parameter:
        parameter = self._by_name.get(name.rstrip("_").lower())
        if parameter is None:
            known = [parameter.name for parameter in self.parameters]
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; it takes {', '.join(known) or 'no parameters'}"
            raise InvalidCall(f"{self.name} has no parameter {name}{hint}", parameter=name)
        return parameter


@dataclass(frozen=True)
class Question:
    """An operation with its wire parameters (without the key): what is asked, and under what it is archived."""

    operation: Operation
    params: dict[str, str]

    @cached_property
    def key(self) -> str:
        """Equal questions have equal keys, whatever the order of their parameters (32 hex digits)."""
        parts = [self.operation.name, *(part for pair in sorted(self.params.items()) for part in pair)]
        return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    @property
    def shown(self) -> dict[str, str]:
        """The parameters as they may be logged and archived."""
        secret = {parameter.name for parameter in self.operation.parameters if parameter.secret}
        return {name: "***" if name.partition("[")[0] in secret else value for name, value in self.params.items()}

    def __repr__(self) -> str:
        return f"Question({self.operation.name}: {', '.join(self.params)})"  # names only: the values are personal data

    def __hash__(self) -> int:
        return hash(self.key)


def _is_given(parameter: Parameter, wire: Mapping[str, str]) -> bool:
    return parameter.name in wire or any(name.startswith(f"{parameter.name}[") for name in wire)
