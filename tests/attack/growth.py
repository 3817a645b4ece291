"""Nights over lists whose every coming and going is known: the marts say what happened, and no observed day
changes afterwards.

    python -m tests.attack.growth [--seeds 5] [--seed 0] [--nights 10]

A made-up service is read night after night through archive, loading and models, with a ledger of what was
done to it beside. Between two readings people register, appear with registration dates of long ago, move with
their id or get a new one, are merged, deleted, added again, unsubscribe, bounce, and come and go unseen;
lists appear and are deleted. Nights are missing, a listing breaks off, a day is read twice, the account
changes its time zone, and at the end the warehouse is rebuilt. Goals: 0 figures that differ from the ledger,
0 days that changed after they were observed."""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import duckdb

from marketing_api.operations import contacts, lists
from tests.warehouse.answering import START, Home
from tests.warehouse.selected import selected
from warehouse import tables
from warehouse.models import ModelSettings, Status, build
from warehouse.rebuild import rebuild

#: Columns of the marts that the ledger knows.
FLOWS = (
    "joined_count",
    "moved_in_count",
    "left_count",
    "moved_out_count",
    "unsubscribed_count",
    "bounced_count",
)
_MODELS = (
    "history_contacts",
    "int_accounts",
    "int_account_zones",
    "int_lists_read",
    "list_growth_daily",
    "account_daily",
)
_ACCOUNT = ("member_count", "active_member_count", *FLOWS[:4], "list_days_covered")
_ZONES = ("Europe/Berlin", "America/New_York", "Asia/Tokyo")
_DAY = dt.timedelta(days=1)

#: (account or list, day) → the figures of a row.
Figures = dict[tuple[int | str, dt.date], dict[str, Any]]


@dataclass
class Member:
    """A contact on a list of the service."""

    contact_id: int
    email: str
    registered_at: dt.datetime
    status: str = "active"


class Entry(NamedTuple):
    """A line of the ledger: what a reading of the list will show."""

    list_id: int
    column: str
    contact_id: int


