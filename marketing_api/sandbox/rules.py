"""What the rules of all areas have in common: what they are given (a CheckedCall), how they refuse,
shapes of values, and the one rule of all things of a kind (Resource)."""

import datetime as dt
import math
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from marketing_api.operation import Effect, Operation
from marketing_api.sandbox.seed import NEVER, WORDS, Thing
from marketing_api.sandbox.subscribers import Contact
from marketing_api.sandbox.world import World

#: Error codes besides 1000 and 1002 are assumed: the specification shows none.
WRONG_KEY = 1000
UNAVAILABLE = 1002
NOT_FOUND = 1003
NOT_VALID = 1004

T = TypeVar("T")
Params = dict[str, str]


@dataclass(eq=False)
class Refusal(Exception):
    """An error of the service: an envelope with header `error`."""

    code: int
    message: str
    fields: tuple[str, ...] = ()


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
    arrived: float = -math.inf

    def __post_init__(self) -> None:
        self.moments = self.world.moments
        self.observes = self.world.observes
        self.subscribers = self.world.subscribers

    # parameters

    def __getitem__(self, name: str) -> str:
        """The parameter in wire form, empty where it was not sent."""
        return self.params.get(name, "")

    def id(self, name: str = "id") -> int:
        return _as_id(self[name])

    def ids(self, name: str) -> list[int]:
        return list(map(_as_id, self.words(name)))

    def words(self, name: str) -> list[str]:
        return [word for part in self[name].split(",") if (word := part.strip())]

    def wants(self, name: str, word: str) -> bool:
        """Whether the list in that parameter names the word; without a list it names all."""
        return not {"all", word}.isdisjoint(self.words(name) or ["all"])

    def pick(self, *names: str) -> Thing:
        """Those of these parameters that were sent."""
        return {name: self[name] for name in names if self[name]}

    def is_true(self, name: str) -> bool:
        return self[name] == "true"

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
        first = 0
        if self["from"]:
            first = self.moment("from")
        return first, self.moment("to", days_later=1) if self["to"] else NEVER

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
        thing = self.things(kind).get(self.id())
        if thing is None:
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

    def must_exist(self, what: str, named: Iterable[Any], known: Container[Any]) -> None:
        """A Refusal when a write names something that is not there."""
        if any(one not in known for one in named):
            raise missing(what)

    # shapes

    def page(self, entries: list[T], default_limit: int) -> tuple[int, list[T]]:
        """(count to show, entries of the requested page); a page past the end counts 0 (observation
        14)."""
        limit = max(1, int(float(self["limit"] or default_limit)))
        offset = (max(1, int(float(self["page"] or 1))) - 1) * limit
        return len(entries) if offset < len(entries) else 0, entries[offset : offset + limit]

    def page_as_observed(self, entries: list[T]) -> tuple[int, list[T]]:
        """The count and the entries to show where paging is not specified (observation 14)."""
        is_paged = self.observes("contact-paging")
        if is_paged:
            return self.page(entries, 100)
        return (len(entries), entries)

    def show_past(self, at: int, form: str = "iso-12h") -> str:
        """The moment as text if it is over."""
        return self.moments.text(at, form) if at <= self.now else "N/A"

    def done(self, what: str, verb: str, new: int = 0) -> Thing:
        """The response to a write (observation 7): a sentence, and where it is declared the new
        id."""
        sentence = f"The {what} was {verb} successfully"
        return {name: sentence if name == "item" else str(new) for name in self.operation.result}


def _as_id(text: str) -> int:
    """A numeric id; anything else names nothing that exists."""
    if text.isdecimal() and len(text) < 19:
        return int(text)
    return -1


def show_thing(kind: str, thing_id: int, thing: Thing, **computed: Any) -> Thing:
    """A thing as the service shows it: its id, its members in the shape and the words of its kind,
    and computed ones."""
    words = WORDS["shown_words"].get(kind, {})
    worded = thing | {member: texts[thing[member]] for member, texts in words.items()}
    return {"id": str(thing_id)} | _fill_shape(WORDS["shapes"][kind], worded) | computed


def _fill_shape(shape: Thing, thing: Thing) -> Thing:
    return {
        name: _fill_shape(member, thing) if isinstance(member, dict) else thing.get(member, "")
        for name, member in shape.items()
    }


def show_list(entries: list[Any]) -> Thing:
    return {"count": len(entries), "items": entries}


@dataclass
class Resource:
    """The rule of the operations that list, show, add, change and delete things of one kind: which
    of these one does follows from its declaration. `read_members` are the members that a call
    sends, `make_members` further ones of an added thing, and `compute_members` those in responses
    only."""

    kind: str
    read_members: Callable[[CheckedCall], Thing] = lambda call: call.params
    make_members: Callable[[CheckedCall], Thing] = lambda _: {}
    compute_members: Callable[[CheckedCall, int, Thing], Thing] = lambda *_: {}

    def show(self, call: CheckedCall, thing_id: int, thing: Thing) -> Thing:
        computed = self.compute_members(call, thing_id, thing)
        return show_thing(self.kind, thing_id, thing, **computed)

    def __call__(self, call: CheckedCall) -> Thing:
        kind = self.kind
        operation = call.operation
        if operation.is_listing:
            return show_list([self.show(call, *one) for one in call.things(kind).items()])
        if operation.is_read:
            return self.show(call, call.id(), call.existing(kind))
        if operation.effect is Effect.DELETE:
            call.existing(kind)
            del call.world.things[kind][call.id()]
            return call.done(kind, "deleted")
        if call["id"]:
            call.world.things[kind][call.id()] = call.existing(kind) | self.read_members(call)
            return call.done(kind, "updated")
        thing = WORDS["defaults"].get(kind, {}) | self.make_members(call) | self.read_members(call)
        return call.done(kind, "added", call.add(kind, thing))
