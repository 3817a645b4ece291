"""The outbox: everything that is to be sent, is being sent or was sent, durable before the request
leaves and after its response.

    with open_outbox(home) as outbox:
        push_id = outbox.enqueue_plan(plan)
        with outbox.hold_sender("main"):                  # one sender per account
            outbox.recover_sent("main")
            for entry in outbox.list_open("main"): ...    # claim → request → settle

Belongs here: pushes and entries as values, what happens to them, and queries about them. Not here:
the statements (`statements.sql`), the file and resuming with its copy (`store`), sending
(`sending`), what an item is made from (`planning`). Any number of processes may read and change it
meanwhile; whoever sends claims an entry first, so none is sent by two."""

import itertools
import json
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
#: A row that is part of several items is as far as the one least far.
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

#: What a state may become. Whatever is not here would be a mistake of ours, and is refused.
_NEXT: Mapping[State, tuple[State, ...]] = {
    State.SENDING: (State.APPLIED, State.REJECTED, State.UNKNOWN, State.PLANNED),
    State.UNKNOWN: (State.APPLIED, State.VERIFIED, State.REJECTED, State.PLANNED, State.UNKNOWN),
    State.APPLIED: (State.APPLIED, State.VERIFIED),
    State.VERIFIED: (State.VERIFIED,),
    # A look-up that found nobody, or that it was sent before.
    State.PLANNED: (State.REJECTED, State.SKIPPED, State.PLANNED),
}


# ---- what it holds: a push, an entry, which is one item with how far it has come, and a push's
# counts


