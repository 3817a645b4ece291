"""What an operation is: the one declaration from which validation, routes, pages and tests follow.

Belongs here: parameters and their form on the wire, the shape of an operation and how a file
declares it, and a call: an operation with its parameters. Not here: the operations themselves
(`operations/`), how a request is sent (`transport`, `client`)."""

from __future__ import annotations

import contextlib
import datetime as dt
import difflib
import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from marketing_api.address import trim_invisible
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
    #: Sent as m/d/Y, with H:i when a time of day is given (observation 34).
    DAY_OR_TIME = "date or date-time"
    FIELDS = "fields"  # a map, sent as fields[ID]=value


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operation; `many` values are sent comma-separated, `choices` are compared
    ignoring case."""

    name: str
    doc: str = ""
    kind: Kind = Kind.TEXT
    required: bool = False
    many: bool = False
    choices: tuple[str, ...] = ()
    #: What the service assumes when it is not sent; sent when the parameter is required.
    default: str | None = None
    maximum: int | None = None  # of a number
    secret: bool = False  # never logged nor archived

    def encode_value(self, value: Any, operation: str) -> dict[str, str]:
        """The wire form of `value` (for a map, one entry per key); InvalidCall when the value is
        not allowed."""
        if self.kind is Kind.FIELDS:
            if isinstance(value, Mapping):
                return {f"{self.name}[{key}]": str(item) for key, item in value.items()}
            raise self._make_error(
                operation, " takes a map of field id to value, e.g. fields[12]=London"
            )
        values = [value]
        if self.many:
            values = _split_values(value)
        try:
            words = [self._match_choice(_encode_word(self.kind, item)) for item in values]
        except (ValueError, TypeError) as error:
            is_hidden = self.secret or self.kind is Kind.EMAIL  # an address is personal data
            text = "***" if is_hidden else repr(value)
            raise self._make_error(operation, f"={text} is not allowed: {error}") from None
        if self.required and not any(words):
            raise self._make_error(operation, " must not be empty")
        return {self.name: ",".join(words)}

    def _make_error(self, operation: str, why: str) -> InvalidCall:
        return InvalidCall(f"{operation}: {self.name}{why}", parameter=self.name)

    def _match_choice(self, word: str) -> str:
        """The word as the declaration spells it."""
        if self.maximum is not None and Decimal(word) > self.maximum:
            raise ValueError(f"at most {self.maximum}")
        if not self.choices or word in self.choices:
            return word
        for choice in self.choices:
            if choice.lower() == word.lower():
                return choice
        raise ValueError(f"allowed: {', '.join(self.choices)}")


def _split_values(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    return [value]


_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_EMAIL = re.compile(r"[^@\s,]+@[^@\s,]+")
_LINK = re.compile(r"https?://\S+")
_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair: has no form on the wire
_TRUTH = dict.fromkeys(("true", "1", "yes"), True) | dict.fromkeys(("false", "0", "no"), False)
_DATES = ("%Y-%m-%d", "%m/%d/%Y")
_DATE_TIMES = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %I:%M %p",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    *_DATES,
)
_SENT_AS = {
    Kind.DATE: "%Y-%m-%d",
    Kind.DATETIME: "%Y-%m-%d %H:%M:%S",
    Kind.DAY_OR_TIME: "%m/%d/%Y %H:%M",
}
_MOMENT = "a date-time is needed, like 2026-01-31 14:05:00"
#: The message if another value was given.
_NEEDED = {
    Kind.NUMBER: "a number is needed",
    Kind.ID: "an id is needed",
    Kind.BOOLEAN: "true or false is needed",
    Kind.FLAG: "true or false is needed",
    Kind.DATE: "a date is needed, like 2026-01-31 or 01/31/2026",
    Kind.DATETIME: _MOMENT,
    Kind.DAY_OR_TIME: _MOMENT,
    Kind.EMAIL: "an e-mail address is needed",
    Kind.LINK: "a link is needed that begins with http:// or https://",
}


def _encode_word(kind: Kind, value: Any) -> str:
    """One value as it is sent; ValueError says what is needed instead."""
    text = str(value).strip()
    match kind:
        case Kind.TEXT | Kind.TIME:
            return str(value)
        case Kind.NUMBER | Kind.ID if isinstance(value, bool):
            pass
        case Kind.NUMBER if _NUMBER.fullmatch(text):
            return format(Decimal(text), "f")
        case Kind.ID if text:
            return text
        case Kind.EMAIL if _EMAIL.fullmatch(trim_invisible(text)):
            return trim_invisible(text)
        case Kind.LINK if _LINK.fullmatch(text):
            return text
        case Kind.FLAG if text.lower() in _TRUTH:
            return str(int(_TRUTH[text.lower()]))
        case Kind.BOOLEAN if text.lower() in _TRUTH:
            return str(_TRUTH[text.lower()]).lower()
        case Kind.DATE | Kind.DATETIME | Kind.DAY_OR_TIME:
            return _encode_moment(kind, value, text)
    raise ValueError(_NEEDED[kind])


def _encode_moment(kind: Kind, value: Any, text: str) -> str:
    moment = _read_moment(kind, value, text)
    if moment is None:
        raise ValueError(_NEEDED[kind])
    if kind is Kind.DAY_OR_TIME and ":" not in text:
        return moment.strftime("%m/%d/%Y")
    return moment.strftime(_SENT_AS[kind])


def _read_moment(kind: Kind, value: Any, text: str) -> dt.date | None:
    if isinstance(value, dt.date):
        return value
    return _parse_moment(text, _DATES if kind is Kind.DATE else _DATE_TIMES)


def _parse_moment(text: str, forms: Iterable[str]) -> dt.datetime | None:
    for form in forms:
        with contextlib.suppress(ValueError):
            return dt.datetime.strptime(text.replace("T", " "), form)
    return None


if TYPE_CHECKING:
    from marketing_api.records.fields import Record, Rows

    #: Turns an operation's payload into (record type, raw entry) pairs; the second argument is what
    #: was requested.
    ReadRows = Callable[[Any, Mapping[str, str]], Rows]


class Effect(StrEnum):
    """What a call does to the account. Only reads may always be repeated."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    SEND = "send"  # reaches people: publishes a post, may send a campaign, charges a card


