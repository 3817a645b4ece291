"""Moves and deletions: what takes contacts off a list, to another or away. Only those who are on it, as far
as is known.

They are read back by the listings of the lists that are touched, of which one page proves many.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from marketing_api.address import normal_form
from marketing_api.contact_lookup import Fetch, Unread, address_of, look_up, read_list
from marketing_api.operation import Operation
from marketing_api.records.contacts import DELETECONTACT, MOVECONTACT
from write_back.account_state import Person, Who, read_who
from write_back.consent import ACTIVE, LEFT_ON_TARGET, is_raised
from write_back.input.columns import Spec
from write_back.input.rows import shown
from write_back.input.values import BadValue
from write_back.item import Effect, EffectKind, Item, Past, State
from write_back.kinds.kind import BY_WHO, LIST, WHO, Kind, Outgoing
from write_back.outbox.outbox import Entry
from write_back.planning import REACHES_PEOPLE, Planning, bound, standing
from write_back.verification import Compared, ReadBack, Readings

ON_TARGET, OFF_LIST = "already on the list", "not on the list"


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


#: Contact (None: whoever has the address) → what keeps it from being taken off: what was tried before, or
#: why there is nothing to do; None: it is taken off.
_Obstacles = dict[int | None, str | Past | None]


class RemovalPlanning(Planning):
    kind: "ListRemoval"

    def run(self) -> None:
        rows = list(self.read(lambda index, number: self.kind.read(self, index, number)))
        people = list(self.people(rows, must_exist=False))
        lists = self.known.lists.names
        named = [subject for _, person in people for subject in person.subjects(lists)]
        self._taken = {kind: self.last(named, kind) for kind in self.leaving}
        by_address = (f"{person.address}|{list_id}" for _, person in people for list_id in lists)
        self._added = self.last(by_address, *self.joining)
        chained = _chained(people)
        for row, person in people:
            if row.number in chained:
                self.reject(row.number, chained[row.number])
            else:
                self.attempt(row.number, self._plan, row, person)

    # -- on which lists somebody is, as the warehouse read it, and as what was sent since has left it

    def _lists_of(self, person: Person, contact_id: int) -> set[int]:
        """The lists that a contact which the warehouse knows is on now."""
        lists = {member.list_id for member in person.members if member.contact_id == contact_id}
        for source, past in self._removals(str(contact_id)):
            if past.is_newer(self.known.as_of.get(source)):
                lists.discard(source)
            if past.content and past.is_newer(self.known.as_of.get(int(past.content))):
                lists.add(int(past.content))
        return lists

    def _is_added_since(self, person: Person, list_id: int) -> bool:
        """Whether we have put the address on the list after it was read, and have not taken it off again: its
        contact is one that is not known."""
        past = self._added.get(f"{person.address}|{list_id}")
        if past is None or not past.is_in_force or not past.is_newer(self.known.as_of.get(list_id)):
            return False
        names = [person.address, *map(str, person.ids)]
        removals = [each for name in names for source, each in self._removals(name) if source == list_id]
        return all(each.item_id < past.item_id for each in removals) and not any(
            list_id in self._lists_of(person, contact_id) for contact_id in person.ids
        )

    def _removals(self, name: str) -> list[tuple[int, Past]]:
        """What took the contact off which list, to another (the content) or away, in order."""
        found = [
            (list_id, past)
            for pasts in self._taken.values()
            for list_id in self.known.lists.names
            if pasts and (past := pasts.get(f"{name}|{list_id}")) is not None and past.is_in_force
        ]
        return sorted(found, key=lambda each: each[1].item_id)

    # -- fates

    def _plan(self, row: ListRow, person: Person) -> None:
        of_lists = {source: self._obstacles(row, person, source) for source in row.sources}
        wanted = {
            (person.name_of(contact_id), source): row.target
            for source, obstacles in of_lists.items()
            for contact_id in obstacles
        }
        left = self.not_said(row.number, wanted, lambda _: "moves the same contact to another list")
        for source, found in of_lists.items():
            own = {each: why for each, why in found.items() if (person.name_of(each), source) in left}
            if own:
                self._follow(row, person, source, own)

    def _obstacles(self, row: ListRow, person: Person, source: int) -> _Obstacles:
        """Of each contact that may be meant; of an address, those are left out that never were on the list,
        unless all are."""
        if row.who.contact_id is None and self._is_added_since(person, source):
            return {None: None}
        found = {each: self._obstacle(row, person, each, source) for each in person.contacts}
        return {each: why for each, why in found.items() if why != OFF_LIST} or found

    def _obstacle(
        self, row: ListRow, person: Person, contact_id: int | None, source: int
    ) -> str | Past | None:
        past = self._taken[self.kind].get(f"{person.name_of(contact_id)}|{source}")
        before = standing([past], row.content)
        is_known = any(member.contact_id == contact_id for member in person.members)
        lists = self._lists_of(person, contact_id) if contact_id is not None and is_known else set()
        if source in lists:
            is_refused = isinstance(before, Past) and before.is_refused_still(self.known.as_of.get(source))
            return before if is_refused else None
        if isinstance(before, str):
            return before
        if is_known:
            return f"{ON_TARGET} as of {self.known.read_on(row.target)}" if row.target in lists else OFF_LIST
        if contact_id is not None:  # an address that is not known is looked up
            self.check_may_exist(contact_id)
        return before

    def _follow(self, row: ListRow, person: Person, source: int, obstacles: _Obstacles) -> None:
        to_send = [contact_id for contact_id, why in obstacles.items() if why is None]
        if to_send and self._is_refusing(person, row.target):
            self.leave(row.number, LEFT_ON_TARGET, person.email, to_send[0])
            return
        for contact_id in to_send:
            self._send(row, person, source, contact_id)
        if to_send:
            if row.target is not None:
                self.warn(REACHES_PEOPLE)
            return
        refused_first = sorted(obstacles.items(), key=lambda each: not isinstance(each[1], Past))
        contact_id, why = refused_first[0]
        if why == OFF_LIST:
            read_on = self.known.read_on(source)
            if row.target is not None:
                name = shown(self.known.lists.names[source])
                raise BadValue(f"the contact is not on list {name} (its contacts were read on {read_on})")
            why = f"{OFF_LIST} as of {read_on}"
        self.is_settled(row.number, person, why, contact_id)

    def _is_refusing(self, person: Person, target: int | None) -> bool:
        """Whether the address is known on the target list, and not active there."""
        return any(
            member.list_id == target
            and is_raised(member.status, ACTIVE)
            and target in self._lists_of(person, member.contact_id)
            for member in person.members
        )

    def _send(self, row: ListRow, person: Person, source: int, contact_id: int | None) -> None:
        lists, names = {self.kind.list_parameter: source}, self.known.lists.names
        expected: dict[str, Any] = {}
        if row.target is not None:
            lists["listid"] = row.target
            expected["look_up"] = [row.target] if person.email else [source, row.target]  # its address, too
            statuses = (member.status for member in person.members if member.contact_id == contact_id)
            if held := next((each for each in statuses if is_raised(each, ACTIVE)), None):
                expected["status"] = held
        item = Item(
            self.kind,
            (row.number,),
            self.kind.operation.name,
            bound(self.kind.operation, id=contact_id, **lists),
            (Effect(f"{person.name_of(contact_id)}|{source}", row.content),),
            expected,
            person.email,
            contact_id,
            must_look_up=contact_id is None,
        )
        self.send(item, is_new=False, is_unknown_address=not person.ids)
        self.change(row.number, person.shown, "list", names[source], names.get(row.target or 0))


def _chained(people: list[tuple[ListRow, Person]]) -> dict[int, str]:
    """Rows that move somebody on from where another row moves them to: together they would never come to
    rest."""
    moved = [
        (row, person.name_of(contact_id))
        for row, person in people
        if row.target is not None
        for contact_id in person.contacts
    ]
    to = {(name, row.target): row.number for row, name in moved}
    found: dict[int, str] = {}
    for row, name in moved:
        if (other := to.get((name, row.sources[0]))) is not None:
            here = f"row {other} moves the same contact to the list that this row takes it from"
            there = f"row {row.number} takes the same contact off the list that this row moves it to"
            found.setdefault(row.number, f"{here}: keep one of them")
            found.setdefault(other, f"{there}: keep one of them")
    return found


# ---- reading back

#: Two lists of one page each, and a look whether there is another: next to nothing, however few are moved.
_LEAST_REQUESTS = 4
#: Of requests, for each entry of a `sample`.
_SHARE = 0.05


#: Who is on a list, by id and by address → the status there.
_People = Mapping[object, str | None]


def _people(reading: ReadBack, list_id: int, worth: float = math.inf) -> tuple[_People | None, int]:
    """Who is on the list, if that takes no more than `worth` requests; and those that were sent."""
    found, requests = read_list(reading.client, list_id, worth)
    if found is None:
        return None, requests
    named = ((name, one.status) for one in found for name in (one.contact_id, normal_form(one.email or "")))
    return {name: status for name, status in named if name}, requests


def _see(reading: ReadBack, entries: Collection[Entry], shown: dict[int, _People]) -> Readings:
    """What the lists show of each: as they were read to begin with (`shown`), and read anew from then on."""
    lists = {list_id for entry in entries for list_id in lists_of(entry)}
    now = {each: shown.pop(each) if each in shown else _people(reading, each)[0] for each in lists}
    return {entry.item_id: _compared(entry, *(now[each] for each in lists_of(entry))) for entry in entries}


def lists_of(entry: Entry) -> tuple[int, ...]:
    """The list that somebody is to leave; of a move, also the one to be on then."""
    names = ("sourceid", "listid") if "sourceid" in entry.params else ("listid",)
    return tuple(int(entry.params[name]) for name in names)


def _compared(entry: Entry, source: _People | None, *targets: _People | None) -> Compared | Unread:
    """`source`: who is on the list that somebody was to leave; `targets`: and on the one to be on then."""
    held, address = entry.expected.get("status"), normal_form(entry.email or "")
    readable = [people for people in targets if people is not None]
    if source is None or len(readable) < len(targets):
        return Unread("a list cannot be read any more")
    if entry.contact_id in source:
        return Compared({"source list": ("not on it", "on it")})
    for target in readable:
        if held is not None and target.get(entry.contact_id) == ACTIVE:
            return Compared({"status": (held, ACTIVE)})
        if entry.contact_id not in target and address not in target:  # it may have another id there
            return Compared({"target list": ("on it", "not on it")})
    return Compared()


class ListRemoval(Kind):
    """Effects: `contact id|list id`, with the list that they go to."""

    effect = EffectKind.LEAVES
    planning = RemovalPlanning
    operation: ClassVar[Operation]

    def read(self, planning: Planning, index: int, number: int) -> ListRow:
        """A row of the input. BadValue when it cannot be sent."""
        raise NotImplementedError

    def read_back(self, reading: ReadBack, entries: list[Entry], how: str) -> None:
        """Where the lists that are touched are short enough; not the contacts that a later item has taken off
        or put on one again."""
        applied = [entry for entry in entries if entry.state is State.APPLIED]
        subjects = {entry.item_id: list(_subjects(entry)) for entry in applied}
        left = reading.current(applied, subjects, reading.list_kinds)
        if not left or (how == "none" and not any(entry.drift for entry in left)):
            return
        worth = max(_LEAST_REQUESTS, math.ceil((1.0 if how == "all" else _SHARE) * len(left)))
        shown = _lists_worth_reading(reading, left, worth)
        provable = [entry for entry in left if shown.keys() >= set(lists_of(entry))]
        reading.poll(provable, lambda waiting: _see(reading, waiting, shown))


def _lists_worth_reading(reading: ReadBack, entries: list[Entry], worth: float) -> dict[int, _People]:
    """In `worth` requests, those first that most entries touch."""
    found: dict[int, _People] = {}
    for list_id, _ in Counter(list_id for entry in entries for list_id in lists_of(entry)).most_common():
        people, requests = _people(reading, list_id, worth) if worth > 0 else (None, 0)
        worth -= requests
        if people is not None:
            found[list_id] = people
    return found


def _subjects(entry: Entry) -> Iterator[str]:
    for name in filter(None, (str(entry.contact_id), normal_form(entry.email or ""))):
        yield from (f"{name}|{list_id}" for list_id in lists_of(entry))


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
