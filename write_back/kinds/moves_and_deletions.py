"""Moves and deletions: what takes contacts off a list, to another or away. Only those who are on it, as far
as is known.

They are read back by the listings of the lists that are touched, of which one page proves many.
"""

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from marketing_api.address import normal_form
from marketing_api.contact_lookup import Fetch, Unread, address_of, look_up, read_list
from marketing_api.operation import Operation
from marketing_api.records.contacts import DELETECONTACT, MOVECONTACT, STATUSES
from write_back.account_state import Person, Who, read_who
from write_back.consent import ACTIVE, LEFT_ON_TARGET, is_raised
from write_back.input.columns import Spec
from write_back.input.rows import shown
from write_back.input.values import BadValue
from write_back.item import Effect, EffectKind, Item, Past, State
from write_back.kinds.kind import BY_WHO, LIST, WHO, Kind, Outgoing
from write_back.outbox.outbox import Entry
from write_back.planning import QUEUED, REACHES_PEOPLE, SENT_BEFORE, Planning, bound, resolve
from write_back.verification import Compared, ReadBack, Readings

ON_TARGET, OFF_LIST = "already on the list", "not on the list"


# ---- on which lists somebody is


class Whereabouts:
    """Of all persons of an input, as the warehouse read it, and as what was sent since has left it; one query
    for all."""

    def __init__(self, planning: Planning, persons: Iterable[Person]) -> None:
        self._known = planning.known
        everybody = list(persons)
        lists = list(self._known.lists.names)
        named = [f"{name}|{list_id}" for person in everybody for name in person.names for list_id in lists]
        self._taken = [planning.last(named, kind) for kind in planning.leaving]
        by_address = [f"{person.address}|{list_id}" for person in everybody for list_id in lists]
        self._added = planning.last(by_address, *planning.joining)

    def lists_of(self, person: Person, contact_id: int) -> set[int]:
        """The lists that a contact which the warehouse knows is on now."""
        lists = {member.list_id for member in person.members if member.contact_id == contact_id}
        for source, past in self._removals(str(contact_id)):
            if past.is_newer(self._known.as_of.get(source)):
                lists.discard(source)
            if past.content and past.is_newer(self._known.as_of.get(int(past.content))):
                lists.add(int(past.content))
        return lists

    def is_added_since(self, person: Person, list_id: int) -> bool:
        """Whether we have put the address on the list after it was read, and have not taken it off again: its
        contact is one that is not known."""
        past = self._added.get(f"{person.address}|{list_id}")
        if past is None or not past.is_in_force or not past.is_newer(self._known.as_of.get(list_id)):
            return False
        if any(list_id in self.lists_of(person, contact_id) for contact_id in person.ids):
            return False
        removals = [
            removal for name in person.names for source, removal in self._removals(name) if source == list_id
        ]
        return all(removal.item_id < past.item_id for removal in removals)

    def _removals(self, name: str) -> list[tuple[int, Past]]:
        """What took the contact off which list, to another (the content) or away, in order."""
        subjects = [
            (pasts, list_id, f"{name}|{list_id}")
            for pasts in filter(None, self._taken)
            for list_id in self._known.lists.names
        ]
        found = [
            (list_id, pasts[subject])
            for pasts, list_id, subject in subjects
            if subject in pasts and pasts[subject].is_in_force
        ]
        return sorted(found, key=lambda each: each[1].item_id)


# ---- planning


class ListRow(NamedTuple):
    """Take somebody off `sources`; to `target`, or away when it is None."""

    number: int
    who: Who
    sources: tuple[int, ...]
    target: int | None

    @property
    def content(self) -> str:
        return "" if self.target is None else str(self.target)


class _Fate(NamedTuple):
    """What is to be done with one contact (None: one that has to be looked up): `idle` is why nothing is,
    `refused` what was tried before; `is_absent`: it is neither there nor where it is to be."""

    contact_id: int | None
    idle: str = ""
    refused: Past | None = None
    is_absent: bool = False


