"""A plan in the making: every row of the input is given exactly one fate, compared with what is
known and with what was done before.

Belongs here: what all kinds share. Not here: which fate a row deserves (`kinds`). Nothing is
requested of the service."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Protocol, TypeVar

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
FORGOTTEN = "who this is about asked to be forgotten: leave the row out"
#: Of rows that put somebody on a list (observation 52).
REACHES_PEOPLE = (
    "adding people to a list sends them the mails of automations that start there, immediately"
)


class Superseded(BadValue):
    """A later row says what counts."""


class _OfSomebody(Protocol):
    @property
    def number(self) -> int: ...
    @property
    def who(self) -> Who: ...


T = TypeVar("T")
R = TypeVar("R", bound=_OfSomebody)
S = TypeVar("S", bound=Hashable)


_rows = attrgetter("rows")


@dataclass
class Planning(ABC):
    """What a kind plans with: the rows and their columns, what is known, what was sent before; it
    collects items and the fates of rows. A row that is both sent and rejected (in parts) counts as
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
        self._said: dict[Hashable, tuple[int, object]] = {}  # about a subject, and by which row
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

    # ---- rows, and whom they are about

    def read_rows(self, read_row: Callable[[int, int], T]) -> Iterator[T]:
        """The rows by `read_row` (place, number); those that it raises BadValue for, or that could
        not be read at all, are rejected."""
        faults = {**self.picked.faults, **self.rows.faults}
        places = list(enumerate(self.rows.numbers))
        for index, number in places[::-1] if self.options.keep == "last" else places:
            if number in faults:
                self.reject_row(number, faults[number])
            elif (row := self.try_row(number, read_row, index, number)) is not None:
                yield row

    def find_people(
        self, rows: Sequence[R], *, needs_address: str = ""
    ) -> Iterator[tuple[R, Person]]:
        """The rows with whom they are about; those are rejected that are about nobody, or about a
        contact without a known address where something `needs_address`."""
        everybody = {row.who for row in rows}
        by_id = self.known.by_id(who.contact_id for who in everybody if who.contact_id is not None)
        by_address = self.known.by_address(who.key for who in everybody if who.contact_id is None)

        def find_person(who: Who) -> Person:
            if who.contact_id is None:
                members = by_address.get(who.key, [])
                ids = list(dict.fromkeys(one.contact_id for one in members))
                return Person(who, members, ids, who.email, who.key)
            members = by_id.get(who.contact_id, [])
            if not members and self.known.is_all_known:
                raise BadValue(
                    f"there is no contact {who.contact_id} (contacts were read on "
                    f"{self.known.read_on()})"
                )
            email = _address_of(who, members)
            if needs_address and email is None:
                raise BadValue(
                    f"the address of contact {who.contact_id} is not known, and {needs_address} "
                    "needs it: give it in a column email"
                )
            return Person(who, members, [who.contact_id], email, normal_form(email or ""))

        for row in rows:
            person = self.try_row(row.number, find_person, row.who)
            if person is not None:
                yield row, person

    def not_said(
        self,
        row: int,
        subjects: Mapping[S, object],
        otherwise: Callable[[S], str] = lambda subject: "",
    ) -> list[S]:
        """The subjects about which no earlier row says the same. BadValue when none is left, or
        when an earlier row says `otherwise`, in words; Superseded where the last row counts, which
        is read first."""
        earlier = {subject: self._said[subject] for subject in subjects if subject in self._said}
        if earlier and self.options.keep == "last":
            raise Superseded(f"row {next(iter(earlier.values()))[0]} is later and counts")
        for subject, (number, said) in earlier.items():
            if said != subjects[subject]:
                raise BadValue(f"row {number} {otherwise(subject)}: keep one of them")
        if len(earlier) == len(subjects):
            raise BadValue(f"it says the same as row {next(iter(earlier.values()))[0]}")
        left = [subject for subject in subjects if subject not in earlier]
        self._said |= {subject: (row, subjects[subject]) for subject in left}
        return left

    # ---- what was done before

    def find_last(self, subjects: Iterable[str]) -> Mapping[str, Past]:
        """The last thing done about each by this kind of push."""
        return self.outbox.find_last(self.known.account, dict.fromkeys(subjects), self.kind)

    def is_settled(
        self, row: int, person: Person, standing: str | Past | None, contact_id: int | None
    ) -> bool:
        """Whether the row has its fate by what was done before: it is left for this reason, or
        rejected like what was refused."""
        if isinstance(standing, Past):
            self.reject_as_before(row, standing)
        elif standing:
            self.leave_row(row, standing, person.email, contact_id)
        return standing is not None

    # ---- fates

    def try_row(self, row: int, do: Callable[..., T], *arguments: object) -> T | None:
        """What it returns; None, and the row is left or rejected, when it raises Superseded or
        BadValue."""
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
        """The service rejected the same before, or took it and did otherwise."""
        reason = f": {past.message}" if past.message else ""
        option = " --permanent" if is_permanent(past.message) else ""
        what = (
            "this was sent before, with a mismatch on read-back"
            if past.is_drifted
            else f"the service rejected this before{reason}"
        )
        self.reject_row(
            row, f"{what} (`marketing-sync push retry{option}` sends it again)", by_service=True
        )

    def leave_row(
        self, row: int, reason: str, email: str | None = None, contact_id: int | None = None
    ) -> None:
        self._idle.setdefault(row, Reason((row,), reason, email=email, contact_id=contact_id))

    def send_item(self, item: Item, *, is_new: bool, is_unknown_address: bool = False) -> None:
        """One request; its rows are new or changed, new as soon as one of their items is.
        `is_unknown_address`: to the warehouse."""
        self._items.append(item)
        if is_unknown_address and item.email is not None:
            self._unknown_addresses.add(normal_form(item.email))
        for row in item.rows:
            self._sent[row] = self._sent.get(row, False) or is_new

    # ---- what a person should see

    def note_change(
        self, row: int, what: str, column: str, old: str | None, new: str | None
    ) -> None:
        if len(self._changes) < MAX_CHANGES and self._of_column[column] < MAX_CHANGES_OF_COLUMN:
            self._of_column[column] += 1
            self._changes.append(Change(row, what, column, old, new))

    def add_warning(self, text: str) -> None:
        self._warnings[text] = None

    def count_warning(self, text: str, number: int = 1) -> None:
        """A warning that is given once, after the number of rows that it is about."""
        self._counted[text] += number

    def _make_result(self) -> Plan:
        """Rows are in the order of the input. A row with parts that were sent is not idle; one
        without is rejected first."""
        sent = self._sent
        bad = self._bad
        partly = len(bad.keys() & sent)
        if partly:
            self.count_warning(
                "sent in part, since the service rejected the rest before (`marketing-sync push "
                "retry` sends it again)",
                partly,
            )
        counted = (
            f"{number:,} {'row' if number == 1 else 'rows'}: {text}"
            for text, number in self._counted.items()
        )
        warnings = [*self.rows.warnings, *self.picked.warnings, *self._warnings, *counted]
        idle = (reason for row, reason in self._idle.items() if row not in sent and row not in bad)
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
            bad=sorted((reason for row, reason in bad.items() if row not in sent), key=_rows),
            changes=tuple(sorted(self._changes, key=lambda reason: reason.row)),
            warnings=tuple(dict.fromkeys(warnings)),
            columns=self.picked.renamed,
            unknown_address_count=len(self._unknown_addresses),
        )


