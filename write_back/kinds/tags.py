"""Tags: all tags of one contact and action go in one request; what was tagged before is not tagged again.

No operation reads tags, so only what was sent before tells, and nothing is read back. Row order does not
matter: rows that contradict each other are all bad."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from marketing_api.contact_lookup import Found
from marketing_api.records.contacts import ADDTAG, REMOVETAG
from write_back.account_state import Person, Who, read_who
from write_back.input import values
from write_back.input.columns import Spec
from write_back.input.rows import shown, text_of
from write_back.item import Effect, EffectKind, Item, Past, State
from write_back.kinds.kind import BY_WHO, WHO, Kind
from write_back.planning import QUEUED, SENT_BEFORE, Planning, bound, resolve

ADD, REMOVE = "add", "remove"


class _Row(NamedTuple):
    number: int
    who: Who
    tags: tuple[str, ...]
    action: str


class _Target(NamedTuple):
    """What one request is about: a contact, or everybody with the address."""

    contact_id: int | None
    address: str | None
    action: str


@dataclass
class _Request:
    """A request in the making: `tags` → the first row that wants it."""

    person: Person
    tags: dict[str, int] = field(default_factory=dict)
    rows: set[int] = field(default_factory=set)
    is_new: bool = False


class _Gathering:
    """Resolves people, sorts out contradictions and repetitions, and gathers the rest into requests."""

    def __init__(self, planning: Planning, rows: list[_Row]) -> None:
        self._planning, self._options = planning, planning.options
        self._rows = list(resolve(planning, rows, needs_address="tagging"))
        self._past = planning.last(
            subject for row, person in self._rows for subject in _subjects(row, person)
        )
        self._requests: dict[_Target, _Request] = {}

    def run(self) -> None:
        seen: dict[tuple[_Target, str], int] = {}
        for row, person in self._without_contradictions():
            parts = [(target, tag) for target in _targets(row, person) for tag in row.tags]
            left = [part for part in parts if part not in seen]
            if not left:
                self._planning.reject(row.number, f"it says the same as row {seen[parts[0]]}")
            for target, tag in left:
                seen[target, tag] = row.number
                self._decide(row, person, target, tag)
        for target, request in self._requests.items():
            self._planning.send(
                _item(self._planning, target, request),
                is_new=request.is_new,
                is_unknown_address=not request.person.ids,
            )

    def _without_contradictions(self) -> list[tuple[_Row, Person]]:
        """Rows that no other row contradicts: adding and removing a tag of one address."""
        wanted: dict[tuple[str, str, str], int] = {}
        for row, person in self._rows:
            for tag in row.tags:
                wanted.setdefault((person.address or "", tag, row.action), row.number)
        left = []
        for row, person in self._rows:
            other = REMOVE if row.action == ADD else ADD
            against = [
                (tag, wanted[key])
                for tag in row.tags
                if (key := (person.address or "", tag, other)) in wanted
            ]
            if against:
                tag, number = against[0]
                words = "removes" if row.action == ADD else "adds"
                self._planning.reject(
                    row.number,
                    f"row {number} {words} the tag {shown(tag)} of the same contact: keep one of them",
                )
            else:
                left.append((row, person))
        return left

    def _decide(self, row: _Row, person: Person, target: _Target, tag: str) -> None:
        contact_ids = person.contacts if target.contact_id is None else [target.contact_id]
        pasts = [self._latest(contact_id, person.address, tag) for contact_id in contact_ids]
        is_so = all(past is not None and past.content == target.action and past.is_in_force for past in pasts)
        is_queued = is_so and any(past is not None and past.is_open for past in pasts)
        refused = [
            past
            for past in pasts
            if past is not None and past.state is State.REJECTED and past.content == target.action
        ]
        if is_so and (is_queued or not self._options.send_all):
            self._planning.leave(
                row.number, QUEUED if is_queued else SENT_BEFORE, person.email, target.contact_id
            )
        elif refused:
            self._planning.reject_as_before(row.number, refused[0])
        else:
            request = self._requests.setdefault(target, _Request(person))
            request.tags[tag] = row.number
            request.rows.add(row.number)
            request.is_new = request.is_new or (row.action == ADD and not any(pasts))
            self._planning.change(
                row.number, person.shown, "tag", *((None, tag) if row.action == ADD else (tag, None))
            )

    def _latest(self, contact_id: int | None, address: str | None, tag: str) -> Past | None:
        """The last thing done to the contact itself or to everybody with its address."""
        subjects = [f"{name}|{tag}" for name in (contact_id, address) if name is not None]
        pasts = [past for subject in subjects if (past := self._past.get(subject)) is not None]
        return max(pasts, key=lambda past: past.item_id, default=None)


def _targets(row: _Row, person: Person) -> list[_Target]:
    """Adding by address takes one request; removing needs the ids (in a variant), so one for each contact."""
    if row.who.contact_id is None and (row.action == ADD or not person.ids):
        return [_Target(None, person.address, row.action)]
    return [_Target(contact_id, person.address, row.action) for contact_id in person.ids]


def _subjects(row: _Row, person: Person) -> Iterator[str]:
    for name in person.names:
        yield from (f"{name}|{tag}" for tag in row.tags)


def _item(planning: Planning, target: _Target, request: _Request) -> Item:
    person, must_look_up = request.person, target.contact_id is None and target.action == REMOVE
    operation = ADDTAG if target.action == ADD else REMOVETAG
    tags = sorted(request.tags)
    params = bound(operation, lacks_id=must_look_up, email=person.email, id=target.contact_id, tagname=tags)
    names = (
        [str(target.contact_id)]
        if target.contact_id is not None
        else [target.address or "", *map(str, person.ids)]
    )
    return Item(
        planning.kind,
        tuple(sorted(request.rows)),
        operation,
        params,
        tuple(Effect(f"{name}|{tag}", target.action) for tag in tags for name in names),
        email=person.email,
        contact_id=target.contact_id,
        must_look_up=must_look_up,
    )


class Tags(Kind):
    """Effects: `who|tag`, with the action."""

    name = "tags"
    effect = EffectKind.TAGS
    columns = Spec({**WHO, "tag": ("tag",), "action": ("action",)}, (BY_WHO, ("tag",)))

    def plan(self, planning: Planning) -> None:
        """What is not tagged so yet."""
        cells = planning.picked.cells

        def read(index: int, number: int) -> _Row:
            action = values.action(cells["action"][index]) if "action" in cells else ADD
            tags = values.tags(text_of(cells["tag"][index]) or "")
            return _Row(number, read_who(cells, index), tags, action)

        if rows := list(planning.read(read)):
            _Gathering(planning, rows).run()

    def chosen(self, found: Sequence[Found]) -> tuple[int, ...]:
        """Tags are taken off all contacts of an address."""
        return tuple(sorted({one.contact_id for one in found}))


TAGS = Tags()