class _Removing:
    def __init__(self, kind: "ListRemoval", planning: Planning, rows: list[ListRow]) -> None:
        self._kind = kind
        self._planning, self._known = planning, planning.known
        self._rows = list(resolve(planning, rows, must_exist=False))
        self._past = planning.last(
            subject for row, person in self._rows for subject in _subjects(row, person)
        )
        self._whereabouts = Whereabouts(planning, (person for _, person in self._rows))
        self._seen: dict[str, ListRow] = {}

    def run(self) -> None:
        chained = self._chained()
        for row, person in self._rows:
            if row.number in chained:
                self._planning.reject(row.number, chained[row.number])
            else:
                self._planning.attempt(row.number, self._plan_row, row, person)

    def _plan_row(self, row: ListRow, person: Person) -> None:
        fates = {source: self._fates(row, person, source) for source in row.sources}
        for source in self._not_given_before(row, person, fates):
            self._follow(row, person, source, fates[source])

    def _chained(self) -> dict[int, str]:
        """Rows that move somebody on from where another row moves them to: together they would never come to
        rest."""
        moved = [(row, person) for row, person in self._rows if row.target is not None]
        to = {(name, row.target): row.number for row, person in moved for name in _names(row, person)}
        found: dict[int, str] = {}
        for row, person in moved:
            for name in _names(row, person):
                if (other := to.get((name, row.sources[0]))) is not None:
                    here, there = (
                        f"row {other} moves the same contact to",
                        f"row {row.number} takes the same contact off",
                    )
                    found.setdefault(
                        row.number, f"{here} the list that this row takes it from: keep one of them"
                    )
                    found.setdefault(other, f"{there} the list that this row moves it to: keep one of them")
        return found

    def _fates(self, row: ListRow, person: Person, source: int) -> list[_Fate]:
        """Of each contact that may be meant; of an address, those are left out that never were on the list,
        unless all are."""
        if row.who.contact_id is None and self._whereabouts.is_added_since(person, source):
            return [_Fate(None)]
        found = [self._fate(row, person, contact_id, source) for contact_id in person.contacts]
        return [fate for fate in found if not fate.is_absent] or found

    def _fate(self, row: ListRow, person: Person, contact_id: int | None, source: int) -> _Fate:
        past = self._past.get(f"{contact_id or person.address}|{source}")
        same = past if past is not None and past.content == row.content else None
        refused = same if same is not None and same.is_refused else None
        is_known = contact_id is not None and any(
            member.contact_id == contact_id for member in person.members
        )
        lists = (
            self._whereabouts.lists_of(person, contact_id) if contact_id is not None and is_known else set()
        )
        if source in lists:
            is_read_since = (
                refused is not None
                and refused.is_drifted
                and not refused.is_newer(self._known.as_of.get(source))
            )
            return _Fate(contact_id, refused=None if is_read_since else refused)
        if same is not None and refused is None:
            return _Fate(contact_id, QUEUED if same.is_open else SENT_BEFORE)
        if (
            contact_id is not None and not is_known and self._known.is_all_known
        ):  # an address that is not known is looked up
            raise BadValue(
                f"there is no contact {contact_id} (contacts were read on {self._known.read_on()})"
            )
        if not is_known:
            return _Fate(contact_id, refused=same)
        if row.target in lists:
            return _Fate(contact_id, f"{ON_TARGET} as of {self._known.read_on(row.target)}")
        return _Fate(contact_id, is_absent=True)

    def _not_given_before(self, row: ListRow, person: Person, fates: Mapping[int, list[_Fate]]) -> list[int]:
        """The lists for which no earlier row says the same. BadValue when none is left, or an earlier row
        says otherwise."""
        left: list[int] = []
        for source, many in fates.items():
            names = [f"{fate.contact_id or person.address}|{source}" for fate in many]
            first = next((self._seen[name] for name in names if name in self._seen), row)
            if first.target != row.target:
                raise BadValue(f"row {first.number} moves the same contact to another list: keep one of them")
            if first is row:
                left.append(source)
                self._seen.update(dict.fromkeys(names, row))
        if not left:
            raise BadValue(f"it says the same as row {first.number}")
        return left

    def _follow(self, row: ListRow, person: Person, source: int, fates: list[_Fate]) -> None:
        to_send = [fate for fate in fates if not fate.idle and fate.refused is None and not fate.is_absent]
        if to_send and self._is_refusing(person, row.target):
            self._planning.leave(row.number, LEFT_ON_TARGET, person.email, to_send[0].contact_id)
            return
        for fate in to_send:
            self._send(row, person, source, fate.contact_id)
        if to_send:
            if row.target is not None:
                self._planning.warn(REACHES_PEOPLE)
            return
        first = fates[0]
        if refused := next((fate.refused for fate in fates if fate.refused is not None), None):
            self._planning.reject_as_before(row.number, refused)
        elif not first.is_absent or row.target is None:
            why = first.idle or f"{OFF_LIST} as of {self._known.read_on(source)}"
            self._planning.leave(row.number, why, person.email, first.contact_id)
        else:
            name = shown(self._known.lists.names[source])
            raise BadValue(
                f"the contact is not on list {name} (its contacts were read on {self._known.read_on(source)})"
            )

    def _is_refusing(self, person: Person, target: int | None) -> bool:
        """Whether the address is known on the target list, and not active there."""
        there = [member for member in person.members if member.list_id == target]
        present = [each for each in there if target in self._whereabouts.lists_of(person, each.contact_id)]
        return any(is_raised(STATUSES.get(member.status_code or 0), ACTIVE) for member in present)

    def _expected(self, row: ListRow, person: Person, contact_id: int | None) -> dict[str, Any]:
        """Of a move: where the address is looked up first, and the status that the contact is to keep where
        it is not active."""
        if row.target is None:
            return {}
        look_up = [row.target] if person.email else [*row.sources, row.target]  # its address, too
        words = [
            STATUSES.get(member.status_code or 0)
            for member in person.members
            if member.contact_id == contact_id
        ]
        held = next((word for word in words if is_raised(word, ACTIVE)), None)
        return {"look_up": look_up} if held is None else {"look_up": look_up, "status": held}

    def _send(self, row: ListRow, person: Person, source: int, contact_id: int | None) -> None:
        must_look_up, operation = contact_id is None, self._kind.operation
        lists = {self._kind.list_parameter: source} | ({} if row.target is None else {"listid": row.target})
        params = bound(operation, lacks_id=must_look_up, id=contact_id, **lists)
        effects = (Effect(f"{contact_id or person.address}|{source}", row.content),)
        kind, rows = self._planning.kind, (row.number,)
        expected = self._expected(row, person, contact_id)
        item = Item(kind, rows, operation, params, effects, expected, person.email, contact_id, must_look_up)
        self._planning.send(item, is_new=False, is_unknown_address=not person.ids)
        names = self._known.lists.names
        self._planning.change(
            row.number, person.shown, "list", names[source], None if row.target is None else names[row.target]
        )


