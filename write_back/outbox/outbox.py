"""The outbox: all items, durable before their request leaves and after its response.

    with open_outbox(home) as outbox:
        push_id = outbox.enqueue_plan(plan)
        with outbox.hold_sender("main"):                  # one sender per account
            outbox.recover_sent("main")
            for entry in outbox.list_open("main"): ...    # claim → request → settle

Belongs here: pushes and entries as values, their changes, and queries about them. Not here: the
statements (`statements.sql`), the file and resuming with its copy (`store`), sending (`sending`),
how items are made (`planning`). Any number of processes may read and change it at the same time. A
sender claims an entry first, so no two processes send the same one."""

import itertools
import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from home.door import outbox_of
from marketing_api.address import normal_form
from marketing_api.exchange import order_of
from write_back.item import DONE, Earlier, Expected, Past, Plan, Reason, State
from write_back.outbox.store import Change, Store, sender_lock

_CHUNK = 10_000
#: A row that is part of several items has the first of these states that one of them has.
_MISMATCH = "mismatch"
_LEAST_FAR = (
    State.SENDING,
    State.UNKNOWN,
    State.PLANNED,
    State.REJECTED,
    _MISMATCH,
    State.APPLIED,
    State.VERIFIED,
    State.SKIPPED,
)

#: What a state may become. Any other change is a programming error, and is refused.
_NEXT: Mapping[State, tuple[State, ...]] = {
    State.SENDING: (State.APPLIED, State.REJECTED, State.UNKNOWN, State.PLANNED),
    State.UNKNOWN: (State.APPLIED, State.VERIFIED, State.REJECTED, State.PLANNED, State.UNKNOWN),
    State.APPLIED: (State.APPLIED, State.VERIFIED),
    State.VERIFIED: (State.VERIFIED,),
    # A look-up found nobody, or that the same was sent before.
    State.PLANNED: (State.REJECTED, State.SKIPPED, State.PLANNED),
}


# ---- values: a push, an entry (an item with its outcome), and a push's counts


