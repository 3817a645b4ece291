"""What the rules of all areas have in common: what they are given (a CheckedCall), how they refuse, shapes of
values."""

import datetime as dt
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from marketing_api.operation import Operation
from marketing_api.sandbox.seed import Thing
from marketing_api.sandbox.tenant import Tenant
from marketing_api.sandbox.world import Shelf

#: Error codes besides 1000 and 1002 are assumed: the specification shows none.
WRONG_KEY, UNAVAILABLE, NOT_FOUND, NOT_VALID = 1000, 1002, 1003, 1004

Params = dict[str, str]


class Refusal(Exception):
    """An error of the service: an envelope with header `error`."""

    def __init__(self, code: int, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code, self.message, self.fields = code, message, fields


def missing(what: str) -> Refusal:
    return Refusal(NOT_FOUND, f"{what} doesn't exist")


@dataclass
class Streamed:
    """A payload too large to hold: `head`, then the items in batches, then `tail`, as JSON text."""

    head: str
    batches: Iterator[list[str]]
    tail: str
    numbered: bool = False


#: What a rule returns: the members of `data`.
Payload = dict[str, Any] | Streamed


class CheckedCall:
    """One request to one operation, its parameters checked and in wire form; `fields` is the map of
    custom-field values."""

    def __init__(
        self, tenant: Tenant, operation: Operation, params: Params, fields: Params, now: int, arrived: float
    ) -> None:
        self.world, self.switches, self.moments = tenant.world, tenant.switches, tenant.moments
        self.operation, self.params, self.fields, self.now = operation, params, fields, now
        self._tenant, self._arrived = tenant, arrived

    def later(self, seconds: int, action: Callable[[], None]) -> None:
        if seconds:
            self._tenant.pending.append((self._arrived + seconds, action))
        else:
            action()

    # parameters

    def get(self, name: str, default: str = "") -> str:
        return self.params.get(name) or default

    def has(self, name: str) -> bool:
        return bool(self.params.get(name))

    def id(self, name: str = "id") -> int:
        """A numeric id; anything else names nothing that exists."""
        text = self.params.get(name, "").strip()
        return int(text) if text.isdecimal() and len(text) < 19 else -1

    def ids(self, name: str) -> list[int]:
        return [int(word) if word.isdecimal() else -1 for word in self.words(name)]

    def words(self, name: str) -> list[str]:
        return [word for part in self.get(name).split(",") if (word := part.strip())]

    def is_true(self, name: str) -> bool:
        return self.get(name).lower() in ("true", "1", "yes")

    def day(self, name: str, days_later: int = 0) -> int:
        try:
            return self.moments.midnight(
                dt.date.fromisoformat(self.get(name)) + dt.timedelta(days=days_later)
            )
        except (ValueError, OverflowError):  # the first and last years that there are
            raise Refusal(NOT_VALID, f"{name} is not valid", (name,)) from None

    def between(self) -> tuple[int, int]:
        """The range of `from` … `to`, both days included, as unix seconds; open ends are far away."""
        return self.day("from") if self.has("from") else 0, self.day("to", days_later=1) if self.has(
            "to"
        ) else 1 << 40

    def moment(self, name: str) -> int:
        """The given local `Y-m-d H:i:s`, or `m/d/Y` with or without `H:i`, as unix seconds."""
        text = self.get(name)
        try:
            if "/" in text:
                return self.moments.unix(
                    dt.datetime.strptime(text if ":" in text else f"{text} 00:00", "%m/%d/%Y %H:%M")
                )
            return self.moments.unix(dt.datetime.fromisoformat(text))
        except (ValueError, OverflowError):
            raise Refusal(NOT_VALID, f"{name} is not valid", (name,)) from None

    def must_exist(self, what: str, wanted: Iterable[Any], known: Container[Any]) -> None:
        """A Refusal when a write names something that is not there, unless the switch `unknown-ids` accepts
        it."""
        if self.switches["unknown-ids"] == "refuse" and any(one not in known for one in wanted):
            raise missing(what)

    # things on a shelf, named by `id`

    def existing(self, shelf: Shelf) -> Thing:
        if (thing := shelf.all(self.now).get(self.id())) is None:
            raise missing(f"The {shelf.name}")
        return thing

    def edited(self, shelf: Shelf, changes: Thing) -> Payload:
        self.existing(shelf)
        shelf.edit(self.id(), changes)
        return done(shelf, "updated")

    def deleted(self, shelf: Shelf) -> Payload:
        self.existing(shelf)
        shelf.delete(self.id())
        return done(shelf, "deleted")

    # shapes

    def an_id(self, value: int) -> str | int:
        return value if self.switches["ids"] == "number" else str(value)

    def items(self, entries: Iterable[Any]) -> Any:
        found = list(entries)
        if not found or self.switches["items"] == "list":
            return found
        return {str(place): entry for place, entry in enumerate(found, 1)}

    def map(self, entries: Mapping[str, Any]) -> Any:
        return [] if not entries and self.switches["empty-object"] == "list" else dict(entries)

    def listing(self, name: str, entries: list[Any], count: int | None = None) -> Payload:
        """The payload of a listing; `count` where it is not that of the entries."""
        return {name: {"count": len(entries) if count is None else count, "items": self.items(entries)}}

    def page(self, entries: list[Any], default_limit: int) -> tuple[int, list[Any]]:
        """(count to show, entries of the requested page); a page past the end counts 0 (api-observed row
        14)."""
        offset, limit = self.window(default_limit)
        shown = entries[offset : offset + limit]
        return (len(entries) if self.switches["count"] == "total" and shown else len(shown)), shown

    def window(self, default_limit: int) -> tuple[int, int]:
        limit = (
            default_limit
            if self.switches.is_on("limit-ignored")
            else _positive(self.get("limit"), default_limit)
        )
        if cap := self.switches.number("page-cap"):
            limit = min(limit, cap)
        page = 1 if self.switches.is_on("page-ignored") else _positive(self.get("page"), 1)
        return (page - 1) * limit, limit


def _positive(text: str, default: int) -> int:
    try:
        return max(1, int(float(text)))
    except ValueError:
        return default


def done(shelf: Shelf, verb: str) -> dict[str, Any]:
    return {"item": f"The {shelf.name} was {verb} successfully"}


def added(shelf: Shelf, thing: Thing) -> Payload:
    shelf.add(thing)
    return done(shelf, "added")


Rule = Callable[[CheckedCall], Payload]
RULES: dict[str, Rule] = {}


def rule(name: str) -> Callable[[Rule], Rule]:
    def declare(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return declare
