"""Planning what takes contacts off a list: a move to another list, or a deletion. Only those who are on it, as far as is known.

Belongs here: who is meant, and whether it was done before. Not here: columns (`moves`, `deletions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from marketing_api.operations.contacts import DELETECONTACT, MOVECONTACT
from pipelines.write_back.input.rows import shown
from pipelines.write_back.input.values import BadValue
from pipelines.write_back.item import Effect, Item, Past
from pipelines.write_back.planning.draft import QUEUED, SENT_BEFORE, Draft, Last, bound, is_newer, is_open, is_refused
from pipelines.write_back.planning.kinds.people import People, Person, Who
from pipelines.write_back.planning.kinds.whereabouts import Whereabouts
from pipelines.write_back.planning.known import Known

ON_TARGET, OFF_LIST = "already on the list", "not on the list"


class PlaceRow(NamedTuple):
    """Take somebody off `sources`; to `target`, or away when it is None."""

    number: int
    who: Who
    sources: tuple[int, ...]
    target: int | None

    @property
    def content(self) -> str:
        return "" if self.target is None else str(self.target)


class _Verdict(NamedTuple):
    """What is to be done with one contact (None: one that has to be looked up): `idle` is why nothing is, `refused` what was tried
    before; `is_absent`: it is neither there nor where it is to be.
    """

    contact_id: int | None
    idle: str = ""
    refused: Past | None = None
    is_absent: bool = False

    @property
    def is_to_be_sent(self) -> bool:
        return not self.idle and self.refused is None and not self.is_absent


class Places:
    """Plans all rows of an input."""

    def __init__(self, draft: Draft, known: Known, last: Last, rows: list[PlaceRow]) -> None:
        self._draft = draft
        self._known = known
        people = People(known, (row.who for row in rows))
        self._rows = [(row, person) for row in rows if (person := self._person(people, row)) is not None]
        self._past = last(list(dict.fromkeys(subject for row, person in self._rows for subject in _subjects(row, person))))
        self._whereabouts = Whereabouts(known, last, (person for _, person in self._rows))
        self._seen: dict[str, PlaceRow] = {}

    def _person(self, people: People, row: PlaceRow) -> Person | None:
        try:
            return people.person(row.who, must_exist=False)
        except BadValue as problem:
            self._draft.reject(row.number, str(problem))
            return None

    def run(self) -> None:
        chained = self._chained()
        for row, person in self._rows:
            try:
                if row.number in chained:
                    raise BadValue(chained[row.number])
                verdicts = {source: self._verdicts(row, person, source) for source in row.sources}
                for source in self._not_said_before(row, person, verdicts):
                    self._follow(row, person, source, verdicts[source])
            except BadValue as problem:
                self._draft.reject(row.number, str(problem))

    def _chained(self) -> dict[int, str]:
        """Rows that move somebody on from where another row moves them to: together they would never come to rest."""
        to: dict[tuple[str, int], int] = {}
        for row, person in self._rows:
            if row.target is not None:
                to.update({(name, row.target): row.number for name in _names(row, person)})
        found: dict[int, str] = {}
        for row, person in self._rows if to else ():
            for name in _names(row, person):
                if (other := to.get((name, row.sources[0]))) is not None:
                    found.setdefault(
                        row.number, f"row {other} moves the same contact to the list that this row takes it from: keep one of them"
                    )
                    found.setdefault(
                        other, f"row {row.number} takes the same contact off the list that this row moves it to: keep one of them"
                    )
        return found

    def _verdicts(self, row: PlaceRow, person: Person, source: int) -> list[_Verdict]:
        """Of each contact that may be meant; of an address, those are left out that never were on the list, unless all are."""
        if row.who.contact_id is None and self._whereabouts.is_synced_since(person, source):
            return [_Verdict(None)]
        found = [self._verdict(row, person, contact_id, source) for contact_id in person.contacts]
        return [verdict for verdict in found if not verdict.is_absent] or found

    def _verdict(self, row: PlaceRow, person: Person, contact_id: int | None, source: int) -> _Verdict:
        past = self._past.get(f"{contact_id or person.address}|{source}")
        same = past if past is not None and past.content == row.content else None
        refused = same if is_refused(same) else None
        is_known = contact_id is not None and any(member.contact_id == contact_id for member in person.members)
        lists = self._whereabouts.lists_of(person, contact_id) if contact_id is not None and is_known else set()
        if source in lists:
            is_read_since = refused is not None and refused.is_drifted and not is_newer(refused, self._known.as_of.get(source))
            return _Verdict(contact_id, refused=None if is_read_since else refused)
        if same is not None and refused is None:
            return _Verdict(contact_id, QUEUED if is_open(same) else SENT_BEFORE)
        if not is_known:
            return self._of_nobody_known(contact_id, same)
        if row.target in lists:
            return _Verdict(contact_id, f"{ON_TARGET} as of {self._known.read_on(row.target)}")
        return _Verdict(contact_id, is_absent=True)

    def _of_nobody_known(self, contact_id: int | None, refused: Past | None) -> _Verdict:
        """An address that the warehouse does not know is looked up; an id is nobody's when all contacts were read."""
        if contact_id is not None and self._known.is_all_known:
            raise BadValue(f"there is no contact {contact_id} (contacts were read on {self._known.read_on()})")
        return _Verdict(contact_id, refused=refused)

    def _not_said_before(self, row: PlaceRow, person: Person, verdicts: Mapping[int, list[_Verdict]]) -> list[int]:
        """The lists for which no earlier row says the same. BadValue when none is left, or an earlier row says otherwise."""
        left: list[int] = []
        for source, many in verdicts.items():
            names = [f"{verdict.contact_id or person.address}|{source}" for verdict in many]
            first = next((self._seen[name] for name in names if name in self._seen), row)
            if first.target != row.target:
                raise BadValue(f"row {first.number} moves the same contact to another list: keep one of them")
            if first is row:
                left.append(source)
                self._seen.update(dict.fromkeys(names, row))
        if not left:
            raise BadValue(f"it says the same as row {first.number}")
        return left

    def _follow(self, row: PlaceRow, person: Person, source: int, verdicts: list[_Verdict]) -> None:
        to_send = [verdict for verdict in verdicts if verdict.is_to_be_sent]
        for verdict in to_send:
            self._send(row, person, source, verdict.contact_id)
        if to_send:
            return
        first = verdicts[0]
        if refused := next((verdict.refused for verdict in verdicts if verdict.refused is not None), None):
            self._draft.reject_as_before(row.number, refused)
        elif not first.is_absent or row.target is None:
            self._draft.leave(row.number, first.idle or f"{OFF_LIST} as of {self._known.read_on(source)}", person.email, first.contact_id)
        else:
            name = shown(self._known.lists.names[source])
            raise BadValue(f"the contact is not on list {name} (its contacts were read on {self._known.read_on(source)})")

    def _send(self, row: PlaceRow, person: Person, source: int, contact_id: int | None) -> None:
        must_look_up = contact_id is None
        if row.target is None:
            operation, lists = DELETECONTACT, {"listid": source}
        else:
            operation, lists = MOVECONTACT, {"listid": row.target, "sourceid": source}
        params = bound(operation, lacks_id=must_look_up, id=contact_id, **lists)
        effects = (Effect(f"{contact_id or person.address}|{source}", row.content),)
        kind, rows = self._draft.kind, (row.number,)
        self._draft.send(Item(kind, rows, operation, params, effects, {}, person.email, contact_id, must_look_up), is_new=False)
        names = self._known.lists.names
        self._draft.change(row.number, person.shown, "list", names[source], None if row.target is None else names[row.target])


def _names(row: PlaceRow, person: Person) -> list[str]:
    """Whom the row may be about: for an address all its contacts."""
    return [str(contact_id) for contact_id in person.ids] + ([person.address or ""] if row.who.contact_id is None else [])


def _subjects(row: PlaceRow, person: Person) -> Iterator[str]:
    for contact_id in person.contacts:
        yield from (f"{contact_id or person.address}|{source}" for source in row.sources)