@dataclass(frozen=True)
class Operation:
    """One operation of the service. `at` names the member of `data` that holds the payload. If it
    is empty, the payload is `data` itself, and `members` are the required ones.

    `records` are the record types that a read yields, and `rows` is the function that finds them in
    the payload; a look-up or a write has neither."""

    name: str  # `area/operation`, as in its path
    method: str
    effect: Effect
    doc: str
    parameters: tuple[Parameter, ...] = ()
    needs_one: tuple[str, ...] = ()  # at least one of these parameters must be given
    at: str = ""
    members: tuple[str, ...] = ()
    echo: str = ""  # the required parameter that `data` repeats, if it does
    is_listing: bool = False  # the payload is a wrapper `{count, items}`
    # its entries are independent, so that a huge response may be read in batches
    is_streamed: bool = False
    records: tuple[type[Record], ...] = ()
    rows: ReadRows | None = None
    # its entries come in groups, which the service may page separately: the size of a page says
    # nothing
    is_grouped: bool = False
    is_secret: bool = False  # the response holds a secret: never archived, never shown in logs
    timeout: float = 30.0  # seconds without a byte before the response counts as lost
    result: tuple[str, ...] = ()  # members of a write's response (observation 7)

    def __hash__(self) -> int:
        return hash(self.name)

    @cached_property
    def _by_name(self) -> dict[str, Parameter]:
        return {parameter.name.lower(): parameter for parameter in self.parameters}

    @property
    def area(self) -> str:
        return self.name.partition("/")[0]

    @property
    def is_paged(self) -> bool:
        """Whether it is a listing with `limit` and `page`, specified or not."""
        return "page" in self._by_name

    @property
    def is_read(self) -> bool:
        return self.effect is Effect.READ

    def bind(self, **values: Any) -> Call:
        """Check `values` against the declaration and return the call.

        Python's reserved words take a trailing underscore (`from_`). None means "not given".
        `fields={"12": "x"}` and `fields[12]="x"` (as it is typed on a command line) mean the same.
        Raises InvalidCall, naming the parameter and what is allowed, before a request is spent."""
        words = self._encode_values(values)
        wire: dict[str, str] = {}
        for parameter in self.parameters:
            if parameter.name in words:
                wire |= sorted(words[parameter.name].items())
            elif parameter.required:
                wire[parameter.name] = self._default_of(parameter)
        if self.needs_one and not any(map(words.get, self.needs_one)):
            raise self._make_error(
                f"one of {', '.join(self.needs_one)} is required", self.needs_one[0]
            )
        for name, word in wire.items():
            if _HALF.search(name + word):
                parameter_name = name.partition("[")[0]
                raise self._make_error(f"{parameter_name} holds half a character", parameter_name)
        return Call(self, wire)

    def _encode_values(self, values: Mapping[str, Any]) -> dict[str, dict[str, str]]:
        """The form of each parameter on the wire."""
        words: dict[str, dict[str, str]] = {}
        for name, value in values.items():
            if value is None:
                continue
            head, bracket, key = name.partition("[")
            parameter = self.find_parameter(head)
            if bracket and parameter.kind is Kind.FIELDS:
                value = {key.rstrip("]"): value}
            found = parameter.encode_value(value, self.name)
            words[parameter.name] = words.get(parameter.name, {}) | found
        return words

    def _default_of(self, parameter: Parameter) -> str:
        if parameter.default is not None:
            return parameter.default
        choices = ", ".join(parameter.choices)
        allowed = f"one of {choices}" if choices else parameter.kind
        raise self._make_error(f"{parameter.name} is required ({allowed})", parameter.name)

    def _make_error(self, why: str, parameter: str) -> InvalidCall:
        return InvalidCall(f"{self.name}: {why}", parameter=parameter)

    def find_parameter(self, name: str) -> Parameter:
        """By name, ignoring case and trailing underscores. Raises InvalidCall, which suggests a
        similar name."""
        parameter = self._by_name.get(name.rstrip("_").lower())
        if parameter is None:
            known = [parameter.name for parameter in self.parameters]
            near = difflib.get_close_matches(name, known, n=1)
            takes = f"it takes {', '.join(known) or 'no parameters'}"
            hint = f"did you mean {near[0]}?" if near else takes
            raise InvalidCall(f"{self.name} has no parameter {name}; {hint}", parameter=name)
        return parameter