def _names(row: ListRow, person: Person) -> list[str]:
    """Whom the row may be about: for an address all its contacts."""
    return [str(contact_id) for contact_id in person.ids] + (
        [person.address or ""] if row.who.contact_id is None else []
    )


def _subjects(row: ListRow, person: Person) -> Iterator[str]:
    for contact_id in person.contacts:
        yield from (f"{contact_id or person.address}|{source}" for source in row.sources)


# ---- reading back

#: Two lists of one page each, and a look whether there is another: next to nothing, however few are moved.
#: Lists that most entries touch are read first.
_LEAST_REQUESTS = 4
#: Of requests, for each entry of a `sample`.
_SHARE = 0.05


def _people(reading: ReadBack, list_id: int, worth: float) -> tuple[set[object] | None, int]:
    """Who is on the list (ids, addresses, and ids with statuses), if that takes no more than `worth`
    requests; and those that were sent."""
    found, requests = read_list(reading.client, list_id, worth)
    names = [
        (one.contact_id, normal_form(one.email or ""), (one.contact_id, one.status)) for one in found or ()
    ]
    return (None if found is None else {name for several in names for name in several if name}), requests


def _see(reading: ReadBack, entries: Collection[Entry], shown: dict[int, set[object]]) -> Readings:
    """What the lists show of each: as they were read to begin with (`shown`), and read anew from then on."""
    lists = {list_id for entry in entries for list_id in lists_of(entry)}
    now = {each: shown.pop(each) if each in shown else _people(reading, each, math.inf)[0] for each in lists}
    return {
        entry.item_id: _compared(entry, [now[list_id] for list_id in lists_of(entry)]) for entry in entries
    }


def lists_of(entry: Entry) -> tuple[int, ...]:
    """The list that somebody is to leave; of a move, also the one to be on then."""
    names = ("sourceid", "listid") if "sourceid" in entry.params else ("listid",)
    return tuple(int(entry.params[name]) for name in names)


