"""What the rules of all areas have in common: what they are given (a CheckedCall), how they refuse,
shapes of values, and the one rule of all things of a kind (Resource)."""

import datetime as dt
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from marketing_api.operation import Effect, Operation
from marketing_api.sandbox.seed import WORDS, Thing
from marketing_api.sandbox.subscribers import Contact
from marketing_api.sandbox.world import World

#: Error codes besides 1000 and 1002 are assumed: the specification shows none.
WRONG_KEY, UNAVAILABLE, NOT_FOUND, NOT_VALID = 1000, 1002, 1003, 1004

T = TypeVar("T")
Params = dict[str, str]


class Refusal(Exception):
    """An error of the service: an envelope with header `error`; `outcome` is what the log says of
    it."""

    def __init__(
        self, code: int, message: str, fields: tuple[str, ...] = (), outcome: str = ""
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.fields, self.outcome = (
            code,
            message,
            fields,
            outcome or str(code),
        )


def missing(what: str) -> Refusal:
    return Refusal(NOT_FOUND, f"The {what} doesn't exist")


def invalid(name: str, what: str = "is not valid") -> Refusal:
    return Refusal(NOT_VALID, f"{name} {what}", (name,))


@dataclass
class CheckedCall:
    """One request to one operation, its parameters checked and in wire form; `fields` is the map of
    custom-field values."""

    world: World
    operation: Operation
    params: Params
    fields: Params
    now: int
    arrived: float = 0.0

    def __post_init__(self) -> None:
        self.moments, self.observes = self.world.moments, self.world.observes
        self.subscribers = self.world.subscribers

    # parameters

    def __getitem__(self, name: str) -> str:
        """The parameter in wire form, empty where it was not sent."""
        return self.params.get(name, "")

    def id(self, name: str = "id") -> int:
        return _as_id(self[name].strip())

    def ids(self, name: str) -> list[int]:
        return list(map(_as_id, self.words(name)))

    def words(self, name: str) -> list[str]:
        return [word for part in self[name].split(",") if (word := part.strip())]

    def wants(self, name: str, word: str) -> bool:
        """Whether the list that is given names the word; without one, everything is wanted."""
        return not {"all", word}.isdisjoint(self.words(name) or ["all"])

    def given(self, *names: str, **otherwise: str) -> Thing:
        """The parameters that were sent, some of which are known by other names."""
        members = dict(zip(names, names, strict=True)) | otherwise
        return {member: self[name] for name, member in members.items() if self[name]}

    def given_ids(self, *names: str) -> Thing:
        return {name: self.id(name) for name in names if self[name]}

    def is_true(self, name: str) -> bool:
        return self[name].lower() in ("true", "1", "yes")

    def moment(self, name: str, days_later: int = 0) -> int:
        """The given local day or date-time, as unix seconds."""
        text = self[name]
        try:
            if "/" in text:
                local = dt.datetime.strptime(text, "%m/%d/%Y %H:%M" if ":" in text else "%m/%d/%Y")
            else:
                local = dt.datetime.fromisoformat(text)
            return self.moments.unix(local + dt.timedelta(days=days_later))
        except (ValueError, OverflowError):  # the first and last years that there are
            raise invalid(name) from None

    def between(self) -> tuple[int, int]:
        """The range of `from` … `to`, both days included, as unix seconds; open ends are far
        away."""
        first = self.moment("from") if self["from"] else 0
        return first, self.moment("to", days_later=1) if self["to"] else 1 << 40

    # what the account owns

    def things(self, kind: str) -> dict[int, Thing]:
        """Everything of that kind that is there, by id."""
        return self.world.find_things(kind, self.now)

    def add(self, kind: str, thing: Thing) -> int:
        """Returns its id."""
        new = next(self.world.ids)
        self.world.things[kind][new] = thing | {"since": self.now}
        return new

    def existing(self, kind: str) -> Thing:
        """What `id` names."""
        if (thing := self.things(kind).get(self.id())) is None:
            raise missing(kind)
        return thing

    def contacts(self) -> list[Contact]:
        """The contacts that the call names by id, or by address."""
        if not self["id"]:
            found = self.subscribers.by_email(self["email"], self.now)
        else:
            contact = self.subscribers.get(self.id(), self.now)
            found = [contact] if contact else []
        if not found:
            raise missing("contact")
        return found

    def contact(self) -> Contact:
        """By address the first one."""
        return self.contacts()[0]

    def must_exist(self, what: str, wanted: Iterable[Any], known: Container[Any]) -> None:
        """A Refusal when a write names something that is not there."""
        if any(one not in known for one in wanted):
            raise missing(what)

    # shapes

    def page(self, entries: list[T], default_limit: int) -> tuple[int, list[T]]:
        """(count to show, entries of the requested page); a page past the end counts 0 (observation
        14)."""
        limit = max(1, int(float(self["limit"] or default_limit)))
        offset = (max(1, int(float(self["page"] or 1))) - 1) * limit
        return len(entries) if offset < len(entries) else 0, entries[offset : offset + limit]

    def done(self, what: str, verb: str, new: int = 0) -> Thing:
        """The response to a write (observation 7): a sentence, and where it is declared the new
        id."""
        sentence = f"The {what} was {verb} successfully"
        return {name: sentence if name == "item" else str(new) for name in self.operation.result}


def _as_id(text: str) -> int:
    """A numeric id; anything else names nothing that exists."""
    return int(text) if text.isdecimal() and len(text) < 19 else -1


def show_thing(thing_id: int, thing: Thing, *members: str, **others: Any) -> Thing:
    """A thing as the service shows it: its id, these members of it, and others."""
    return {"id": str(thing_id)} | {name: thing[name] for name in members} | others


def show_list(entries: list[Any]) -> Thing:
    return {"count": len(entries), "items": entries}


def translate_members(kind: str, thing: Thing) -> dict[str, str]:
    """The members of a thing that the service shows in other words than it takes."""
    return {member: texts[thing[member]] for member, texts in WORDS[f"{kind}_words"].items()}


@dataclass
class Resource:
    """The rule of the operations that list, show, add, change and delete things of one kind: which
    of these one does follows from its declaration. `given` are the members that a call sends, `new`
    those of an added thing besides."""

    kind: str
    show: Callable[[CheckedCall, int, Thing], Thing] = lambda *_: {}
    given: Callable[[CheckedCall], Thing] = lambda _: {}
    new: Callable[[CheckedCall], Thing] = lambda _: {}

    def __call__(self, call: CheckedCall) -> Any:
        kind, operation = self.kind, call.operation
        if operation.is_listing:
            return show_list([self.show(call, *one) for one in call.things(kind).items()])
        if operation.is_read:
            return self.show(call, call.id(), call.existing(kind))
        if operation.effect is Effect.DELETE:
            call.existing(kind)
            del call.world.things[kind][call.id()]
            return call.done(kind, "deleted")
        if call["id"]:
            call.world.things[kind][call.id()] = call.existing(kind) | self.given(call)
            return call.done(kind, "updated")
        thing = WORDS["defaults"].get(kind, {}) | self.new(call) | self.given(call)
        return call.done(kind, "added", call.add(kind, thing))
