"""What each read is expected to answer (`expected.toml`), and in what a real response differs from it.

What is found names members and forms, never values, so that it may be shown to anybody. Not here: whether a
response may be loaded (`validation`, `parsing`, which forgive much more), which requests are sent to find out
(`pipelines.commands.probe`)."""

import datetime as dt
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from marketing_api.envelope import Envelope, decode
from marketing_api.exchange import Response
from marketing_api.operation import Operation
from marketing_api.records.shapes import is_numbered
from marketing_api.records.values import (
    is_nothing,
    read_bool,
    read_clicker,
    read_decimal,
    read_moment,
    read_or_none,
    read_share,
)

#: Entries of one collection that are compared.
MOST = 1000
#: Date-times as the specification and observation 21 have them, with 9 for a digit.
_MOMENTS = {
    *(
        "99/99/9999 99:99",
        "99/99/9999 99:99 AM",
        "9999-99-99 99:99:99",
        "9999-99-99 99:99 AM",
        "9999-99-99 99:99AM",
    ),
    *("99-99-9999 99:99 AM", "9999999999", "999999999", "99/99/9999", "9999-99-99", "99/99/9999 9:99 AM"),
}
_DAYS = {"99-99-9999"} | _MOMENTS
_CLOCKS = {"99:99 AM", "99:99AM", "99:99", "9:99 AM"}
_HALF_OF_DAY, _DATE_LIKE = re.compile("[AaPp][Mm]"), re.compile(r"[\d/:.\-+ TZ]*")
#: Members around the payload, in lower case. Where the rate limit stands is not specified.
_ANYWHERE = {"rate-limit"}
_LEVELS = {
    "": {"response", *_ANYWHERE},
    "response.": {"header", "data", *_ANYWHERE},
    "header.": {"status", "datatype", "limit", "cached", *_ANYWHERE},
}
UNANNOUNCED = "a member that nobody announced"
#: Names of members that may be shown; another may be somebody's.
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,39}", re.ASCII)


def form_of(value: Any) -> str:
    """What a value is like: its type in JSON, and of dates and numbers in a text how they are written."""
    match value:
        case None:
            return "null"
        case "":
            return "empty text"
        case bool():
            return "true or false"
        case int() | float():
            return "number"
        case list():
            return "list"
        case dict():
            return "object keyed by number" if is_numbered(value) else "object"
    is_dated = len(value) <= 30 and _DATE_LIKE.fullmatch(_HALF_OF_DAY.sub("", value))
    if not is_dated or not any(map(str.isdigit, value)):
        return "text"
    is_number = read_or_none(read_decimal, value) is not None
    return "number in a text" if is_number else f"text like {_pattern(value)}"


def _pattern(text: str) -> str:
    return _HALF_OF_DAY.sub("AM", re.sub(r"\d", "9", text))


def _is_in(patterns: set[str]) -> Callable[[Any], bool]:
    return lambda value: (
        is_nothing(value) or (not isinstance(value, (bool, dict, list)) and _pattern(str(value)) in patterns)
    )


def _reads(read: Callable[[Any], Any]) -> Callable[[Any], bool]:
    return lambda value: is_nothing(value) or read_or_none(read, value) is not None


_COLLECTIONS = ("list", "map")
#: Whether a value is of a scalar kind. Nothing may stand in the place of any.
_SCALARS: Mapping[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "text": lambda value: value is None or value == [] or isinstance(value, str),
    "word": lambda value: isinstance(value, str) and value.isalpha(),
    "number": lambda value: not isinstance(value, bool) and _reads(read_decimal)(value),
    "flag": _reads(read_bool),
    "share": _reads(read_share),
    "clicker": _reads(read_clicker),
    "moment": _is_in(_MOMENTS),
    "day": _is_in(_DAYS),
    "clock": _is_in(_CLOCKS),
    "zone": lambda value: is_nothing(value) or value in available_timezones(),
}


@dataclass(frozen=True)
class Read:
    """How one read is tried: `kind` of its payload, `rows` of the observations (docs/how-sure.md) about it,
    parameters as `expected.toml` gives them, those of `whole` in the place of some where a listing is read as
    one page."""

    kind: str
    rows: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    whole: Mapping[str, Any] = field(default_factory=dict)
    may_be_refused: bool = False


@dataclass(frozen=True)
class Member:
    name: str
    kind: str
    rows: str
    is_optional: bool
    is_specified: bool


@cache
def types() -> Mapping[str, tuple[Member, ...]]:
    return {
        name: tuple(_member(*item) for item in members.items())
        for name, members in _declared()["types"].items()
    }


@cache
def reads() -> Mapping[str, Read]:
    """By operation, in the order in which they can be tried."""
    return {name: Read(**each) for name, each in _declared()["reads"].items()}


@cache
def _declared() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _member(name: str, kind: str | list[str]) -> Member:
    of, rows = (kind, "") if isinstance(kind, str) else kind
    is_optional = name.endswith("?") or "*" in name
    return Member(name.rstrip("?"), of, rows.removeprefix("only "), is_optional, not rows.startswith("only "))


@dataclass(frozen=True, order=True)
class Deviation:
    """In one place of an operation's responses; `expected` and `found` in words."""

    operation: str
    place: str
    expected: str
    found: str


