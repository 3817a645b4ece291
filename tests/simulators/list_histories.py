"""Accounts whose lists change between readings, up to three readings a day, and what each reading showed.

Belongs here: what happens to people and lists, and the rows of `source` and `sync` that loading keeps of it.
Not here: what marts must make of it (`tests.warehouse.marts.expected_readings`)."""

import datetime as dt
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from zoneinfo import ZoneInfo

Row = dict[str, Any]

FIRST_ROUND = dt.datetime(2026, 3, 2, 3, 0, tzinfo=dt.UTC)
_BETWEEN_ROUNDS = dt.timedelta(hours=6)
ROUNDS_A_DAY = 3
#: No midnight falls between two lists of one reading, and one zone has the first reading on the day before.
_ZONES = ("Europe/Berlin", "America/New_York", "Asia/Tokyo")
_STATUSES = ("active", "active", "active", "unsubscribed", "bounced", "unconfirmed")


@dataclass(frozen=True)
class Member:
    """A contact as a listing shows it."""

    email: str | None
    status: str
    registered_at: dt.datetime | None


Members = dict[int, Member]


@dataclass(frozen=True)
class Reading:
    """What one reading of a list showed; `members` is None for a list that the service no longer has.
    `round_number`: that of the account's readings of all its lists."""

    round_number: int
    list_id: int
    moment: dt.datetime
    members: Members | None
    is_complete: bool