@dataclass
class Service:
    """The lists as they are, and what was done to them since it was last written down."""

    draw: random.Random
    now: dt.datetime
    lists: dict[int, dict[int, Member]] = field(default_factory=dict)
    ledger: list[Entry] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    gone: list[Member] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    # -- who and where

    def someone(self, list_id: int) -> Member | None:
        """A member to whom nothing else happened since the last reading."""
        free = [member for member in self.lists[list_id].values() if member.email not in self.touched]
        if not free:
            return None
        member = self.draw.choice(free)
        self.touched.add(member.email)
        return member

    def elsewhere(self, list_id: int, email: str) -> int | None:
        """Another list, on which the address is not."""
        return next(
            (
                one
                for one, members in self.lists.items()
                if one != list_id and all(m.email != email for m in members.values())
            ),
            None,
        )

    def put(self, list_id: int, member: Member, column: str = "") -> None:
        self.lists[list_id][member.contact_id] = member
        self.touched.add(member.email)
        if column:
            self.ledger.append(Entry(list_id, column, member.contact_id))

    def take(self, list_id: int, member: Member, column: str = "") -> None:
        del self.lists[list_id][member.contact_id]
        if column:
            self.ledger.append(Entry(list_id, column, member.contact_id))

    def another(self, member: Member) -> Member:
        """The same person under a new id."""
        return Member(next(self.numbers), member.email, member.registered_at, member.status)

    # -- what happens

    def register(self, list_id: int, column: str = "joined_count", days_ago: float = 0.1) -> Member:
        number = next(self.numbers)
        member = Member(number, f"p{number}@x.example", self.now - dt.timedelta(days=days_ago))
        self.put(list_id, member, column)
        return member

    def register_late(self, list_id: int) -> None:
        self.register(list_id, days_ago=self.draw.choice((1.5, 3, 9, 400)))

    def register_and_leave(self, list_id: int) -> None:
        """Between two readings: nobody can know."""
        self.take(list_id, self.register(list_id, ""))

    def delete(self, list_id: int) -> None:
        if member := self.someone(list_id):
            self.take(list_id, member, "left_count")
            self.gone.append(member)

    def add_again(self, list_id: int) -> None:
        """Who was deleted before the last reading, with the old id or a new one."""
        if known := [member for member in self.gone if member.email not in self.touched]:
            member = self.draw.choice(known)
            self.gone.remove(member)
            self.put(list_id, member if self.draw.random() < 0.5 else self.another(member), "joined_count")

    def replace(self, list_id: int) -> None:
        """Merged or deleted and added at once: the same address, with another id or the old one."""
        if member := self.someone(list_id):
            self.take(list_id, member)
            self.put(list_id, self.another(member) if self.draw.random() < 0.7 else member)

    def merge(self, list_id: int) -> None:
        """Two entries of the list become one of them."""
        if (member := self.someone(list_id)) and self.someone(list_id):
            self.take(list_id, member, "left_count")

    def move(self, list_id: int) -> None:
        member = self.someone(list_id)
        if member and (target := self.elsewhere(list_id, member.email)):
            self.take(list_id, member, "moved_out_count")
            self.put(target, member if self.draw.random() < 0.5 else self.another(member), "moved_in_count")

    def join_another(self, list_id: int) -> None:
        """The address is on two lists then."""
        member = self.someone(list_id)
        if member and (target := self.elsewhere(list_id, member.email)):
            self.put(target, self.another(member), "joined_count")

    def unsubscribe(self, list_id: int) -> None:
        self._turn(list_id, "unsubscribed")

    def bounce(self, list_id: int) -> None:
        self._turn(list_id, "bounced")

    def _turn(self, list_id: int, status: str) -> None:
        if (member := self.someone(list_id)) and member.status == "active":
            member.status = status
            self.ledger.append(Entry(list_id, f"{status}_count", member.contact_id))

    def change_address(self, list_id: int) -> None:
        if member := self.someone(list_id):
            member.email = f"new-{member.email}"
            self.touched.add(member.email)

    def new_list(self, list_id: int) -> None:
        """With people of another list, and new ones."""
        target = max(self.lists) + 1
        self.lists[target] = {}
        for _ in range(3):
            if member := self.someone(list_id):
                self.take(list_id, member, "moved_out_count")
                self.put(target, member, "moved_in_count")
            self.register_late(target)

    def delete_list(self, list_id: int) -> None:
        """Some of its people are put on another list."""
        for member in list(self.lists[list_id].values()):
            target = self.elsewhere(list_id, member.email)
            is_moved = target is not None and self.draw.random() < 0.3
            self.take(list_id, member, "moved_out_count" if is_moved else "left_count")
            if is_moved and target is not None:
                self.put(target, self.another(member), "moved_in_count")
        del self.lists[list_id]

    def live(self, actions: int, *, calm: int = 0) -> None:
        """So many things happen; to the list `calm` none that a listing which breaks off would show by
        halves."""
        simple = (self.register, self.register_late, self.delete, self.unsubscribe)
        every = (
            *simple,
            *(self.register_and_leave, self.add_again, self.replace, self.merge, self.move, self.move),
            *(self.join_another, self.bounce, self.change_address),
        )
        for _ in range(actions):
            list_id = self.draw.choice(list(self.lists))
            self.draw.choice(simple if calm else every)(list_id)  # type: ignore[operator]