@dataclass(frozen=True)
class Call:
    """An operation with its wire parameters, without the key, as it is requested and archived."""

    operation: Operation
    params: dict[str, str]

    @cached_property
    def key(self) -> str:
        """32 hex digits; equal calls have equal keys, in any order of their parameters."""
        parts = [self.operation.name]
        for name, value in sorted(self.params.items()):
            parts += [name, value]
        content = "\0".join(parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16).hexdigest()

    @property
    def public_params(self) -> dict[str, str]:
        """The parameters as they may be logged and archived."""
        secret = {parameter.name for parameter in self.operation.parameters if parameter.secret}
        return {
            name: "***" if name.partition("[")[0] in secret else value
            for name, value in self.params.items()
        }

    def __repr__(self) -> str:
        # names only: the values are personal data
        return f"Call({self.operation.name}: {', '.join(self.params)})"

    def __hash__(self) -> int:
        return hash(self.key)


class Area(dict[str, Operation]):
    """The operations of one area by name, as `operations/NAME.toml` declares them: their members
    are those of `Operation`.

    `content` in that file holds lists of parameters that several operations take after their own.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        path = Path(__file__).with_name("operations") / f"{name}.toml"
        declared = tomllib.loads(path.read_text(encoding="utf-8"))
        content = declared.pop("content", {})
        super().__init__()
        for operation, members in declared.items():
            self[operation] = self._declare_operation(operation, members, content)

    def declare_rows(self, name: str, rows: ReadRows, *records: type[Record]) -> Operation:
        """The operation of that name, which fills tables: `rows` finds these records in its
        payload."""
        self[name] = replace(self[name], rows=rows, records=records)
        return self[name]

    @staticmethod
    def _declare_operation(
        name: str, members: dict[str, Any], content: Mapping[str, list[Any]]
    ) -> Operation:
        rows = members.pop("parameters", [])
        rows += content.get(members.pop("content", ""), [])
        effect = Effect(members.pop("effect", "write"))
        is_read = effect is Effect.READ
        declared = {
            "method": "GET" if is_read else "POST",
            "result": [] if is_read else ["item"],
            **members,
        }
        attributes: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in declared.items()
        }
        parameters = msgspec.convert(rows, tuple[Parameter, ...])
        return Operation(name, effect=effect, parameters=parameters, **attributes)