@dataclass
class History:
    """One account: its lists as they are at the service, and all readings so far."""

    account: str
    draw: random.Random
    lists: dict[int, Members] = field(default_factory=lambda: {1: {}, 2: {}, 3: {}})
    readings: list[Reading] = field(default_factory=list)
    gone: dict[int, Member] = field(default_factory=dict)
    rows: dict[tuple[int, int], Row] = field(default_factory=dict)
    list_rows: dict[int, Row] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.zone = ZoneInfo(self.draw.choice(_ZONES))
        self._order = self.draw.sample(range(1, 10), 9)  # in which lists are read
        for _ in range(12):
            self._register(self.draw.choice((1, 1, 2, 3)))
        for _ in range(2):
            self._copy(1)

    # -- what happens between two readings

    def live(self) -> None:
        actions = (
            *(self._register, self._delete, self._delete, self._move, self._move, self._move_as_another),
            *(self._replace, self._copy, self._merge, self._return, self._change_status),
            *(self._change_address, self._register_and_delete),
        )
        for _ in range(self.draw.randint(0, 6)):
            self.draw.choice(actions)(self.draw.choice(list(self.lists)))
        if self.draw.random() < 0.06:
            self._add_list()
        if self.draw.random() < 0.04 and len(self.lists) > 2:
            self._delete_list()

    def _someone(self, list_id: int) -> int | None:
        members = self.lists[list_id]
        return self.draw.choice(list(members)) if members else None

    def _elsewhere(self, list_id: int) -> int:
        return self.draw.choice([other for other in self.lists if other != list_id])

    def _register(self, list_id: int) -> int:
        number = next(self._ids)
        days = self.draw.choice((0.1, 0.1, 1.2, 4, 40, None))
        registered_at = FIRST_ROUND - dt.timedelta(days=days) if days else _YEAR_1
        self.lists[list_id][number] = Member(
            f"Person{number}@x.example" if self.draw.random() < 0.95 else None,
            self.draw.choice(_STATUSES),
            registered_at if self.draw.random() < 0.95 else None,
        )
        return number

    def _delete(self, list_id: int) -> None:
        if number := self._someone(list_id):
            self.gone[number] = self.lists[list_id].pop(number)

    def _register_and_delete(self, list_id: int) -> None:
        del self.lists[list_id][self._register(list_id)]

    def _move(self, list_id: int) -> None:
        if number := self._someone(list_id):
            self.lists[self._elsewhere(list_id)][number] = self.lists[list_id].pop(number)

    def _move_as_another(self, list_id: int) -> None:
        if number := self._someone(list_id):
            self.lists[self._elsewhere(list_id)][next(self._ids)] = self.lists[list_id].pop(number)

    def _replace(self, list_id: int) -> None:
        if number := self._someone(list_id):
            self.lists[list_id][next(self._ids)] = self.lists[list_id].pop(number)

    def _copy(self, list_id: int) -> None:
        if number := self._someone(list_id):
            copied = self.lists[list_id][number]
            new = next(self._ids) if self.draw.random() < 0.7 else number
            self.lists[self._elsewhere(list_id)][new] = copied

    def _merge(self, list_id: int) -> None:
        """The contact with the greatest id of an address is merged into the others, wherever it is."""
        if number := self._someone(list_id):
            email = self.lists[list_id][number].email
            for members in self.lists.values():
                same = [other for other, member in members.items() if email and member.email == email]
                if other := max((other for other in same if other != number), default=None):
                    self.gone[other] = members.pop(other)

    def _return(self, list_id: int) -> None:
        if self.gone:
            number = self.draw.choice(list(self.gone))
            member = self.gone.pop(number)
            self.lists[list_id][number if self.draw.random() < 0.5 else next(self._ids)] = member

    def _change_status(self, list_id: int) -> None:
        if number := self._someone(list_id):
            members = self.lists[list_id]
            members[number] = replace(members[number], status=self.draw.choice(_STATUSES))

    def _change_address(self, list_id: int) -> None:
        if number := self._someone(list_id):
            members = self.lists[list_id]
            members[number] = replace(members[number], email=f"new{number}@x.example")

    def _add_list(self) -> None:
        list_id = max([*self.lists, *self.list_rows]) + 1
        if list_id < 9:
            self.lists[list_id] = {}
            for other in (1, 1, list_id):
                (self._move if other != list_id else self._register)(
                    other if other in self.lists else list_id
                )

    def _delete_list(self) -> None:
        list_id = self.draw.choice(list(self.lists))
        members = self.lists.pop(list_id)
        for number, member in members.items():
            if self.draw.random() < 0.4:
                self.lists[self.draw.choice(list(self.lists))][number] = member

    # -- reading

    def read(self, number: int) -> None:
        """Read the listing of lists, then each list; now and then a listing breaks off."""
        begun_at = FIRST_ROUND + number * _BETWEEN_ROUNDS + number // ROUNDS_A_DAY * _BETWEEN_ROUNDS
        for list_id in self.list_rows.keys() - self.lists.keys():
            if self.list_rows[list_id]["_deleted_at"] is None:
                self.list_rows[list_id] |= {"_deleted_at": begun_at, "_changed_at": begun_at}
                self._keep(Reading(number, list_id, begun_at, None, is_complete=True))
        for list_id in self.lists:
            listed = {"_first_seen_at": begun_at, "_changed_at": begun_at, "_deleted_at": None}
            row = {"account": self.account, "list_id": list_id, "name": f"List {list_id}", **listed}
            self.list_rows.setdefault(list_id, row)
        for list_id in sorted(self.lists, key=self._order.index):
            moment = begun_at + dt.timedelta(seconds=60 + 5 * self._order.index(list_id))
            is_complete = number == 0 or self.draw.random() < 0.93
            members = dict(list(self.lists[list_id].items())[:: 1 if is_complete else 2])
            self._keep(Reading(number, list_id, moment, members, is_complete))

    def _keep(self, reading: Reading) -> None:
        """As the loading of snapshots does: what was seen first when, what is gone since when."""
        self.readings.append(reading)
        shown = reading.members or {}
        for contact_id, member in shown.items():
            values = {
                "email": member.email,
                "status": member.status,
                "registered_at": member.registered_at,
                "_deleted_at": None,
            }
            key = {"account": self.account, "list_id": reading.list_id, "contact_id": contact_id}
            row = self.rows.setdefault(
                (reading.list_id, contact_id), {**key, "_first_seen_at": reading.moment}
            )
            if any(row.get(name, row) != value for name, value in values.items()):
                row |= values | {"_changed_at": reading.moment}
        if reading.is_complete:
            for (list_id, contact_id), row in self.rows.items():
                if list_id == reading.list_id and contact_id not in shown and row["_deleted_at"] is None:
                    row |= {"_deleted_at": reading.moment, "_changed_at": reading.moment}

    def reading_rows(self) -> list[Row]:
        """The rows of `sync.readings`."""
        return [
            {
                "account": self.account,
                "table_name": "contacts",
                "scope": f"list_id={reading.list_id}",
                "as_of": reading.moment,
                "timezone": str(self.zone),
                "is_complete": reading.is_complete,
            }
            for reading in self.readings
            if reading.members is not None
        ]


_YEAR_1 = dt.datetime(1, 1, 2, tzinfo=dt.UTC)