@dataclass
class Nights:
    """The service, the home that reads it, and what both said so far."""

    home: Home
    service: Service
    zone: str = _ZONES[0]
    truth: Figures = field(default_factory=dict)
    sizes: dict[int, tuple[int, int]] = field(default_factory=dict)
    read_on: dict[int, dt.date] = field(default_factory=dict)
    seen: dict[dt.date, dict[str, Figures]] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    observed: int = 0
    changed: int = 0

    @property
    def today(self) -> dt.date:
        return self.service.now.astimezone(ZoneInfo(self.zone)).date()

    def read(self, broken: int = 0) -> None:
        """One night: every list is listed, the one that is `broken` to its half; models, ledger,
        comparison."""
        minutes = (self.service.now - START).total_seconds() / 60
        listing = self.home.answer(
            lists.GETLISTS,
            {"lists": {"items": [{"id": one, "name": f"L{one}"} for one in self.service.lists]}},
            minutes,
        )
        self._load(listing, tables.LISTS)
        delivered = {}
        for number, (list_id, members) in enumerate(self.service.lists.items(), 1):
            some = [*members.values()][:: 2 if list_id == broken else 1]
            delivered[list_id] = {member.contact_id for member in some}
            items = [self._item(member) for member in some]
            answer = self.home.answer(
                contacts.GETCONTACTS, {"contacts": {"items": items}}, minutes + number / 10, listid=list_id
            )
            self._load(answer, tables.CONTACTS, is_complete=list_id != broken)
        self._write_down(delivered, broken)
        self.compare()

    def _item(self, member: Member) -> dict[str, str]:
        shown = member.registered_at.astimezone(ZoneInfo(self.zone))
        return {
            "id": str(member.contact_id),
            "email": member.email,
            "status": member.status,
            "registration_date": f"{shown:%Y-%m-%d %I:%M %p}",
        }

    def _load(self, answer: Any, table: Any, **options: Any) -> None:
        self.home.load([answer], table, zone=self.zone, **options)

    def _write_down(self, delivered: dict[int, set[int]], broken: int) -> None:
        """What this reading can show of the ledger stands on today; the rest waits for the next one."""
        waiting: list[Entry] = []
        flows: dict[int, Counter[str]] = defaultdict(Counter)
        for entry in self.service.ledger:
            is_shown = entry.list_id != broken or (
                entry.column != "left_count" and entry.contact_id in delivered[broken]
            )
            if is_shown:
                flows[entry.list_id][entry.column] += 1
            else:
                waiting.append(entry)
        self.service.ledger = waiting
        if not waiting:
            self.service.touched.clear()
        for list_id in {*self.sizes, *self.service.lists}:
            self._row(
                list_id, flows[list_id], is_complete=list_id != broken and list_id in self.service.lists
            )

    def _row(self, list_id: int, flows: Counter[str], *, is_complete: bool) -> None:
        members = self.service.lists.get(list_id, {}).values()
        active = sum(member.status == "active" for member in members)
        row: dict[str, Any] = self.truth.setdefault(
            (list_id, self.today), dict.fromkeys((*FLOWS, "days_covered")) | dict.fromkeys(FLOWS, 0)
        )
        for column in FLOWS:
            row[column] += flows[column]
        if list_id not in self.sizes and self.seen == {}:
            row["joined_count"] = None  # by registration: not the ledger's business
            self.sizes[list_id] = (len(members), active)
        before = self.sizes.get(list_id, (0, 0))[0]
        size = (
            before
            + flows["joined_count"]
            + flows["moved_in_count"]
            - flows["left_count"]
            - flows["moved_out_count"]
        )
        if (is_complete or list_id not in self.service.lists) and size != len(members):
            self.differences.append(
                f"the ledger has {size} members of list {list_id}, the service {len(members)}"
            )
        row["size"] = size
        row["active_size"] = active if is_complete or list_id not in self.service.lists else None
        self.sizes[list_id] = (size, active)
        if is_complete and self.read_on.get(list_id) != self.today:
            row["days_covered"] = (
                (self.today - self.read_on[list_id]).days if list_id in self.read_on else None
            )
            self.read_on[list_id] = self.today

    # -- comparing

    def compare(self) -> None:
        """Build the models; what they say is what the ledger says, and of days that are over what they said
        before."""
        self.build(*(_MODELS if self.seen else selected("+account_daily")))
        marts = self.marts()
        for key, row in self.truth.items():
            found = marts["list_growth_daily"].get(key, {})
            wrong = {
                name: (found.get(name), value)
                for name, value in row.items()
                if value != found.get(name) and (value or not _may_lack(name, row))
            }
            if wrong and not (
                key not in marts["list_growth_daily"] and not any(row[name] for name in (*FLOWS, "size"))
            ):
                self.differences.append(f"{self.today}: list {key[0]} on {key[1]}: {wrong} (found, true)")
        for day in {day for _, day in self.truth}:
            rows = [row for (_, other), row in self.truth.items() if other == day]
            member_count = marts["account_daily"]["main", day]["member_count"]
            if member_count != (true := sum(row["size"] for row in rows)):
                self.differences.append(f"{self.today}: {member_count} members on {day}, not {true}")
        self._hold_to(marts)
        self.seen[self.today] = marts

    def _hold_to(self, marts: dict[str, Figures]) -> None:
        """Days that were over at an earlier night are as they were then."""
        for then, before in self.seen.items():
            for name, rows in before.items():
                over = {key: row for key, row in rows.items() if key[1] < then}
                self.observed += len(over)
                for key, row in over.items():
                    if (now := marts[name].get(key)) != row:
                        self.changed += 1
                        self.differences.append(f"{self.today}: {name} {key} is {now}, was {row} on {then}")
                if unknown := [
                    key
                    for key in marts[name].keys() - rows.keys()
                    if key[1] < then and key[0] in {one for one, _ in rows}
                ]:
                    self.changed += 1
                    self.differences.append(
                        f"{self.today}: {name} has days that were not there on {then}: {unknown[:3]}"
                    )

    def build(self, *select: str) -> None:
        """These models, with the account's time zone as the settings say."""
        report = build(self.home.warehouse.path, ModelSettings(zones={"main": self.zone}), select=select)
        broken = [outcome.name for outcome in report.of(Status.FAILED) if outcome.node.model in _MODELS]
        if broken:
            raise SystemExit(f"the models do not build: {report.problem}")

    def marts(self) -> dict[str, Figures]:
        """The figures by key and day."""
        with duckdb.connect(str(self.home.warehouse.path), read_only=True) as connection:
            growth = connection.sql("select * exclude (account, list_name) from marts.list_growth_daily")
            account = connection.sql(
                f"select account, day_on, {', '.join(_ACCOUNT)} from marts.account_daily where "
                "member_count is not null"
            )
            return {"list_growth_daily": _by_day(growth), "account_daily": _by_day(account)}