@dataclass
class Comparison:
    """What was found in the responses to one operation. `forms`: how often each place had which form. `seen`:
    of each TYPE.MEMBER the first value, and under `TYPE.MEMBER last` the last one, to ask about."""

    operation: str
    deviations: set[Deviation] = field(default_factory=set)
    forms: Counter[tuple[str, str]] = field(default_factory=Counter)
    seen: dict[str, Any] = field(default_factory=dict, repr=False)
    _entries: Counter[tuple[str, str]] = field(default_factory=Counter)
    _present: Counter[tuple[str, str]] = field(default_factory=Counter)

    def response(self, response: Response, zone: ZoneInfo | None) -> None:
        """Compare a whole response, with what stands around its payload."""
        operation, envelope = response.call.operation, response.envelope
        self._around(operation, envelope)
        if "limit" in (header := envelope.header or {}):
            self._value(decode(header["limit"]), "number", "header.limit")
        payload = envelope.decoded(operation)
        if not operation.at:
            payload = {name: each for name, each in payload.items() if name.lower() not in _ANYWHERE}
        self._value(payload, reads()[operation.name].kind, operation.at or "data")
        self._compare_clocks(payload, zone)

    def _around(self, operation: Operation, envelope: Envelope) -> None:
        levels = dict(_LEVELS) if not envelope.bare else {}
        if operation.at:  # else `data` is the payload
            levels["data."] = {operation.at.lower(), *_ANYWHERE}
        for level, known in levels.items():
            for name in envelope.levels[level]:
                if name.lower() not in known:
                    self._deviates(f"{level}{shown(name)}", "nothing", UNANNOUNCED)

    def missing(self) -> None:
        """Note what entries lacked; when all are compared."""
        for (place, kind), count in self._entries.items():
            for member in types()[kind]:
                lacking = count - self._present[place, member.name]
                if lacking and not member.is_optional:
                    self._deviates(
                        f"{place}.{member.name}",
                        "to be there",
                        "missing" if lacking == count else "missing from some entries",
                    )

    def _deviates(self, place: str, expected: str, found: str) -> None:
        self.deviations.add(Deviation(self.operation, place, expected, found))

    def _value(self, value: Any, kind: str, place: str) -> None:
        """As the first of the alternatives that has its form, else as the first one."""
        kinds = kind.split(" | ")
        kind = next((each for each in kinds if _has_form(value, each)), kinds[0])
        head, _, rest = kind.partition(" ")
        if head == "listing":
            self._listing(value, rest, place)
            return
        self.forms[place, form_of(value)] += 1
        if not _has_form(value, kind):
            expected = f"a {head}" if head in _COLLECTIONS else "an object" if kind in types() else kind
            self._deviates(place, expected, form_of(value))
        elif kind in types():
            if isinstance(value, dict):  # or nothing, as PHP writes it
                self._members(value, kind, place)
        elif head in _COLLECTIONS:
            self._entries_of(value, rest.removeprefix("of "), f"{place}{'[]' if head == 'list' else '{}'}")

    def _entries_of(self, value: Any, kind: str, place: str) -> None:
        for each in list(value.values() if isinstance(value, dict) else value or [])[:MOST]:
            self._value(each, kind, place)

    def _listing(self, value: Any, rest: str, place: str) -> None:
        how, _, kind = rest.partition(" ")
        items = f"{'list' if how == 'of' else 'map'} of {kind}"
        if not isinstance(value, dict):
            self._value(value, items, place)
            return
        parts = {"items": items, "count": "number"}
        for name, each in value.items():
            if (part := parts.pop(name.lower(), None)) is not None:
                self._value(each, part, f"{place}.{name.lower()}")
            else:
                self._deviates(f"{place}.{shown(name)}", "nothing", UNANNOUNCED)
        for name in parts:
            self._deviates(f"{place}.{name}", "to be there", "missing")

    def _members(self, value: Mapping[str, Any], kind: str, place: str) -> None:
        self._entries[place, kind] += 1
        for name, each in value.items():
            member = _declared_as(kind, name)
            if member is None:
                self._deviates(f"{place}.{shown(name)}", "nothing", UNANNOUNCED)
                continue
            self._present[place, member.name] += 1
            self._value(each, member.kind, f"{place}.{member.name}")
            if not is_nothing(each):
                self.seen.setdefault(f"{kind}.{member.name}", each)
                self.seen[f"{kind}.{member.name} last"] = each

    def _compare_clocks(self, value: Any, zone: ZoneInfo | None) -> None:
        """Local times stand beside timestamps in timelines: they must mean the same moment."""
        for entry in _with_both(value):
            stamp = read_or_none(lambda each: read_moment(each, dt.UTC), entry["timestamp"])
            local = read_or_none(lambda each: read_moment(each, zone or dt.UTC), entry["datetime"])
            if zone and stamp and local and abs(stamp - local) >= dt.timedelta(minutes=1):
                self._deviates("datetime", "the timestamp in the account's time zone", "another moment")


def _has_form(value: Any, kind: str) -> bool:
    """Whether the value itself is of the kind, whatever is in it. Nothing may stand in the place of any."""
    head = kind.partition(" ")[0]
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if head == "listing":
        items = value.get("items") if isinstance(value, dict) else value
        return _has_form(items, "list" if kind.startswith("listing of") else "map")
    if value in (None, "", [], {}):
        return True
    if head == "list":
        return isinstance(value, list) or is_numbered(value)
    return isinstance(value, dict) and (head == "map" or not is_numbered(value))


def _with_both(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict) and value.keys() >= {"timestamp", "datetime"}:
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _with_both(each)


def _declared_as(kind: str, name: str) -> Member | None:
    folded = name.lower()
    exact = (member for member in types()[kind] if member.name.lower() == folded)
    wild = (member for member in types()[kind] if "*" in member.name and fnmatchcase(name, member.name))
    return next(exact, None) or next(wild, None)


def shown(name: str) -> str:
    """A member's name as it may be told."""
    return name if _NAME.fullmatch(name) else "(a name that is not shown)"
