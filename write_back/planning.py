"""Planning a push: every row of the input is compared with the warehouse and with earlier pushes,
and gets exactly one fate: new, changed, idle or rejected.

Belongs here: what all kinds share. Not here: which fate a row gets (`kinds`). Planning sends no
request."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from home.formatting import count_of
from home.output import Change
from marketing_api.address import normal_form
from marketing_api.errors import InvalidCall
from marketing_api.operation import Operation
from warehouse.forgetting import Forgotten
from write_back.account_state import Known, Member, Person, Who
from write_back.input.columns import Picked, names_contacts
from write_back.input.rows import Rows, text_of
from write_back.input.values import BadValue
from write_back.item import Item, Options, Past, Plan, Reason
from write_back.outbox.outbox import Outbox
from write_back.refusals import is_permanent

#: A sample that a person takes in at a glance.
MAX_CHANGES = 36
MAX_CHANGES_OF_COLUMN = 6

UNCHANGED = "unchanged"
SENT_BEFORE = "sent before"
QUEUED = "already queued"
OTHER_ACCOUNT = "the column account names another account: push it there, or --ignore the column"
FORGOTTEN = "the person of this row asked to be forgotten: leave the row out"
#: The warning for rows that put people on a list (observation 52).
REACHES_PEOPLE = "adding people to a list starts its automations, which send mails immediately"


class Superseded(BadValue):
    """A later row about the same thing counts instead."""


class _Numbered(Protocol):
    @property
    def number(self) -> int: ...


class _OfSomebody(_Numbered, Protocol):
    @property
    def who(self) -> Who: ...


T = TypeVar("T")
N = TypeVar("N", bound=_Numbered)
R = TypeVar("R", bound=_OfSomebody)
S = TypeVar("S", bound=Hashable)


_rows = attrgetter("rows")


def find_contradictions(
    rows: Sequence[N], said_by: Callable[[N], Mapping[S, object]]
) -> dict[int, tuple[S, int]]:
    """Row → a subject about which another row says something else, and that row. `said_by`: what a
    row says, by subject."""
    first: dict[S, tuple[int, object]] = {}
    different: dict[S, int] = {}  # from the first
    for row in rows:
        for subject, content in said_by(row).items():
            if first.setdefault(subject, (row.number, content))[1] != content:
                different.setdefault(subject, row.number)
    found: dict[int, tuple[S, int]] = {}
    for row in rows if different else ():
        for subject, content in said_by(row).items():
            if subject in different:
                number, said = first[subject]
                other = number if said != content else different[subject]
                found.setdefault(row.number, (subject, other))
    return found


@dataclass
class Planning(ABC):
    """What a kind plans with: the rows and their columns, the warehouse and earlier pushes. It
    collects items and the fates of rows. A row that is sent in part and rejected in part counts as
    sent."""

    kind: str
    rows: Rows
    known: Known
    outbox: Outbox  # what was done before
    options: Options
    picked: Picked

    def __post_init__(self) -> None:
        self._items: list[Item] = []
        self._bad: dict[int, Reason] = {}
        self._idle: dict[int, Reason] = {}
        self._sent: dict[int, bool] = {}  # row → whether it is new
        self._said: dict[Hashable, int] = {}  # subject → row
        self._unknown_addresses: set[str] = set()
        self._changes: list[Change] = []
        self._of_column = Counter[str]()
        self._warnings: dict[str, None] = {}
        self._counted = Counter[str]()

    def make_plan(self) -> Plan:
        """Give every row its fate. Raises InputError for columns that cannot be used."""
        self.plan_rows()
        return self._make_result()

    @abstractmethod
    def plan_rows(self) -> None:
        """Give every row its fate."""

    # ---- rows, and the people that they are about

    def read_rows(self, read_row: Callable[[int, int], T]) -> Iterator[T]:
        """The rows by `read_row` (place, number). Rows that have a fault, or for which it raises
        BadValue, are rejected."""
        faults = {**self.picked.faults, **self.rows.faults}
        for number, cell in zip(self.rows.numbers, self.picked.accounts, strict=False):
            if text_of(cell) not in (None, self.known.account):
                faults[number] = OTHER_ACCOUNT
        places = list(enumerate(self.rows.numbers))
        if self.options.keep == "last":
            places.reverse()
        for index, number in places:
            if number in faults:
                self.reject_row(number, faults[number])
                continue
            row = self.try_row(number, read_row, index, number)
            if row is not None:
                yield row

    def find_people(
        self, rows: Sequence[R], *, needs_address: str = ""
    ) -> Iterator[tuple[R, Person]]:
        """The rows with their people. Rows about a contact that does not exist are rejected; so are
        rows about a contact without a known address, if something `needs_address`."""
        known = self.known
        everybody = {row.who for row in rows}
        ids = [who.contact_id for who in everybody if who.contact_id is not None]
        by_id = known.by_id(ids)
        by_address = known.by_address(who.key for who in everybody if who.contact_id is None)

        def find_person(who: Who) -> Person:
            contact_id = who.contact_id
            if contact_id is None:
                members = by_address.get(who.key, [])
                contact_ids = list(dict.fromkeys(one.contact_id for one in members))
                return Person(who, members, contact_ids, who.email, who.key)
            members = by_id.get(contact_id, [])
            if not members and known.is_all_known:
                raise BadValue(
                    f"there is no contact {contact_id} (contacts were read on {known.read_on()})"
                )
            email = _address_of(who, members)
            if needs_address and email is None:
                raise BadValue(
                    f"the address of contact {contact_id} is not known, and {needs_address} "
                    "needs it: add a column email"
                )
            return Person(who, members, [contact_id], email, normal_form(email or ""))

        for row in rows:
            person = self.try_row(row.number, find_person, row.who)
            if person is not None:
                yield row, person

    def not_said(self, row: int, subjects: Iterable[S]) -> list[S]:
        """The subjects about which no earlier row says the same. Raises BadValue when none is left.
        If the last row counts, it is read first, and Superseded is raised when no subject is left
        for this one."""
        left: list[S] = []
        earlier_row = 0
        for subject in subjects:
            if subject in self._said:
                earlier_row = earlier_row or self._said[subject]
            else:
                left.append(subject)
        if not left and self.options.keep == "last":
            raise Superseded("a later row counts")
        if not left:
            raise BadValue(f"it says the same as row {earlier_row}")
        self._said |= dict.fromkeys(left, row)
        return left

    # ---- what was done before

    def find_last(self, subjects: Iterable[str]) -> Mapping[str, Past]:
        """The last change of each subject by this kind of push."""
        return self.outbox.find_last(self.known.account, dict.fromkeys(subjects), self.kind)

    def is_settled(
        self, row: int, person: Person, standing: str | Past | None, contact_id: int | None
    ) -> bool:
        """Whether an earlier push decides the fate of the row: it is left for the reason
        `standing`, or rejected like the refused change `standing`."""
        if isinstance(standing, Past):
            self.reject_as_before(row, standing)
        elif standing:
            self.leave_row(row, standing, person.email, contact_id)
        return standing is not None

    # ---- fates

    def try_row(self, row: int, do: Callable[..., T], *arguments: object) -> T | None:
        """The result of `do`. When it raises Superseded, the row is left; when it raises BadValue,
        the row is rejected."""
        try:
            return do(*arguments)
        except Superseded as error:
            self.leave_row(row, str(error))
        except BadValue as error:
            self.reject_row(row, str(error))
        return None

    def reject_row(self, row: int, reason: str, *, by_service: bool = False) -> None:
        self._bad.setdefault(row, Reason((row,), reason, by_service))

    def reject_as_before(self, row: int, past: Past) -> None:
        """The service rejected the same before, or accepted it and shows other values."""
        what = "this was sent before, with a mismatch on read-back"
        if not past.is_drifted:
            reason = f": {past.message}" if past.message else ""
            what = f"the service rejected this before{reason}"
        option = " --permanent" if is_permanent(past.message) else ""
        advice = f"`marketing-sync push retry{option}` sends it again"
        self.reject_row(row, f"{what} ({advice})", by_service=True)

    def leave_row(
        self, row: int, reason: str, email: str | None = None, contact_id: int | None = None
    ) -> None:
        why = Reason((row,), reason, email=email, contact_id=contact_id)
        self._idle.setdefault(row, why)

    def send_item(self, item: Item, *, is_new: bool, is_unknown_address: bool = False) -> None:
        """Plan a request. Its rows count as changed, or as new if one of their items is.
        `is_unknown_address`: the warehouse does not know the address."""
        self._items.append(item)
        if is_unknown_address and item.email is not None:
            self._unknown_addresses.add(normal_form(item.email))
        for row in item.rows:
            self._sent[row] = self._sent.get(row, False) or is_new

    # ---- what a person should see

    def note_change(
        self, row: int, what: str, column: str, old: str | None, new: str | None
    ) -> None:
        is_full = len(self._changes) >= MAX_CHANGES
        if is_full or self._of_column[column] >= MAX_CHANGES_OF_COLUMN:
            return
        self._of_column[column] += 1
        self._changes.append(Change(row, what, column, old, new))

    def add_warning(self, text: str) -> None:
        self._warnings[text] = None

    def count_warning(self, text: str, number: int = 1) -> None:
        """A warning that is displayed once, with the number of rows."""
        self._counted[text] += number

    def _make_result(self) -> Plan:
        """Rows are in the order of the input. A row that is sent in part is not idle or rejected; a
        row that is rejected in part is not idle."""
        sent = self._sent
        partly = len(self._bad.keys() & sent)
        if partly:
            self.count_warning(
                "sent in part, since the service rejected the rest before (`marketing-sync push "
                "retry` sends it again)",
                partly,
            )
        counted = [f"{count_of(count, 'row')}: {text}" for text, count in self._counted.items()]
        warnings = [*self.rows.warnings, *self.picked.warnings, *self._warnings, *counted]
        bad = [reason for row, reason in self._bad.items() if row not in sent]
        settled_rows = sent.keys() | self._bad.keys()
        idle = [reason for row, reason in self._idle.items() if row not in settled_rows]
        new_count = sum(sent.values())
        return Plan(
            account=self.known.account,
            kind=self.kind,
            source=self.rows.source,
            row_count=len(self.rows),
            items=sorted(self._items, key=_rows),
            new_count=new_count,
            changed_count=len(sent) - new_count,
            idle=sorted(idle, key=_rows),
            bad=sorted(bad, key=_rows),
            changes=tuple(sorted(self._changes, key=lambda change: change.row)),
            warnings=tuple(dict.fromkeys(warnings)),
            columns=self.picked.renamed,
            unknown_address_count=len(self._unknown_addresses),
        )


def _address_of(who: Who, members: list[Member]) -> str | None:
    """The address in the row or in the warehouse. Raises BadValue when they differ."""
    addresses = [member.email for member in members if member.email]
    if not who.email:
        return addresses[0] if addresses else None
    if addresses and who.key not in map(normal_form, addresses):
        raise BadValue(f"contact {who.contact_id} has another e-mail address than the row says")
    return who.email


def without_forgotten(
    rows: Rows, account: str, forgotten: Forgotten, mapping: Mapping[str, str]
) -> Rows:
    """Rows about people who asked to be forgotten are rejected, and their cells are emptied."""
    if not forgotten:
        return rows
    places = rows_about(rows, account, forgotten, mapping)
    cells = {title: list(column) for title, column in rows.cells.items()}
    faults = dict(rows.faults)
    for place in places:
        faults[rows.numbers[place]] = FORGOTTEN
        for column in cells.values():
            column[place] = None
    return replace(rows, cells=cells, faults=faults)


def rows_about(
    rows: Rows, account: str, forgotten: Forgotten, mapping: Mapping[str, str]
) -> set[int]:
    """The places of rows that name people who asked to be forgotten."""
    places: set[int] = set()
    for title, column in rows.cells.items():
        is_id = names_contacts(title, mapping)
        for place, cell in enumerate(column):
            text = text_of(cell) or ""
            name = text.rpartition("<")[2].rstrip(">")  # like `Ann <ann@example.com>`
            if name and forgotten.is_named(account, name, is_id=is_id):
                places.add(place)
    return places


#: Row numbers and days, by which equal reasons differ.
_FIGURES = re.compile(r"[0-9]+")


def set_reported_apart(plan: Plan, rows: Rows, rejected: Iterable[tuple[str, str]]) -> Plan:
    """Separate rows that were rejected before, for the same reason, from those that are rejected
    now. `rejected`: address or contact id of rows that our checks rejected, and why."""
    reported_before = {(who, _FIGURES.sub("", reason)) for who, reason in rejected}
    names = [column for title, column in rows.cells.items() if title in ("email", "contact_id")]
    numbers = dict(zip(rows.numbers, zip(*names, strict=True), strict=True))
    bad: list[Reason] = []
    reported: list[Reason] = []
    for reason in plan.bad:
        name_cells = numbers[reason.rows[0]]
        who = next(filter(None, map(text_of, name_cells)), "")
        same = (who, _FIGURES.sub("", reason.reason))
        group = reported if reason.by_service or same in reported_before else bad
        if who.isdecimal() and len(who) < 19:
            group.append(replace(reason, contact_id=int(who)))
        else:
            group.append(replace(reason, email=who))
    return replace(plan, bad=tuple(bad), reported=tuple(reported))


def bind_parameters(operation: Operation, **values: Any) -> Mapping[str, str]:
    """The parameters as they are sent. An id that is None is left out and looked up before sending.
    Raises BadValue for values that the operation does not allow."""
    lacks_id = "id" in values and values["id"] is None
    if lacks_id:
        values["id"] = 1  # the operation requires one
    try:
        params = operation.bind(**values).params
    except InvalidCall as error:
        name = error.parameter or "a value"
        raise BadValue(f"the service would refuse it: {name} is not allowed") from None
    if lacks_id:
        return {name: value for name, value in params.items() if name != "id"}
    return params


def find_standing(
    pasts: Sequence[Past | None], content: str, *, again: bool = False
) -> str | Past | None:
    """Why a change of all these subjects is not sent: a reason, or the change that was refused
    before. None: it is sent. `again`: also if it was sent before."""
    same = [past for past in pasts if past is not None and past.content == content]
    is_complete = len(same) == len(pasts)
    if not is_complete or not all(past.is_in_force for past in same):
        return next((past for past in same if past.is_refused), None)
    if any(past.is_open for past in same):
        return QUEUED
    return None if again else SENT_BEFORE