@dataclass(frozen=True, slots=True)
class Push:
    """A push as it was enqueued. `source`: the name of the file, or `query`; `options`: JSON from
    the caller. Times are unix seconds."""

    push_id: int
    account: str
    kind: str
    source: str
    row_count: int
    begun_at: float
    options: Mapping[str, Any]

    @property
    def verify(self) -> str:
        """How it is read back: `all`, `sample` or `none`."""
        return str(self.options.get("verify", "sample"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the outbox: an item, or (`operation` None) an input row that was rejected or has
    nothing to send.

    Times are unix seconds; `changed_at` is the last change of the state. `rejected_by` is `check`
    or `service`. `drift`: mismatches on read-back, `{field: [intended, found]}`; {} when everything
    was as intended. `request_id`: the last response (sync.requests); `revision` grows with every
    change, over all entries."""

    item_id: int
    push_id: int
    account: str
    kind: str
    source: str
    rows: tuple[int, ...]
    email: str | None = field(repr=False)
    contact_id: int | None
    operation: str | None
    params: Mapping[str, str] = field(repr=False)
    expected: Expected = field(repr=False)
    must_look_up: bool
    state: State
    message: str | None
    rejected_by: str | None
    attempts: int
    planned_at: float
    sent_at: float | None
    changed_at: float
    done_at: float | None
    verified_at: float | None
    drift: Mapping[str, Any] | None = field(repr=False)
    request_id: int | None
    run: str | None
    revision: int

    @property
    def is_done(self) -> bool:
        return self.state in DONE

    @property
    def why(self) -> Reason:
        return Reason(self.rows, self.message or "no reason given", self.rejected_by == "service")

    @property
    def is_first(self) -> bool:
        """Nothing was sent yet."""
        return self.sent_at is None and not self.attempts

    @property
    def needs_look_up(self) -> bool:
        return self.must_look_up and self.contact_id is None


_JSON = ("rows", "params", "drift")
_decode_expected = msgspec.json.Decoder(Expected).decode


def read_entry(row: sqlite3.Row) -> Entry:
    values = dict(row)
    values |= {name: json.loads(values[name]) for name in _JSON if values[name] is not None}
    values |= {
        "rows": tuple(values["rows"]),
        "expected": _decode_expected(values["expected"]),
        "state": State(values["state"]),
        "must_look_up": bool(values["must_look_up"]),
    }
    return Entry(**values)


def read_push(row: sqlite3.Row) -> Push:
    return Push(**dict(row) | {"options": json.loads(row["options"])})


def _read_past(row: sqlite3.Row) -> Past:
    state = State(row["state"])
    done_at = row["done_at"]
    verified_at = row["verified_at"]
    if row["request_id"] is not None and row["sent_at"] is not None:
        late = order_of(row["request_id"]) - row["sent_at"]
        done_at = done_at and done_at + late
        verified_at = verified_at and verified_at + late
    return Past(
        item_id=row["item_id"],
        content=row["content"],
        state=state,
        message=row["message"],
        done_at=done_at,
        verified_at=verified_at,
        is_drifted=state in DONE and row["drift"] not in (None, "{}"),
        source=row["source_name"],
    )


@dataclass(frozen=True, slots=True)
class Counts:
    """The progress of a push: input rows by state, requests by state, and `drifted` requests, which
    have a mismatch on read-back. `mismatched_rows`: applied rows with a mismatch."""

    rows: dict[str, int]
    requests: dict[str, int]
    drifted: int
    mismatched_rows: int


@dataclass(frozen=True, slots=True)
class Retried:
    """How many requests are planned again, how many are not because a later push changed the same
    thing, and the rejected ones that are `left`."""

    planned: int
    superseded: int
    left: Sequence[Entry] = ()


class Claim(NamedTuple):
    """An audience sync's claim on a subject. `is_wanted`: it wanted the tag when it was pushed
    last; else it still has to remove it. `takes_away`: it removes the tag once no entry wants
    it."""

    takes_away: bool
    is_wanted: bool


#: The name of an audience sync, and its changed claims; None: the claim ends.
Claims = tuple[str, Mapping[str, Claim | None]]


# ---- the outbox


def open_outbox(home: Path) -> "Outbox":
    return Outbox(outbox_of(home))


class Outbox(Store, AbstractContextManager["Outbox"]):
    """Thread-safe. Every method raises OutboxError (`store`) when the file cannot be used; then
    nothing has changed."""

    # ---- enqueueing and looking up

    def enqueue_plan(
        self,
        plan: Plan,
        *,
        run: str | None = None,
        options: Mapping[str, Any] | None = None,
        keep: Callable[[int], object] = lambda push_id: None,
        corrects: Collection[tuple[str, str]] = (),
        corrects_refused: bool = False,
        claims: Claims | None = None,
    ) -> int:
        """Store the plan completely or not at all; returns the number of its push. Items are sent
        in the plan's order.

        `corrects`: rejected rows of earlier pushes (push, row) that the plan's rows replace; they
        no longer count as rejected. `corrects_refused`: this includes rows that the service
        refused; not for kinds whose refused request may have arrived. `claims`: the changes of an
        audience sync."""
        with self.open_change() as change:
            push_id = _insert_plan(change, plan, run, options or {})
            change.run_statement(
                "correct",
                account=plan.account,
                kind=plan.kind,
                push_id=push_id,
                named=[f"{earlier}[{row}]" for earlier, row in corrects],
                corrects_refused=corrects_refused,
            )
            if claims is not None:
                _change_claims(change, plan.account, *claims)
            keep(push_id)
        return push_id

    def find_last(
        self,
        account: str,
        subjects: Iterable[str],
        kind: str,
        *,
        done_before: int | None = None,
        read_at: float | None = math.inf,
    ) -> dict[str, Past]:
        """The last change of each subject by this kind, done or planned. A subject that was never
        changed is left out. `done_before`: the last change that was done before this item. Changes
        that a reading at `read_at` may not have are kept as each other's `earlier`."""
        found: dict[str, Past] = {}
        remaining = iter(subjects)
        while chunk := list(itertools.islice(remaining, _CHUNK)):
            rows = self.fetch_rows(
                "last", account=account, kind=kind, subjects=chunk, done_before=done_before
            )
            for row in rows:
                past = _read_past(row)
                before = found.get(row["subject"])
                if before is not None and before.is_newer(read_at):
                    past = past._replace(earlier=before)
                found[row["subject"]] = past
        return found

    def list_pushes(self, account: str | None = None, *, limit: int = 1000) -> list[Push]:
        """The latest first."""
        return [read_push(row) for row in self.fetch_rows("pushes", account=account, limit=limit)]

    def find_push(self, push_id: int) -> Push | None:
        return next(map(read_push, self.fetch_rows("push", push_id=push_id)), None)

    def list_entries(self, push_id: int, states: Collection[State] = tuple(State)) -> list[Entry]:
        """The push's entries, in order of sending; then rejected and idle rows."""
        return self._read_entries("items", push_id=push_id, states=states)

    def iterate_items(self, push_id: int) -> Iterator[Entry]:
        """The same, one at a time."""
        return map(read_entry, self.iterate_rows("items", push_id=push_id, states=tuple(State)))

    def list_open(
        self, account: str | None, *, after: int = 0, until: int | None = None, limit: int = -1
    ) -> list[Entry]:
        """Open entries in order of push and row; of all accounts when none is named. `after`,
        `until`: only these items; `limit`: at most that many."""
        return self._read_entries("open", account=account, after=after, until=until, limit=limit)

    def open_batches(self, account: str) -> tuple[int, Iterator[list[Entry]]]:
        """How many entries are open now, and the entries in the same order, in batches that fit
        into memory, without those that are cancelled meanwhile. The first batch has everything up
        to the last entry with an unknown outcome, because equal ones must not be sent before
        it."""
        ((count, last_unknown, last),) = self.fetch_rows("open_ends", account=account)

        def read_batches() -> Iterator[list[Entry]]:
            yield self.list_open(account, until=last_unknown)
            after = last_unknown
            while batch := self.list_open(account, after=after, until=last, limit=_CHUNK):
                yield [entry for entry in batch if entry.state is State.PLANNED]
                after = batch[-1].item_id

        return count, read_batches()

    def open_count(self, account: str | None) -> int:
        """How many entries of an account are open; None: of all accounts."""
        counts = self.fetch_rows("open_counts")
        return sum(count for name, count in counts if account in (None, name))

    def open_by_push(self, account: str) -> list[Earlier]:
        """What earlier pushes left open, in the order of sending."""
        return [Earlier(*row) for row in self.fetch_rows("open_by_push", account=account)]

    def _read_entries(self, statement: str, **values: Any) -> list[Entry]:
        return list(map(read_entry, self.fetch_rows(statement, **values)))

    def find_subjects(self, item_ids: Iterable[int]) -> dict[int, list[str]]:
        """The subjects of each item."""
        found: defaultdict[int, list[str]] = defaultdict(list)
        for item_id, subject in self.fetch_rows("subjects", item_ids=item_ids):
            found[item_id].append(subject)
        return found

    def sent_to(self, account: str, kind: str, contact_id: int) -> list[Entry]:
        """The entries of the kind that were sent to the contact, in any push: they may be in its
        timeline."""
        return self._read_entries("sent_to", account=account, kind=kind, contact_id=contact_id)

    def synced_at(self, account: str, kind: str, email: str) -> float | None:
        """When the service last put the address on a list (unix seconds). `kind`: the kind that
        does so."""
        address = normal_form(email)
        first = f"{address}|"
        behind = f"{address}}}"  # } is the character after |
        ((synced_at,),) = self.fetch_rows(
            "synced_at", account=account, kind=kind, first=first, behind=behind
        )
        return None if synced_at is None else float(synced_at)

    def count_states(self, push_id: int) -> Counts:
        ((drifted,),) = self.fetch_rows("drifted", push_id=push_id)
        rows = dict(self.fetch_rows("rows_by_state", push_id=push_id, ranked=_LEAST_FAR))
        requests = dict(self.fetch_rows("requests_by_state", push_id=push_id))
        mismatched_rows = rows.pop(_MISMATCH, 0)
        if mismatched_rows:
            rows[State.APPLIED] = rows.get(State.APPLIED, 0) + mismatched_rows
        return Counts(rows, requests, drifted, mismatched_rows)

    @property
    def begun_at(self) -> float | None:
        """When the first push was enqueued (unix seconds), which identifies this outbox. None while
        it is empty."""
        found = self.fetch_rows("begun_at")
        return float(found[0][0]) if found else None

    @property
    def revision(self) -> int:
        """The revision of the last change."""
        return int(self.fetch_rows("revision")[0][0])

    def changed_since(self, revision: int) -> Iterator[Entry]:
        """Entries changed after `revision`, as of one moment, in order of change."""
        return map(read_entry, self.iterate_rows("changed_since", revision=revision))

    def rejected_by_check(self, account: str, source: str) -> list[tuple[str, str]]:
        """Address or contact id of rows from this source that our checks rejected, and why."""
        rows = self.fetch_rows("rejected_by_check", account=account, source=source)
        return [tuple(row) for row in rows]

    def find_claims(self, account: str, activation: str) -> dict[str, Claim]:
        """What an audience sync claims, by subject."""
        found: dict[str, Claim] = {}
        for row in self.fetch_rows("claims", account=account, activation=activation):
            found[row["subject"]] = Claim(bool(row["takes_away"]), bool(row["is_wanted"]))
        return found

    def list_claimers(self) -> list[tuple[str, str]]:
        """Account and name of each audience sync that claims something."""
        return [tuple(row) for row in self.fetch_rows("claimers")]

    def claim_subjects(
        self, account: str, activation: str, claims: Mapping[str, Claim | None]
    ) -> None:
        """Change what an audience sync claims; None: the claim ends."""
        if claims:
            with self.open_change() as change:
                _change_claims(change, account, activation, claims)

    # ---- sending

    def hold_sender(self, account: str) -> AbstractContextManager[None]:
        """Be the account's only sender. Raises OutboxBusy, which names the other sender."""
        return sender_lock(self.path.parent, account)

    def recover_sent(self, account: str) -> int:
        """Mark items that a killed sender sent and did not settle as unknown; returns how many.
        Only for the holder of `hold_sender`."""
        return self._change_rows("recover", account=account)

    def claim_item(
        self,
        item_id: int,
        *,
        contact_id: int | None = None,
        expected: Expected | None = None,
    ) -> bool:
        """Commit the intent to send the item now; False when it is not planned any more.
        `contact_id`: the contact that was looked up; `expected`: if it differs from the plan."""
        with self.open_change() as change:
            claimed = change.run_statement(
                "claim", item_id=item_id, contact_id=contact_id, expected=expected
            )
            if not claimed.rowcount:
                return False
            change.run_statement("unread", item_id=item_id)
            if contact_id is not None:
                change.run_statement("name_contact", item_id=item_id, contact_id=contact_id)
            return True

    def settle_item(
        self,
        item_id: int,
        state: State,
        *,
        message: str | None = None,
        request_id: int | None = None,
        contact_id: int | None = None,
        drift: Mapping[str, Any] | None = None,
    ) -> None:
        """Commit the outcome of an item. A rejection is the service's; `drift` {}: it was read back
        as intended. Raises ValueError when the state cannot follow the present one."""
        with self.open_change() as change:
            (word,) = change.run_statement("state", item_id=item_id).fetchone()
            before = State(word)
            if state not in _NEXT.get(before, ()):
                raise ValueError(f"item {item_id} is {before} and cannot become {state}")
            change.run_statement(
                "settle",
                item_id=item_id,
                state=state,
                message=message,
                rejected_by="service" if state is State.REJECTED else None,
                request_id=request_id,
                drift=drift,
                contact_id=contact_id,
            )

    def unclaim_item(self, item_id: int) -> None:
        """Undo a claim of an item that was certainly not sent."""
        self._change_rows("unclaim", item_id=item_id)

    def not_read_back(self, account: str) -> set[int]:
        """Pushes with sent items that were not read back since."""
        return {row[0] for row in self.fetch_rows("not_read_back", account=account)}

    def has_left(self, account: str) -> bool:
        """Whether the next push has to send, resolve or read back more than its own rows."""
        return bool(self.list_open(account, limit=1) or self.not_read_back(account))

    def note_read_back(self, push_ids: Collection[int]) -> None:
        self._change_rows("note_read_back", push_ids=push_ids)

    # ---- maintenance

    def cancel_items(
        self, account: str, push_id: int | None = None, *, unknown: bool = False
    ) -> int:
        """Drop planned requests of one push or all, and optionally `unknown` ones; returns how
        many. A dropped unknown request counts as never sent: the person who drops it has
        checked."""
        return self._change_rows("cancel", account=account, push_id=push_id, unknown=unknown)

    def retry_items(
        self,
        account: str,
        push_id: int | None = None,
        *,
        not_idempotent: Collection[str],
        is_left: Callable[[str | None], bool] = lambda message: False,
    ) -> Retried:
        """Plan again what the service rejected, what drifted, and idempotent requests with an
        unknown outcome. Leaves out what a later item has changed, and messages that `is_left`.

        A request of a kind `not_idempotent` that was sent becomes unknown, with no attempts: the
        next sender looks for it before it sends."""
        chosen: dict[str, Any] = {"account": account, "push_id": push_id}
        with self.open_change() as change:
            refused = map(read_entry, change.run_statement("refused", **chosen))
            left = [entry for entry in refused if is_left(entry.message)]
            left_ids = [entry.item_id for entry in left]
            chosen |= {"left": left_ids, "looked_for": not_idempotent}
            (superseded,) = change.run_statement("count_superseded", **chosen).fetchone()
            looked_for = change.run_statement("look_first", **chosen)
            planned = change.run_statement("plan_again", **chosen)
        return Retried(looked_for.rowcount + planned.rowcount, superseded, left)

    def prune_rows(self, days: int | None) -> int:
        """Delete skipped rows of pushes that are older than N days (None: of none); returns how
        many. The push's own counts stay."""
        with self.open_change() as change:
            before = change.now - days * 86_400 if days else 0
            change.run_statement("prune_effects", before=before)
            return change.run_statement("prune", before=before).rowcount

    def _change_rows(self, statement: str, **values: Any) -> int:
        """Run one statement; returns how many rows it changed."""
        with self.open_change() as change:
            return change.run_statement(statement, **values).rowcount

    def __exit__(self, *_: object) -> None:
        self.close()


def _change_claims(
    change: Change, account: str, activation: str, claims: Mapping[str, Claim | None]
) -> None:
    subjects_of: defaultdict[Claim | None, list[str]] = defaultdict(list)
    for subject, claim in claims.items():
        subjects_of[claim].append(subject)
    key = {"account": account, "activation": activation}
    for claim, subjects in subjects_of.items():
        if claim is None:
            change.run_statement("drop_claims", **key, subjects=subjects)
        else:
            change.run_statement("add_claims", **key, **claim._asdict(), subjects=subjects)


def _insert_plan(change: Change, plan: Plan, run: str | None, options: Mapping[str, Any]) -> int:
    """The number of the new push. Items in their order, then rejected and idle rows."""
    (push_id,) = change.run_statement(
        "add_push",
        account=plan.account,
        kind=plan.kind,
        source_name=plan.source.name,
        source_hash=plan.source.content_hash,
        row_count=plan.row_count,
        item_count=len(plan.items),
        new_count=plan.new_count,
        changed_count=plan.changed_count,
        idle_count=len(plan.idle),
        bad_count=len(plan.bad),
        run=run,
        options=options,
    ).fetchone()
    for item in plan.items:
        values = {column.name: getattr(item, column.name) for column in fields(item)}
        (item_id,) = change.run_statement("add_item", push_id=push_id, **values).fetchone()
        key = {"account": plan.account, "kind": plan.kind, "item_id": item_id}
        for subject, content in item.effects.items():
            change.run_statement("add_effect", **key, subject=subject, content=content)
    for state, reasons in ((State.REJECTED, plan.bad), (State.SKIPPED, plan.idle)):
        for reason in reasons:
            by = "service" if reason.by_service else "check"
            change.run_statement(
                "add_row",
                push_id=push_id,
                rows=reason.rows,
                message=reason.reason,
                state=state,
                rejected_by=by if state is State.REJECTED else None,
                email=reason.email,
                contact_id=reason.contact_id,
            )
    return int(push_id)