def _may_lack(name: str, row: dict[str, Any]) -> bool:
    """What the ledger leaves open: active members where a listing broke off, and flows of a day on which the
    list was not read, or for the first time."""
    return (name == "active_size" and row[name] is None) or (name in FLOWS and row["days_covered"] is None)


def _by_day(relation: duckdb.DuckDBPyRelation) -> Figures:
    rows = [dict(zip(relation.columns, values, strict=True)) for values in relation.fetchall()]
    return {(row[relation.columns[0]], row["day_on"]): row for row in rows}


def lived(folder: Path, seed: int, nights: int = 10) -> Nights:
    """So many readings; what they have found is in `differences`."""
    draw = random.Random(seed)
    service = Service(draw, START.replace(hour=2, minute=30))
    service.lists = {1: {}, 2: {}, 3: {}}
    for _ in range(40):
        service.register(draw.choice((1, 2)), "", days_ago=draw.random() * 60)
    service.touched.clear()
    found = Nights(Home(folder, _ZONES[0]), service)
    found.read()
    for night in range(2, nights + 1):
        later = dt.timedelta(hours=12) if night % 10 == 4 else _DAY * draw.choice((1, 1, 1, 2, 3))
        service.now += later
        broken = 2 if night % 10 == 6 and 2 in service.lists else 0
        if night % 10 == 3:
            service.new_list(1)
        if night % 10 == 9 and len(service.lists) > 3:
            service.delete_list(max(service.lists))
        service.live(draw.randint(3, 9), calm=broken)
        if night % 10 == 8:
            found.zone = _ZONES[(_ZONES.index(found.zone) + 1) % len(_ZONES)]
        found.read(broken)
    before = found.marts()
    rebuild(folder, archive=found.home.archive)
    found.build(*_MODELS)  # with their tests
    found.differences += [
        f"a rebuilt warehouse says otherwise: {name}"
        for name, rows in found.marts().items()
        if rows != before[name]
    ]
    found.home.close()
    return found


def attack(minutes: float, seed: int) -> str:
    """Ten nights of one seed after another while there is time, at least once; AssertionError with what
    differs."""
    end, done, observed = time.monotonic() + 60 * minutes, 0, 0
    while not done or time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            found = lived(Path(folder), seed + done)
        again = f"python -m tests.attack.growth --seed {seed + done} --seeds 1"
        assert not found.differences, "\n".join([again, *found.differences[:20]])
        assert not found.changed, f"{again}: {found.changed} observed days changed"
        done, observed = done + 1, observed + found.observed
    return f"{done} seeds of ten nights, {observed:,} rows of days that were over compared: no difference"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="the first of them")
    parser.add_argument("--nights", type=int, default=10)
    arguments = parser.parse_args()
    began, differences = time.monotonic(), 0
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        with tempfile.TemporaryDirectory() as folder:
            found = lived(Path(folder), seed, arguments.nights)
        differences += len(found.differences)
        for line in found.differences[:20]:
            print(f"  differs: {line}")
        print(
            f"seed {seed}: {found.observed:,} rows of days that were over compared, {found.changed} changed "
            "after they were observed"
        )
    print(f"growth: {differences} differences (goal 0), {time.monotonic() - began:.0f} s")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