def _address_of(who: Who, members: list[Member]) -> str | None:
    """As the row or the warehouse says it. BadValue when they differ."""
    addresses = {normal_form(member.email): member.email for member in members if member.email}
    if who.email and addresses and who.key not in addresses:
        raise BadValue(f"contact {who.contact_id} has another e-mail address than the row says")
    return who.email or next(iter(addresses.values()), None)


def without_forgotten(
    rows: Rows, account: str, forgotten: Forgotten, mapping: Mapping[str, str]
) -> Rows:
    """Rows about people who asked to be forgotten are rejected, and keep nothing of what is in
    them."""
    if not forgotten:
        return rows
    places = rows_about(rows, account, forgotten, mapping)
    cells = {
        title: [None if place in places else cell for place, cell in enumerate(column)]
        for title, column in rows.cells.items()
    }
    return replace(
        rows,
        cells=cells,
        faults={**rows.faults, **{rows.numbers[place]: FORGOTTEN for place in places}},
    )


def rows_about(
    rows: Rows, account: str, forgotten: Forgotten, mapping: Mapping[str, str]
) -> set[int]:
    """The places of rows that name people who asked to be forgotten."""
    return {
        place
        for title, column in rows.cells.items()
        for place, text in enumerate(map(text_of, column))
        if text and forgotten.is_named(account, text, is_id=names_contacts(title, mapping))
    }


#: What differs in reasons that are the same: numbers of rows, days.
_FIGURES = re.compile(r"[0-9]+")


def set_reported_apart(plan: Plan, rows: Rows, rejected: Iterable[tuple[str, str]]) -> Plan:
    """Rows that were rejected before, for the same reason, are apart from those that are rejected
    now. `rejected`: whom rows were about that our checks rejected, and why."""
    reported = {(who, _FIGURES.sub("", reason)) for who, reason in rejected}
    names = [column for title, column in rows.cells.items() if title in ("email", "contact_id")]
    numbers = dict(zip(rows.numbers, zip(*names, strict=True), strict=True))
    bad: list[Reason] = []
    known: list[Reason] = []
    for reason in plan.bad:
        who = next(filter(None, map(text_of, numbers[reason.rows[0]])), "")
        is_reported = reason.by_service or (who, _FIGURES.sub("", reason.reason)) in reported
        is_id = who.isdecimal() and len(who) < 19
        named = replace(reason, contact_id=int(who)) if is_id else replace(reason, email=who)
        (known if is_reported else bad).append(named)
    return replace(plan, bad=tuple(bad), reported=tuple(known))


def bind_parameters(operation: Operation, **values: Any) -> Mapping[str, str]:
    """The wire parameters; an id that is None is looked up when it is sent. BadValue when the
    operation's declaration refuses them."""
    lacks_id = values.get("id", 0) is None
    try:
        params = operation.bind(**(values | {"id": 1} if lacks_id else values)).params
    except InvalidCall as error:
        raise BadValue(
            f"the service would not take it: {error.parameter or 'a value'} is not allowed"
        ) from None
    return {name: value for name, value in params.items() if name != "id"} if lacks_id else params


def find_standing(
    pasts: Sequence[Past | None], content: str, *, again: bool = False
) -> str | Past | None:
    """What keeps a change from being sent that is about all of these: why there is nothing to do,
    or who refused it. `again`: what is done is no reason."""
    same = [past for past in pasts if past is not None and past.content == content]
    if len(same) < len(pasts) or not all(past.is_in_force for past in same):
        return next((past for past in same if past.is_refused), None)
    if any(past.is_open for past in same):
        return QUEUED
    return None if again else SENT_BEFORE
