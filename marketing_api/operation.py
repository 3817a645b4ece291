"""What an operation is: the one declaration from which validation, routes, pages and tests follow.

Belongs here: parameters and their form on the wire, the shape of an operation, and a call: an operation with its parameters.
Not here: the operations themselves (`operations/`), how a request is sent (`transport`, `client`).
"""

from __future__ import annotations

import datetime as dt
import difflib
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from marketing_api.errors import InvalidCall


class Kind(StrEnum):
    """How a parameter's value is written on the wire."""

    TEXT = "text"
    NUMBER = "number"
    ID = "id"
    BOOLEAN = "boolean"  # `true` / `false`
    FLAG = "flag"  # `0` / `1`
    DATE = "date"  # sent as Y-m-d
    DATETIME = "datetime"  # sent as Y-m-d H:i:s
    TIME = "time"
    EMAIL = "email"
    LINK = "link"
    DAY_OR_TIME = "date or date-time"  # sent as m/d/Y, with H:i when a time of day is given (api-observed row 34)
    FIELDS = "fields"  # a map, sent as fields[ID]=value


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operation; `many` values are sent comma-separated, `choices` are compared ignoring case."""

    name: str
    kind: Kind = Kind.TEXT
    required: bool = False
    many: bool = False
    choices: tuple[str, ...] = ()
    default: str | None = None  # what the service assumes when it is not sent; sent when the parameter is required
    maximum: int | None = None  # of a number
    secret: bool = False  # never logged nor archived
    doc: str = ""

    def encode(self, value: Any, operation: str) -> dict[str, str]:
        """The wire form of `value` (for a map, one entry per key); InvalidCall when the value is not allowed."""
        if self.kind is Kind.FIELDS:
            return self._encode_fields(value, operation)
        values = _split(value) if self.many else [value]
        try:
            words = [self._word(_ENCODERS[self.kind](item)) for item in values]
        except (ValueError, TypeError) as problem:
            shown = "***" if self.secret or self.kind is Kind.EMAIL else repr(value)  # an address is personal data
            raise InvalidCall(f"{operation}: {self.name}={shown} is not allowed: {problem}", parameter=self.name) from None
        if self.required and not any(words):
            raise InvalidCall(f"{operation}: {self.name} must not be empty", parameter=self.name)
        return {self.name: ",".join(words)}

    def _word(self, word: str) -> str:
        if self.maximum is not None and Decimal(word) > self.maximum:
            raise ValueError(f"at most {self.maximum}")
        if not self.choices or word in self.choices:
            return word
        for choice in self.choices:
            if choice.lower() == word.lower():
                return choice
        raise ValueError(f"allowed: {', '.join(self.choices)}")

    def _encode_fields(self, value: Any, operation: str) -> dict[str, str]:
        if not isinstance(value, Mapping):
            raise InvalidCall(
                f"{operation}: {self.name} takes a map of field id to value, e.g. {self.name}[12]=London", parameter=self.name
            )
        return {f"{self.name}[{key}]": _text(item) for key, item in value.items()}

    @property
    def hint(self) -> str:
        """What is allowed, in words for people."""
        return f"one of {', '.join(self.choices)}" if self.choices else str(self.kind.value)


def _split(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return list(value) if isinstance(value, list | tuple | set | frozenset) else [value]


def _text(value: Any) -> str:
    return str(value)


def _number(value: Any) -> str:
    if isinstance(value, bool):
        raise ValueError("a number is needed")
    text = str(value).strip()
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        raise ValueError("a number is needed")
    return format(Decimal(text), "f")


def _id(value: Any) -> str:
    text = str(value).strip()
    if isinstance(value, bool) or not text:
        raise ValueError("an id is needed")
    return text


def _boolean(value: Any) -> str:
    words = {"true": "true", "1": "true", "yes": "true", "false": "false", "0": "false", "no": "false"}
    if (word := words.get(str(value).strip().lower())) is None:
        raise ValueError("true or false is needed")
    return word


def _flag(value: Any) -> str:
    return "1" if _boolean(value) == "true" else "0"


_INPUT_DATES = ("%Y-%m-%d", "%m/%d/%Y")


def _date(value: Any) -> str:
    if isinstance(value, dt.date):
        return value.strftime("%Y-%m-%d")
    for form in _INPUT_DATES:
        try:
            return dt.datetime.strptime(str(value).strip(), form).strftime("%Y-%m-%d")
        except ValueError:
            continue
    raise ValueError("a date is needed, like 2026-01-31 or 01/31/2026")


def _datetime(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    text = str(value).strip().replace("T", " ")
    for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", *_INPUT_DATES):
        try:
            return dt.datetime.strptime(text, form).strftime("%Y-%m-%d %H:%M:%S")
        except ValueError:
            continue
    raise ValueError("a date-time is needed, like 2026-01-31 14:05:00")


def _day_or_time(value: Any) -> str:
    form = "%m/%d/%Y %H:%M" if ":" in str(value) else "%m/%d/%Y"
    return dt.datetime.fromisoformat(_datetime(value)).strftime(form)


def _email(value: Any) -> str:
    text = str(value).strip()
    if not re.fullmatch(r"[^@\s,]+@[^@\s,]+", text):
        raise ValueError("an e-mail address is needed")
    return text


def _link(value: Any) -> str:
    text = str(value).strip()
    if not re.match(r"https?://\S+$", text):
        raise ValueError("a link is needed that begins with http:// or https://")
    return text


_ENCODERS: dict[Kind, Callable[[Any], str]] = {
    Kind.TEXT: _text,
    Kind.NUMBER: _number,
    Kind.ID: _id,
    Kind.BOOLEAN: _boolean,
    Kind.FLAG: _flag,
    Kind.DATE: _date,
    Kind.DATETIME: _datetime,
    Kind.DAY_OR_TIME: _day_or_time,
    Kind.TIME: _text,
    Kind.EMAIL: _email,
    Kind.LINK: _link,
}


if TYPE_CHECKING:
    from marketing_api.records.fields import Record, Rows

    #: Turns an operation's payload into (record type, raw entry) pairs; the second argument is what was requested.
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
    is_streamed: bool = False  # its entries stand alone, so that a huge response may be read in batches
    records: tuple[type[Record], ...] = ()
    rows: ReadRows | None = None
    paging: Paging | None = None
    is_secret: bool = False  # the response holds a secret: never archived, never shown in logs
    timeout: float = 30.0  # seconds without a byte before the response counts as lost
    result: tuple[str, ...] = ()  # members of a write's response (api-observed row 7)

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

    def bind(self, **values: Any) -> Call:
        """Check `values` against the declaration and return the call.

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
        return Call(self, dict(sorted(wire.items(), key=lambda item: (order[item[0].partition("[")[0]], item[0]))))

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
class Call:
    """An operation with its wire parameters (without the key): what is asked, and under what it is archived."""

    operation: Operation
    params: dict[str, str]

    @cached_property
    def key(self) -> str:
        """Equal calls have equal keys, whatever the order of their parameters (32 hex digits)."""
        parts = [self.operation.name, *(part for pair in sorted(self.params.items()) for part in pair)]
        return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    @property
    def shown(self) -> dict[str, str]:
        """The parameters as they may be logged and archived."""
        secret = {parameter.name for parameter in self.operation.parameters if parameter.secret}
        return {name: "***" if name.partition("[")[0] in secret else value for name, value in self.params.items()}

    def __repr__(self) -> str:
        return f"Call({self.operation.name}: {', '.join(self.params)})"  # names only: the values are personal data

    def __hash__(self) -> int:
        return hash(self.key)


def _is_given(parameter: Parameter, wire: Mapping[str, str]) -> bool:
    return parameter.name in wire or any(name.startswith(f"{parameter.name}[") for name in wire)