@dataclass(frozen=True, slots=True)
class Push:
    """One push as it was begun, `source`: the name of what its rows came from. Times are unix
    seconds; `options` is whatever the caller wanted kept (JSON)."""

    push_id: int
    account: str
    kind: str
    source: str
    row_count: int
    begun_at: float
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the outbox: an item, or (`operation` None) a row that our checks rejected or that
    has nothing to do.

    Times are unix seconds: `changed_at` is that of the last change of the state. `rejected_by` is
    `check` or `service`. `drift`: mismatches on read-back, `{field: [intended, found]}`; {} when it
    was read and is as intended. `request_id` is that of the last response (sync.requests);
    `revision` grows with every change, over all entries."""

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
        """Nothing of it was sent yet, whatever became of that."""
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


@dataclass(frozen=True, slots=True)
class Counts:
    """How far a push is: input rows by state, requests by state, requests with a mismatch on
    read-back. Applied rows with a mismatch are `mismatched_rows`, too."""

    rows: dict[str, int]
    requests: dict[str, int]
    drifted: int
    mismatched_rows: int


@dataclass(frozen=True, slots=True)
class Retried:
    """Requests that are tried again, those that are not since a later push changed the same thing,
    and rejected ones that are `left`."""

    planned: int
    superseded: int
    left: Sequence[Entry] = ()


class Claim(NamedTuple):
    """What an audience sync has to do with a subject: it wants it (or did, when it was pushed
    last), or has yet to take it away, once nobody wants it."""

    takes_away: bool
    is_wanted: bool


#: The name of an audience sync, and what changes of its claims; None: no more.
Claims = tuple[str, Mapping[str, Claim | None]]


# ---- the outbox


def open_outbox(home: Path) -> "Outbox":
    return Outbox(outbox_of(home))


class Outbox(Store, AbstractContextManager["Outbox"]):
    """Thread-safe. Every method raises OutboxError (`store`) when the file cannot be used, and then
    has changed nothing."""

    # ---- making and looking

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
        """Take the plan in, all of it or nothing; its push's number. Items are sent in the plan's
        order.

        `corrects`: rejected rows of earlier pushes (push, row) in whose place it has rows; they are
        not rejected any more. `corrects_refused`: those neither that the service refused; not where
        what it refused may have arrived all the same. `claims`: those of the audience sync that it
        is of."""
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
        self, account: str, subjects: Iterable[str], kind: str, *, done_before: int | None = None
    ) -> dict[str, Past]:
        """The last thing done, or to be done, about each subject by this kind; those never sent
        anything about are absent. `done_before`: the last one that was done before this item."""
        found: dict[str, Past] = {}
        remaining = iter(subjects)
        while chunk := list(itertools.islice(remaining, _CHUNK)):
            rows = self.fetch_rows(
                "last", account=account, kind=kind, subjects=chunk, done_before=done_before
            )
            for row in rows:
                (
                    subject,
                    item_id,
                    content,
                    state,
                    message,
                    request_id,
                    sent_at,
                    done,
                    verified,
                    drift,
                    source,
                ) = row
                is_drifted = state in DONE and drift not in (None, "{}")
                late = (
                    0.0 if request_id is None or sent_at is None else order_of(request_id) - sent_at
                )
                done = done and done + late
                verified = verified and verified + late
                found[subject] = Past(
                    item_id, content, State(state), message, done, verified, is_drifted, source
                )
        return found

    def list_pushes(self, account: str | None = None, *, limit: int = 1000) -> list[Push]:
        """The latest first."""
        return [read_push(row) for row in self.fetch_rows("pushes", account=account, limit=limit)]

    def find_push(self, push_id: int) -> Push | None:
        return next(map(read_push, self.fetch_rows("push", push_id=push_id)), None)

    def find_entry(self, item_id: int) -> Entry:
        return self._read_entries("entry", item_id=item_id)[0]

    def list_entries(self, push_id: int, states: Collection[State] = tuple(State)) -> list[Entry]:
        """The push's entries, in order of sending; then rejected and idle rows."""
        return self._read_entries("items", push_id=push_id, states=states)

    def iterate_items(self, push_id: int) -> Iterator[Entry]:
        """The same, one at a time."""
        return map(read_entry, self.iterate_rows("items", push_id=push_id, states=tuple(State)))

    def list_open(
        self, account: str | None, *, after: int = 0, until: int | None = None, limit: int = -1
    ) -> list[Entry]:
        """What is left to be sent or found out, in order of push and row; of all accounts when none
        is named. `after`, `until`: of these items alone; `limit`: no more than so many."""
        return self._read_entries("open", account=account, after=after, until=until, limit=limit)

    def open_batches(self, account: str) -> tuple[int, Iterator[list[Entry]]]:
        """How much is open now, and that in the same order, in batches that memory holds, without
        what was cancelled meanwhile. Everything up to the last entry that is unknown is in the
        first one: nothing that is alike may be sent before."""
        ((count, last_unknown, last),) = self.fetch_rows("open_ends", account=account)

        def read_batches() -> Iterator[list[Entry]]:
            yield self.list_open(account, until=last_unknown)
            after = last_unknown
            while batch := self.list_open(account, after=after, until=last, limit=_CHUNK):
                yield [entry for entry in batch if entry.state is State.PLANNED]
                after = batch[-1].item_id

        return count, read_batches()

    def open_counts(self) -> list[tuple[str, int]]:
        """How much is open, by account."""
        return self.fetch_rows("open_counts")

    def open_count(self, account: str | None) -> int:
        """The same of one account, or of all."""
        return sum(count for name, count in self.open_counts() if account in (None, name))

    def open_by_push(self, account: str) -> list[Earlier]:
        """What pushes have left open, in the order in which it is sent."""
        return [Earlier(*row) for row in self.fetch_rows("open_by_push", account=account)]

    def _read_entries(self, statement: str, **values: Any) -> list[Entry]:
        return list(map(read_entry, self.fetch_rows(statement, **values)))

    def find_subjects(self, item_ids: Iterable[int]) -> dict[int, list[str]]:
        """What each item touches."""
        found: defaultdict[int, list[str]] = defaultdict(list)
        for item_id, subject in self.fetch_rows("subjects", item_ids=item_ids):
            found[item_id].append(subject)
        return found

    def sent_to(self, account: str, kind: str, contact_id: int) -> list[Entry]:
        """Those of the kind that were sent to the contact, in any push: what of its timeline is
        ours."""
        return self._read_entries("sent_to", account=account, kind=kind, contact_id=contact_id)

    def synced_at(self, account: str, kind: str, email: str) -> float | None:
        """When the service last put the address on a list (unix seconds). `kind`: the one that does
        so."""
        begins = f"{normal_form(email)}|"
        behind = f"{begins[:-1]}}}"  # the character after |
        found = self.fetch_rows(
            "synced_at", account=account, kind=kind, first=begins, behind=behind
        )
        return None if found[0][0] is None else float(found[0][0])

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
        """When its first push was taken in (unix seconds): tells this outbox from one that was
        moved away. None while it is empty."""
        found = self.fetch_rows("begun_at")
        return float(found[0][0]) if found else None

    @property
    def revision(self) -> int:
        """That of the last change."""
        return int(self.fetch_rows("revision")[0][0])

    def changed_since(self, revision: int) -> Iterator[Entry]:
        """Entries changed after `revision`, as of one moment, in order of change."""
        return map(read_entry, self.iterate_rows("changed_since", revision=revision))

    def rejected_by_check(self, account: str, source: str) -> list[tuple[str, str]]:
        """Whom rows of pushes from this source were about that our checks rejected, and why."""
        return [
            tuple(row)
            for row in self.fetch_rows("rejected_by_check", account=account, source=source)
        ]

    def find_claims(self, account: str, activation: str) -> dict[str, Claim]:
        """What an audience sync claims, by subject."""
        rows = self.fetch_rows("claims", account=account, activation=activation)
        return {
            subject: Claim(bool(takes), bool(is_desired)) for subject, takes, is_desired in rows
        }

    def list_claimers(self) -> list[tuple[str, str]]:
        """Account and name of each audience sync that claims something."""
        return [tuple(row) for row in self.fetch_rows("claimers")]

    def claim_subjects(
        self, account: str, activation: str, claims: Mapping[str, Claim | None]
    ) -> None:
        """What an audience sync claims from now on, as far as that changes; None: no more."""
        if claims:
            with self.open_change() as change:
                _change_claims(change, account, activation, claims)

    # ---- sending

    def hold_sender(self, account: str) -> AbstractContextManager[None]:
        """Be the account's only sender. Raises OutboxBusy, naming who is."""
        return sender_lock(self.path.parent, account)

    def recover_sent(self, account: str) -> int:
        """What a sender that died had sent and not settled is unknown now; how many. Only for who
        holds `sending`."""
        return self._change_rows("recover", account=account)

    def claim_item(
        self,
        item_id: int,
        *,
        contact_id: int | None = None,
        expected: Expected | None = None,
    ) -> bool:
        """Commit the intent to send it now; False when it is not planned any more. `contact_id`:
        what was looked up; `expected`: what is to be seen of it, where it differs from the plan."""
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
        """Commit what became of it. Rejections are the service's; `drift` {}: read back and as
        intended. ValueError when the state cannot follow on the present one."""
        with self.open_change() as change:
            before = State(change.run_statement("state", item_id=item_id).fetchone()[0])
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
        """It certainly was not sent: as if it had never been claimed."""
        self._change_rows("unclaim", item_id=item_id)

    def not_read_back(self, account: str) -> set[int]:
        """Pushes of which something was sent, by whichever run, that nobody has looked at since."""
        return {row[0] for row in self.fetch_rows("not_read_back", account=account)}

    def has_left(self, account: str) -> bool:
        """Whether the next push has something to do beside its own rows: to send, to find out, or
        to read back."""
        return bool(self.list_open(account, limit=1) or self.not_read_back(account))

    def note_read_back(self, push_ids: Collection[int]) -> None:
        self._change_rows("note_read_back", push_ids=push_ids)

    # ---- maintenance

    def cancel_items(
        self, account: str, push_id: int | None = None, *, unknown: bool = False
    ) -> int:
        """Drop what is planned, and what is `unknown` if wanted, of one push or all; how many
        requests. What is unknown and dropped counts as never sent: whoever drops it has looked."""
        return self._change_rows("cancel", account=account, push_id=push_id, unknown=unknown)

    def retry_items(
        self,
        account: str,
        push_id: int | None = None,
        *,
        not_idempotent: Collection[str],
        is_left: Callable[[str | None], bool] = lambda message: False,
    ) -> Retried:
        """Plan again what the service rejected, what drifted, and what is unknown and idempotent;
        not what a later item has changed, nor what was rejected with a message that `is_left`.

        What is of a kind `not_idempotent` and was sent is unknown then, with its attempts
        forgotten: the next sender looks before it sends."""
        of: dict[str, Any] = {"account": account, "push_id": push_id}
        with self.open_change() as change:
            left = [
                entry
                for entry in map(read_entry, change.run_statement("refused", **of))
                if is_left(entry.message)
            ]
            of |= {"left": [entry.item_id for entry in left], "looked_for": not_idempotent}
            (superseded,) = change.run_statement("count_superseded", **of).fetchone()
            planned = sum(
                change.run_statement(name, **of).rowcount for name in ("look_first", "plan_again")
            )
        return Retried(planned, superseded, left)

    def prune_rows(self, days: int | None) -> int:
        """Forget skipped rows of pushes older than so many days (None: of none); how many. The
        push's own counts stay."""
        with self.open_change() as change:
            before = change.now - days * 86_400 if days else 0
            change.run_statement("prune_effects", before=before)
            return change.run_statement("prune", before=before).rowcount

    def _change_rows(self, statement: str, **values: Any) -> int:
        """One change; how many rows it is of."""
        with self.open_change() as change:
            return change.run_statement(statement, **values).rowcount

    def __exit__(self, *_: object) -> None:
        self.close()


def _change_claims(
    change: Change, account: str, activation: str, claims: Mapping[str, Claim | None]
) -> None:
    subjects: defaultdict[Claim | None, list[str]] = defaultdict(list)
    for subject, claim in claims.items():
        subjects[claim].append(subject)
    of = {"account": account, "activation": activation}
    for claim, several in subjects.items():
        if claim is None:
            change.run_statement("drop_claims", **of, subjects=several)
        else:
            change.run_statement("add_claims", **of, **claim._asdict(), subjects=several)


def _insert_plan(change: Change, plan: Plan, run: str | None, options: Mapping[str, Any]) -> int:
    """The number of the new push. Items in their order, then what is rejected or idle."""
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
        values = {reason.name: getattr(item, reason.name) for reason in fields(item)}
        (item_id,) = change.run_statement("add_item", push_id=push_id, **values).fetchone()
        of = {"account": plan.account, "kind": plan.kind, "item_id": item_id}
        for subject, content in item.effects.items():
            change.run_statement("add_effect", **of, subject=subject, content=content)
    for state, several in ((State.REJECTED, plan.bad), (State.SKIPPED, plan.idle)):
        for reason in several:
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