def _compared(entry: Entry, shown: list[set[object] | None]) -> Compared | Unread:
    """`shown`: who is on the list that somebody was to leave, and on the one to be on then."""
    readable = [people for people in shown if people is not None]
    if len(readable) < len(shown):
        return Unread("a list cannot be read any more")
    source, *targets = readable
    if entry.contact_id in source:
        return Compared({"source list": ("not on it", "on it")})
    held = entry.expected.get("status")
    if held is not None and any((entry.contact_id, ACTIVE) in target for target in targets):
        return Compared({"status": (held, ACTIVE)})
    if any(
        target.isdisjoint({entry.contact_id, normal_form(entry.email or "")}) for target in targets
    ):  # it may have another id there
        return Compared({"target list": ("on it", "not on it")})
    return Compared()


class ListRemoval(Kind):
    """Effects: `contact id|list id`, with the list that they go to."""

    effect = EffectKind.LEAVES
    operation: ClassVar[Operation]

    @abstractmethod
    def read(self, planning: Planning, index: int, number: int) -> ListRow:
        """A row of the input. BadValue when it cannot be sent."""

    def plan(self, planning: Planning) -> None:
        """Who is on the lists and, to be moved, not on the target yet."""
        if rows := list(planning.read(lambda index, number: self.read(planning, index, number))):
            _Removing(self, planning, rows).run()

    def read_back(self, reading: ReadBack, entries: list[Entry], how: str) -> None:
        """Where the lists that are touched are short enough; not the contacts that a later item has taken off
        or put on one again."""
        applied = [entry for entry in entries if entry.state is State.APPLIED]
        names: dict[int, list[str]] = {}
        for entry in applied:
            people = [str(entry.contact_id), *([normal_form(entry.email)] if entry.email else [])]
            names[entry.item_id] = [f"{who}|{each}" for who in people for each in lists_of(entry)]
        left = reading.current(applied, names, reading.list_kinds)
        if not left or (how == "none" and not any(entry.drift for entry in left)):
            return
        worth: float = max(_LEAST_REQUESTS, math.ceil((1.0 if how == "all" else _SHARE) * len(left)))
        shown: dict[int, set[object]] = {}
        for list_id, _ in Counter(list_id for entry in left for list_id in lists_of(entry)).most_common():
            members, requests = _people(reading, list_id, worth) if worth > 0 else (None, 0)
            worth -= requests
            if members is not None:
                shown[list_id] = members
        provable = [entry for entry in left if shown.keys() >= set(lists_of(entry))]
        reading.poll(provable, lambda waiting: _see(reading, waiting, shown))


class Moves(ListRemoval):
    name = "moves"
    columns = Spec(
        {**WHO, "from": ("from", "source_id"), "to": ("to", "list_id")}, (BY_WHO, ("from",), ("to",))
    )
    operation = MOVECONTACT
    list_parameter = "sourceid"  # `listid` is where a move goes

    def outgoing(
        self, entry: Entry, contact_ids: Sequence[int], fetch: Fetch, *, is_completed: bool
    ) -> Outgoing:
        """Not to a list on which the address is, and is not active: mails would reach it again there."""
        ids = contact_ids or [entry.contact_id or 0]
        email, target = entry.email or address_of(fetch, ids[0]), int(entry.params["listid"])
        for one in look_up(fetch, email, target) if email else ():
            is_moved_before = one.contact_id in ids and not entry.is_first
            if one.list_id in (None, target) and is_raised(one.status, ACTIVE) and not is_moved_before:
                return Outgoing([], LEFT_ON_TARGET)
        return super().outgoing(entry, contact_ids, fetch, is_completed=is_completed)

    def read(self, planning: Planning, index: int, number: int) -> ListRow:
        cells, lists = planning.picked.cells, planning.known.lists
        who = read_who(cells, index)
        source = lists.one(cells["from"][index], "the source list")
        target = lists.one(cells["to"][index], "the target list")
        if source == target:
            raise BadValue("the source list and the target list are the same")
        return ListRow(number, who, (source,), target)


class Deletions(ListRemoval):
    """They cannot be undone: a person agrees to their number first."""

    name = "deletions"
    columns = Spec({**WHO, "list": LIST}, (BY_WHO, ("list",)))
    agreement = "Deleting cannot be undone. Type {count} to delete the contacts of {count} rows: "
    operation = DELETECONTACT

    def read(self, planning: Planning, index: int, number: int) -> ListRow:
        lists = planning.known.lists.several(planning.picked.cells["list"][index])
        return ListRow(number, read_who(planning.picked.cells, index), lists, None)


MOVES, DELETIONS = Moves(), Deletions()
