"""On which lists contacts are: as the warehouse read it, and as our moves, deletions and syncs since have left it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pipelines.write_back.item import Kind, Past
from pipelines.write_back.planning.draft import Last, is_done, is_newer, is_open
from pipelines.write_back.planning.kinds.people import Person
from pipelines.write_back.planning.known import Known


class _Event(NamedTuple):
    """Something took the contact off a list, to another or away. `item_id` tells the order."""

    item_id: int
    source: int
    target: int | None
    past: Past


class Whereabouts:
    """Of all persons of an input; asks what was done before at once."""

    def __init__(self, known: Known, last: Last, persons: Iterable[Person]) -> None:
        self._known = known
        everybody = list(persons)
        lists = list(known.lists.names)
        names = dict.fromkeys(name for person in everybody for name in (*person.ids, person.address) if name is not None)
        subjects = [f"{name}|{list_id}" for name in names for list_id in lists]
        self._taken = [(Kind.MOVES, last(subjects, Kind.MOVES)), (Kind.DELETIONS, last(subjects, Kind.DELETIONS))]
        addresses = dict.fromkeys(person.address for person in everybody if person.address is not None)
        self._synced = last([f"{address}|{list_id}" for address in addresses for list_id in lists], Kind.CONTACTS)

    def lists_of(self, person: Person, contact_id: int) -> set[int]:
        """The lists that a contact which the warehouse knows is on now."""
        lists = {member.list_id for member in person.members if member.contact_id == contact_id}
        for event in self._events(str(contact_id)):
            if is_newer(event.past, self._known.as_of.get(event.source)):
                lists.discard(event.source)
            if event.target is not None and is_newer(event.past, self._known.as_of.get(event.target)):
                lists.add(event.target)
        return lists

    def is_synced_since(self, person: Person, list_id: int) -> bool:
        """Whether we have put the address on the list after it was read, and have not taken it off again: its contact is one that
        is not known.
        """
        past = self._synced.get(f"{person.address}|{list_id}")
        if past is None or not (is_done(past) or is_open(past)) or not is_newer(past, self._known.as_of.get(list_id)):
            return False
        if any(list_id in self.lists_of(person, contact_id) for contact_id in person.ids):
            return False
        events = [event for name in (*person.ids, person.address) for event in self._events(str(name)) if event.source == list_id]
        return all(event.item_id < past.item_id for event in events)

    def _events(self, name: str) -> list[_Event]:
        found: list[_Event] = []
        for kind, pasts in self._taken:
            for list_id in self._known.lists.names if pasts else ():
                past = pasts.get(f"{name}|{list_id}")
                if past is not None and (is_done(past) or is_open(past)):
                    target = int(past.content) if kind is Kind.MOVES else None
                    found.append(_Event(past.item_id, list_id, target, past))
        return sorted(found)
