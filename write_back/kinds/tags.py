"""Tag pushes: all tags of one contact and action go in one request. A tag that was given before is
not given again.

The API does not return tags. So only earlier pushes show which tags a contact has, and nothing is
read back. The order of rows does not matter: rows that contradict each other are all rejected."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from marketing_api.contact_lookup import Found
from marketing_api.records.contacts import ADDTAG, REMOVETAG
from write_back.account_state import Person, Who, read_who
from write_back.input import values
from write_back.input.columns import Spec
from write_back.input.rows import Seen, show_name, text_of
from write_back.item import EffectKind, Item, Past
from write_back.kinds.kind import BY_WHO, WHO, Kind
from write_back.planning import Planning, bind_parameters, find_contradictions, find_standing

ADD = "add"
REMOVE = "remove"


class _Row(NamedTuple):
    number: int
    who: Who
    tags: tuple[str, ...]
    action: str


class _Target(NamedTuple):
    """The contact of a request, or everybody with the address."""

    contact_id: int | None
    address: str
    action: str


@dataclass(slots=True)
class _Request:
    """A request that gathers tags."""

    person: Person
    tags: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    is_new: bool = False


class TagsPlanning(Planning):
    """Finds the people, rejects contradictions, leaves repetitions, and gathers the rest into
    requests."""

    def plan_rows(self) -> None:
        actions = self.picked.cells.get("action", ())
        self._actions = actions if any(actions) else None
        rows = list(self.read_rows(self._read_row))
        people = list(self.find_people(rows, needs_address="tagging"))
        self._past = self.find_last(
            subject for row, person in people for subject in person.list_subjects(row.tags)
        )
        self._requests: dict[_Target, _Request] = {}
        for row, person in self._without_contradictions(people):
            self.try_row(row.number, self._gather_targets, row, person)
        self._past = {}  # the requests take as much memory
        for target, request in self._requests.items():
            item = self._make_item(target, request)
            is_unknown = not request.person.ids
            self.send_item(item, is_new=request.is_new, is_unknown_address=is_unknown)

    def _read_row(self, index: int, number: int) -> _Row:
        cells = self.picked.cells
        action = ADD
        if self._actions:
            action = values.read_action(self._actions[index])
        who = read_who(cells, index)
        tag_cell = cells["tag"][index]
        if isinstance(tag_cell, Seen) and "," in tag_cell:
            raise values.BadValue(
                "the tag is a number or date with a comma: format the cell as text"
            )
        tags = values.read_tags(text_of(tag_cell) or "")
        return _Row(number, who, tags, action)

    def _without_contradictions(
        self, people: list[tuple[_Row, Person]]
    ) -> Iterator[tuple[_Row, Person]]:
        """Rows without those that contradict another row: one adds a tag of an address, the other
        removes it."""
        addresses = {row.number: person.address for row, person in people}
        contradictions = find_contradictions(
            [row for row, _ in people],
            lambda row: {(addresses[row.number], tag): row.action for tag in row.tags},
        )
        for row, person in people:
            if row.number not in contradictions:
                yield row, person
                continue
            (_, tag), other = contradictions[row.number]
            verb = "removes" if row.action == ADD else "adds"
            what = f"row {other} {verb} the tag {show_name(tag)} of the same contact"
            self.reject_row(row.number, f"{what}: keep one of them")

    def _gather_targets(self, row: _Row, person: Person) -> None:
        targets = [(target, tag) for target in _find_targets(row, person) for tag in row.tags]
        is_added = row.action == ADD
        for target, tag in self.not_said(row.number, targets):
            contacts = person.contacts if target.contact_id is None else [target.contact_id]
            pasts: list[Past | None] = []
            for contact_id in contacts:
                names = [person.name_of(contact_id), person.address]
                latest = find_latest(self._past, names, tag)
                pasts.append(latest)
            before = find_standing(pasts, row.action, again=self.options.send_all)
            if self.is_settled(row.number, person, before, target.contact_id):
                continue
            request = self._requests.setdefault(target, _Request(person))
            request.tags.append(tag)
            request.rows.append(row.number)
            if is_added and not any(pasts):
                request.is_new = True
            old, new = (None, tag) if is_added else (tag, None)
            self.note_change(row.number, person.display_name, "tag", old, new)

    def _make_item(self, target: _Target, request: _Request) -> Item:
        person = request.person
        contact_id = target.contact_id
        action = target.action
        operation = ADDTAG if action == ADD else REMOVETAG
        tags = sorted(request.tags)
        names = [str(contact_id)]
        if contact_id is None:
            names = [target.address, *map(str, person.ids)]
        effects: dict[str, str] = {}
        for tag in tags:
            for name in names:
                effects[f"{name}|{tag}"] = action
        rows = sorted(set(request.rows))
        params = bind_parameters(operation, email=person.email, id=contact_id, tagname=tags)
        return Item(
            self.kind,
            tuple(rows),
            operation.name,
            params,
            effects,
            email=person.email,
            contact_id=contact_id,
            must_look_up=contact_id is None and action == REMOVE,
        )


def find_latest(pasts: Mapping[str, Past], names: Iterable[str], tag: str) -> Past | None:
    """The last change of the tag of one contact. `names`: its id, and the address that it shares
    with others; a push may use either."""
    changes: list[Past] = []
    for name in names:
        past = pasts.get(f"{name}|{tag}")
        if past is not None:
            changes.append(past)
    return max(changes, key=lambda past: past.item_id, default=None)


def _find_targets(row: _Row, person: Person) -> list[_Target]:
    """Adding by address takes one request. Removing takes one for each contact, because a variant
    of the service requires the id."""
    is_id_needed = row.action == REMOVE and person.ids
    if row.who.contact_id is None and not is_id_needed:
        return [_Target(None, person.address, row.action)]
    return [_Target(contact_id, person.address, row.action) for contact_id in person.ids]


class Tags(Kind):
    """Effects: `who|tag`, with the action."""

    effect = EffectKind.TAGS
    columns = Spec({**WHO, "tag": ("tag",), "action": ("action",)}, (BY_WHO, ("tag",)))
    planning = TagsPlanning

    def choose_contacts(self, found: Sequence[Found]) -> tuple[int, ...]:
        """Tags are removed from all contacts of an address."""
        contact_ids = {one.contact_id for one in found}
        return tuple(sorted(contact_ids))


TAGS = Tags("tags")
