"""One parameter of an operation, and how a Python value becomes its words on the wire.

Belongs here: kinds of values, their validation and their wire form. Not here: which parameters an operation has (`operations/`).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

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
