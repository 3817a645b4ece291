"""A plan in the making: every row is given exactly one fate, and the sample of changes is spread over columns.

Not here: which fate a row deserves (`kinds`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol

from marketing_api.errors import InvalidCall
from marketing_api.operation import Operation
from pipelines.write_back.input.rows import Rows
from pipelines.write_back.input.values import BadValue
from pipelines.write_back.item import DONE, OPEN, BadRow, Change, IdleRow, Item, Kind, Past, Plan, State

#: A sample that a person takes in at a glance.
MAX_CHANGES, MAX_CHANGES_OF_COLUMN = 36, 6
#: The service's own queue may show an effect so much later than it said ok: a reading within these seconds may still be without it.
QUEUE_S = 120.0

UNCHANGED, SENT_BEFORE, QUEUED = "unchanged", "sent before", "already queued"


class Last(Protocol):
    """The last thing done, or to be done, about each subject of the planned kind, or of another."""

    def __call__(self, subjects: Collection[str], kind: Kind | None = None) -> Mapping[str, Past]: ...


class Draft:
    """Collects items and the fates of rows. A row that is both sent and rejected (in parts) counts as sent."""

    def __init__(self, account: str, kind: Kind, rows: Rows) -> None:
        self.account = account
        self.kind = kind
        self.rows = rows
        self.items: list[Item] = []
        self._bad: dict[int, BadRow] = {}
        self._idle: dict[int, IdleRow] = {}
        self._sent: dict[int, bool] = {}  # row → whether it is new
        self._changes: list[Change] = []
        self._of_column: Counter[str] = Counter()
        self._warnings: list[str] = list(rows.warnings)
        self._counted: Counter[str] = Counter()

    def indexes(self) -> Iterator[int]:
        """Places of the rows that could be read; the others are rejected."""
        for index, number in enumerate(self.rows.numbers):
            if number in self.rows.faults:
                self.reject(number, self.rows.faults[number])
            else:
                yield index

    def reject(self, row: int, reason: str, *, by_service: bool = False) -> None:
        self._bad.setdefault(row, BadRow(row, reason, by_service))

    def reject_as_before(self, row: int, past: Past) -> None:
        """The service refused the same before, or took it and did otherwise."""
        said = f": {past.message}" if past.message else ""
        what = "this was sent before, and read back otherwise" if past.is_drifted else f"the service refused this before{said}"
        self.reject(row, f"{what} (`marketing-sync push retry` sends it again)", by_service=True)

    def leave(self, row: int, reason: str, email: str | None = None, contact_id: int | None = None) -> None:
        """Nothing to do."""
        self._idle.setdefault(row, IdleRow(row, reason, email, contact_id))

    def send(self, item: Item, *, is_new: bool) -> None:
        """One request; its rows are new or changed, new as soon as one of their items is."""
        self.items.append(item)
        for row in item.rows:
            self._sent[row] = self._sent.get(row, False) or is_new

    def change(self, row: int, what: str, column: str, old: str | None, new: str | None) -> None:
        if len(self._changes) < MAX_CHANGES and self._of_column[column] < MAX_CHANGES_OF_COLUMN:
            self._of_column[column] += 1
            self._changes.append(Change(row, what, column, old, new))

    def warn(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.append(text)

    def count(self, text: str, number: int = 1) -> None:
        """A warning that is said once, after the number of rows that it is about."""
        self._counted[text] += number

    def plan(self) -> Plan:
        """Rows are in the order of the input. A row with parts that were sent is not idle; one without is rejected first."""
        partly = sum(row in self._sent for row in self._bad)
        if partly:
            self.count("sent in part, since the service refused the rest before (`marketing-sync push retry` sends it again)", partly)
        bad = {row: each for row, each in self._bad.items() if row not in self._sent}
        idle = tuple(each for row, each in self._idle.items() if row not in self._sent and row not in bad)
        said = [f"{number:,} {'row' if number == 1 else 'rows'}: {text}" for text, number in self._counted.items()]
        return Plan(
            account=self.account,
            kind=self.kind,
            source=self.rows.source,
            row_count=len(self.rows),
            items=tuple(sorted(self.items, key=lambda item: item.rows)),
            new_count=sum(self._sent.values()),
            changed_count=sum(not is_new for is_new in self._sent.values()),
            idle=idle,
            bad=tuple(sorted(bad.values(), key=lambda each: each.row)),
            changes=tuple(sorted(self._changes, key=lambda each: each.row)),
            warnings=(*self._warnings, *said),
        )


def bound(operation: Operation, *, lacks_id: bool = False, **values: Any) -> Mapping[str, str]:
    """The wire parameters, without the id that is looked up when it is sent (`lacks_id`). BadValue when the operation's
    declaration refuses them.
    """
    try:
        params = operation.bind(**(values | {"id": 1} if lacks_id else values)).params
    except InvalidCall as problem:
        raise BadValue(f"the service would not take it: {problem.parameter or 'a value'} is not allowed") from None
    return {name: value for name, value in params.items() if name != "id"} if lacks_id else params


def is_open(past: Past | None) -> bool:
    return past is not None and past.state in OPEN


def is_done(past: Past | None) -> bool:
    return past is not None and past.state in DONE and not past.is_drifted


def is_refused(past: Past | None) -> bool:
    """Refused in words, or by what was seen of it: it is sent again when somebody wants it."""
    return past is not None and (past.state is State.REJECTED or past.is_drifted)


def is_newer(past: Past, as_of: float | None) -> bool:
    """Whether what was done (or will be) is not in what was read at `as_of`."""
    if past.state in OPEN or as_of is None or past.done_at is None:
        return True
    return past.verified_at > as_of if past.verified_at is not None else past.done_at > as_of - QUEUE_S
