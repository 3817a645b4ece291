"""Planning tags: all tags of one contact and action go in one request; what was tagged before is not tagged again.

No operation reads tags, so only what was sent before tells. Row order does not matter: rows that contradict each other are all bad.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from marketing_api.operations.contacts import ADDTAG, REMOVETAG
from pipelines.write_back.input import values
from pipelines.write_back.input.columns import pick
from pipelines.write_back.input.rows import Rows, shown, text_of
from pipelines.write_back.input.values import BadValue
from pipelines.write_back.item import Effect, Item, Kind, Past, Plan, State
from pipelines.write_back.planning.draft import QUEUED, SENT_BEFORE, Draft, Last, bound, is_done, is_open
from pipelines.write_back.planning.kinds.people import People, Person, Who, read_who
from pipelines.write_back.planning.known import Known
from pipelines.write_back.planning.options import Options

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


def plan(rows: Rows, known: Known, last: Last, options: Options) -> Plan:
    """What is not tagged so yet. Raises InputError for columns that cannot be used."""
    picked = pick(rows, Kind.TAGS, options)
    draft = Draft(known.account, Kind.TAGS, rows)
    for warning in picked.warnings:
        draft.warn(warning)
    read: list[_Row] = []
    for index in draft.indexes():
        try:
            action = values.action(picked.cells["action"][index]) if "action" in picked.cells else ADD
            tags = values.tags(text_of(picked.cells["tag"][index]) or "")
            read.append(_Row(rows.numbers[index], read_who(picked.cells, index), tags, action))
        except BadValue as problem:
            draft.reject(rows.numbers[index], str(problem))
    if read:
        _Planning(draft, known, last, options, read).run()
    return draft.plan()


class _Planning:
    """Resolves people, sorts out contradictions and repetitions, and gathers the rest into requests."""

    def __init__(self, draft: Draft, known: Known, last: Last, options: Options, rows: list[_Row]) -> None:
        self._draft = draft
        self._options = options
        self._rows = list(self._resolved(People(known, (row.who for row in rows)), rows))
        self._past = last(list(dict.fromkeys(subject for row, person in self._rows for subject in _subjects(row, person))))
        self._requests: dict[_Target, _Request] = {}

    def _resolved(self, people: People, rows: Iterable[_Row]) -> Iterator[tuple[_Row, Person]]:
        for row in rows:
            try:
                person = people.person(row.who)
                if person.email is None:
                    raise BadValue(
                        f"the address of contact {row.who.contact_id} is not known, and tagging needs it: give it in a column email"
                    )
                yield row, person
            except BadValue as problem:
                self._draft.reject(row.number, str(problem))

    def run(self) -> None:
        seen: dict[tuple[_Target, str], int] = {}
        for row, person in self._without_contradictions():
            parts = [(target, tag) for target in _targets(row, person) for tag in row.tags]
            left = [part for part in parts if part not in seen]
            if not left:
                self._draft.reject(row.number, f"it says the same as row {seen[parts[0]]}")
            for target, tag in left:
                seen[target, tag] = row.number
                self._decide(row, person, target, tag)
        for target, request in self._requests.items():
            self._draft.send(_item(target, request), is_new=request.is_new)

    def _without_contradictions(self) -> list[tuple[_Row, Person]]:
        """Rows that no other row contradicts: adding and removing a tag of one address."""
        wanted: dict[tuple[str, str, str], int] = {}
        for row, person in self._rows:
            for tag in row.tags:
                wanted.setdefault((person.address or "", tag, row.action), row.number)
        left = []
        for row, person in self._rows:
            other = REMOVE if row.action == ADD else ADD
            against = [(tag, wanted[key]) for tag in row.tags if (key := (person.address or "", tag, other)) in wanted]
            if against:
                tag, number = against[0]
                words = "removes" if row.action == ADD else "adds"
                self._draft.reject(row.number, f"row {number} {words} the tag {shown(tag)} of the same contact: keep one of them")
            else:
                left.append((row, person))
        return left

    def _decide(self, row: _Row, person: Person, target: _Target, tag: str) -> None:
        pasts = [self._latest(contact_id, person.address, tag) for contact_id in _ids(person, target)]
        is_so = all(past is not None and past.content == target.action and (is_done(past) or is_open(past)) for past in pasts)
        is_queued = is_so and any(is_open(past) for past in pasts)
        refused = [past for past in pasts if past is not None and past.state is State.REJECTED and past.content == target.action]
        if is_so and (is_queued or not self._options.send_all):
            self._draft.leave(row.number, QUEUED if is_queued else SENT_BEFORE, person.email, target.contact_id)
        elif refused:
            self._draft.reject_as_before(row.number, refused[0])
        else:
            request = self._requests.setdefault(target, _Request(person))
            request.tags[tag] = row.number
            request.rows.add(row.number)
            request.is_new = request.is_new or (row.action == ADD and not any(pasts))
            self._draft.change(row.number, person.shown, "tag", *((None, tag) if row.action == ADD else (tag, None)))

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


def _ids(person: Person, target: _Target) -> list[int | None]:
    return person.contacts if target.contact_id is None else [target.contact_id]


def _subjects(row: _Row, person: Person) -> Iterator[str]:
    for name in (*person.ids, person.address):
        if name is not None:
            yield from (f"{name}|{tag}" for tag in row.tags)


def _item(target: _Target, request: _Request) -> Item:
    person, must_look_up = request.person, target.contact_id is None and target.action == REMOVE
    operation = ADDTAG if target.action == ADD else REMOVETAG
    tags = sorted(request.tags)
    params = bound(operation, lacks_id=must_look_up, email=person.email, id=target.contact_id, tagname=tags)
    names = [str(target.contact_id)] if target.contact_id is not None else [target.address or "", *map(str, person.ids)]
    return Item(
        Kind.TAGS,
        tuple(sorted(request.rows)),
        operation,
        params,
        tuple(Effect(f"{name}|{tag}", target.action) for tag in tags for name in names),
        email=person.email,
        contact_id=target.contact_id,
        must_look_up=must_look_up,
    )
