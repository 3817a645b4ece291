"""Runs activations: who entered and who left a query's result since last time is pushed, nobody else.

Somebody is a member once the service has taken it, so that a push that failed, was killed or was refused is tried again by the
next run. Not here: what an activation is (`activations`), how a push works (`push`, `push_service`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from pipelines.settings import Settings, SettingsError
from pipelines.write_back.accounts import account_of
from pipelines.write_back.activations.activations import FILE, Activation
from pipelines.write_back.input.columns import fold
from pipelines.write_back.input.rows import Cell, InputError, Rows, text_of
from pipelines.write_back.item import DONE, Kind, Source, State
from pipelines.write_back.outbox.entry import Entry
from pipelines.write_back.outbox.outbox import Members, Outbox, outbox_path
from pipelines.write_back.planning.draft import QUEUED
from pipelines.write_back.push import Order, Planned, begin, plan_push, run_query
from pipelines.write_back.push_service import Watch, finish_push
from pipelines.write_back.reporting.result import Ran, Result

#: Skipped, and yet not as it is to be.
_NOT_DONE = (QUEUED, "cancelled")


class Shrunken(InputError):
    """The result lost so many that it looks like a mistake of the query."""


@dataclass(frozen=True)
class Turnover:
    """One activation now: the people of its result, and those who came and went. `planned` is the push that says so, of no rows where
    nothing is to be said and an earlier push has left something; None when that is not so either.
    """

    activation: Activation
    account: str
    size: int
    entered: Mapping[str, int] = field(repr=False)  # who → row
    left: Mapping[str, int] = field(repr=False)
    planned: Planned | None = None

    @property
    def is_idle(self) -> bool:
        return not self.entered and not self.left


def turnover(settings: Settings, activation: Activation, *, accept_shrink: bool = False) -> Turnover:
    """Who entered and left, and the plan to say so. No request. Raises InputError (Shrunken), WarehouseError, OutboxError."""
    account = _account(settings, activation)
    people = run_query(settings, activation.query)
    who = _who_column(activation, people)
    now = {_key(cell): place for place, cell in reversed(list(enumerate(people.cells[who])))}  # the first of each
    nobody = now.pop("", None)
    if nobody is not None:
        raise InputError(f"activation {activation.name}: {who} is empty in a row of the result; leave such rows out of the query")
    with Outbox(outbox_path(settings.home)) as outbox:
        members, is_left = outbox.members(account, activation.name), outbox.has_left(account)
    _check_size(activation, len(now), len(members), None if accept_shrink else settings.shrink_limit)
    entered = {key: place for key, place in sorted(now.items(), key=lambda item: item[1]) if key not in members}
    gone = [key for key in members if key not in now]
    rows, came, went = (_tag_rows if activation.tag else _list_rows)(activation, people, who, entered, gone)
    found = Turnover(activation, account, len(now), came, went)
    if not len(rows) and not is_left:
        return found
    order = Order(Kind.TAGS if activation.tag else Kind.CONTACTS, account, verify=activation.verify)
    return replace(found, planned=plan_push(settings, order, rows))


def _account(settings: Settings, activation: Activation) -> str:
    try:
        return account_of(settings, activation.account)
    except SettingsError as problem:
        said = str(problem).replace("with --account", "with account = …")
        raise InputError(f"{FILE}, [activations.{activation.name}]: {said}") from None


def turnover_lines(found: Turnover) -> list[str]:
    """In words, without addresses."""
    note = "" if not found.left or found.activation.untag_when_gone else " (nothing is sent about those)"
    turned = f"{len(found.entered):,} entered, {len(found.left):,} left{note}"
    return [f"activation {found.activation.name}: {found.size:,} people; since last time {turned}"]


def activate(settings: Settings, found: Turnover, ran: Ran, watch: Watch) -> Result | None:
    """Push what `turnover` found, and count as members those whom the service has taken. None when there was nothing to push.

    Raises InputError when too many rows are bad, and what pushing raises.
    """
    with Outbox(outbox_path(settings.home)) as outbox:
        if found.planned is None:
            outbox.note_members(found.account, Members(found.activation.name, (), found.left))
            return None
        push_id = begin(settings, found.planned, run=ran.run)
        try:
            return finish_push(settings, outbox, push_id, ran, watch)
        finally:
            _note_members(outbox, found, push_id)


def _note_members(outbox: Outbox, found: Turnover, push_id: int) -> None:
    """Who entered is a member once it is done; who left is none once it is done or cannot be (nobody there to be untagged)."""
    fates: dict[int, list[Entry]] = {}
    for entry in outbox.items(push_id):
        for row in entry.rows:
            fates.setdefault(row, []).append(entry)
    done = {row for row, entries in fates.items() if all(map(_is_done, entries))}
    over = done | {row for row, entries in fates.items() if all(_is_done(each) or each.state is State.REJECTED for each in entries)}
    entered = [key for key, row in found.entered.items() if row in done]
    left = [key for key, row in found.left.items() if row in over or row == 0]
    outbox.note_members(found.account, Members(found.activation.name, entered, left))


def _is_done(entry: Entry) -> bool:
    return (entry.state in DONE and not entry.drift) or (entry.state is State.SKIPPED and entry.message not in _NOT_DONE)


def _check_size(activation: Activation, now: int, before: int, shrink_limit: float | None) -> None:
    if shrink_limit is None or not before or (now and now >= before * (1 - shrink_limit)):
        return
    raise Shrunken(
        f"activation {activation.name}: its result has {now:,} people, and had {before:,}; nothing was pushed. Look at the query and the "
        f"data; if it is right, run `marketing-sync push activations {activation.name} --accept-shrink --apply` (in the launchpad:"
        " accept_shrink)"
    )


def _who_column(activation: Activation, people: Rows) -> str:
    """The column that says who it is: an address, or for tags a contact id."""
    wanted = ("email", "contactid") if activation.tag else ("email",)
    for name in wanted:
        for column in people.columns:
            if fold(column) == name:
                return column
    needed = "email or contact_id" if activation.tag else "email"
    raise InputError(f"activation {activation.name}: its query has no column {needed}")


def _key(cell: Cell) -> str:
    return (text_of(cell) or "").lower()


_Made = tuple[Rows, Mapping[str, int], Mapping[str, int]]


def _tag_rows(activation: Activation, people: Rows, who: str, entered: Mapping[str, int], gone: Collection[str]) -> _Made:
    """A row for each who entered, as the query says it, and for each who left, as it was known."""
    untagged = list(gone) if activation.untag_when_gone else []
    names: list[Cell] = [*(people.cells[who][place] for place in entered.values()), *untagged]
    actions: list[Cell] = [*("add" for _ in entered), *("remove" for _ in untagged)]
    # Somebody may be known by another kind of name since the query changed.
    columns: dict[str, list[Cell]] = {
        "email": [name if "@" in (text_of(name) or "") else None for name in names],
        "contact_id": [None if "@" in (text_of(name) or "") else name for name in names],
        "tag": [activation.tag] * len(names),
        "action": actions,
    }
    columns = {name: cells for name, cells in columns.items() if any(cells) or not names}
    numbers = list(range(2, 2 + len(names)))
    came = dict(zip(entered, numbers, strict=False))
    went = dict(zip(untagged, numbers[len(entered) :], strict=True)) if untagged else dict.fromkeys(gone, 0)
    return _rows(activation, columns, numbers), came, went


def _list_rows(activation: Activation, people: Rows, who: str, entered: Mapping[str, int], gone: Collection[str]) -> _Made:
    """The rows of the query for each who entered, with the list; leaving the result changes nothing in the list."""
    places = list(entered.values())
    columns: dict[str, list[Cell]] = {name: [cells[place] for place in places] for name, cells in people.cells.items()}
    columns = {name: cells for name, cells in columns.items() if fold(name) not in ("list", "listid", "contactid")}
    columns["list_id"] = [activation.list] * len(places)
    numbers = [people.numbers[place] for place in places]
    return _rows(activation, columns, numbers), dict(zip(entered, numbers, strict=True)), dict.fromkeys(gone, 0)


def _rows(activation: Activation, columns: dict[str, list[Cell]], numbers: list[int]) -> Rows:
    return Rows(tuple(columns), columns, numbers, Source(f"activation {activation.name}", ""))
