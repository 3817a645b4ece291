"""The outbox: everything that is to be sent, is being sent or was sent, durable before the request leaves and after its response.

    with Outbox(home / "outbox.sqlite") as outbox:
        push_id = outbox.enqueue(plan)
        with outbox.sending("main"):                 # one sender per account
            outbox.recover("main")
            for entry in outbox.open("main"): ...    # claim → request → settle

Belongs here: what happens to entries, and queries about them. Not here: the file (`store`), its values (`entries`), sending
(`sending`), resuming with a copy (`restore`).
Any number of processes may read and change it meanwhile; whoever sends claims an entry first, so none is sent by two.
"""

import itertools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from marketing_api.clock import SteadyClock
from marketing_api.exchange import order_of
from pipelines.write_back.item import DONE, Past, Plan, State
from pipelines.write_back.outbox.entries import Counts, Entry, Push, Retried, read_entry, read_push
from pipelines.write_back.outbox.sender_lock import sender_lock
from pipelines.write_back.outbox.store import Change, Store

KEEP_SKIPPED_DAYS = 7  # a nightly push of 100,000 rows of which few change would grow the file without end

_ENTRY = (
    "select item_id, push_id, account, kind, source_name as source, rows, email, contact_id, operation, params, expected, must_look_up,"
    " state, message, rejected_by, attempts, planned_at, sent_at, changed_at, done_at, verified_at, drift, request_id, run, revision"
    " from item join push using (push_id)"
)
_EFFECT = "insert into effect (account, kind, subject, item_id, content) values (?, ?, ?, ?, ?)"
_ROW_WITHOUT_REQUEST = (
    "insert into item (rows, email, contact_id, state, message, rejected_by, push_id, planned_at, changed_at, done_at, revision)"
    " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_IS_OPEN = "state in ('planned', 'sending', 'unknown')"  # as the partial index has it
_CHUNK = 10_000
#: Whatever was read back before, of this push something leaves now.
_UNREAD = (
    "update push set options = json_set(options, '$.is_read_back', json('false')) where push_id = (select push_id from item where"
    " item_id = ?) and json_extract(options, '$.is_read_back') is not 0"
)

_CORRECTED = (
    "update item set state = 'skipped', rejected_by = null, message = ?, changed_at = ?, revision = ? where state = 'rejected'"
    " and (operation is null or ?) and push_id in (select push_id from push where account = ? and kind = ?)"
    " and push_id || rows in (select value from json_each(?))"
)

#: Of an account or one of its pushes: what the service rejected, did otherwise, or may not have done.
_CHOSEN = (
    "operation is not null and (state in ('rejected', 'unknown') or (state = 'applied' and drift <> '{}')) and push_id in"
    " (select push_id from push where account = :account and (:push_id is null or push_id = :push_id))"
    " and item_id not in (select value from json_each(:left))"
)
#: A later item has changed, or is to change, something that this one would set back.
_SUPERSEDED = (
    "exists (select 1 from effect mine join effect other using (account, kind, subject) join item newer on newer.item_id = other.item_id"
    " where mine.item_id = item.item_id and other.item_id > mine.item_id and newer.state not in ('skipped', 'rejected'))"
)
#: What is not idempotent and was sent: what was refused in words may have arrived all the same.
_LOOKS_FIRST = (
    "(sent_at is not null and contact_id is not null and push_id in"
    " (select push_id from push where kind in (select value from json_each(:looked_for))))"
)
#: A row that is part of several items is as far as the one least far.
_LEAST_FAR = (State.SENDING, State.UNKNOWN, State.PLANNED, State.REJECTED, State.APPLIED, State.VERIFIED, State.SKIPPED)

#: What a state may become. Whatever is not here would be a mistake of ours, and is refused.
_NEXT: Mapping[State, tuple[State, ...]] = {
    State.SENDING: (State.APPLIED, State.REJECTED, State.UNKNOWN, State.PLANNED),
    State.UNKNOWN: (State.APPLIED, State.VERIFIED, State.REJECTED, State.PLANNED, State.UNKNOWN),
    State.APPLIED: (State.APPLIED, State.VERIFIED),
    State.VERIFIED: (State.VERIFIED,),
    State.PLANNED: (State.REJECTED, State.SKIPPED, State.PLANNED),  # a look-up that found nobody, or that it was sent before
}


def outbox_path(home: Path) -> Path:
    """Where the outbox of a home stands."""
    return home / "outbox.sqlite"


class Outbox(AbstractContextManager["Outbox"]):
    """Thread-safe. Every method raises OutboxError (`store`) when the file cannot be used, and then has changed nothing."""

    def __init__(self, path: Path, *, clock: Callable[[], float] | None = None) -> None:
        self.path = path
        self._store = Store(path)
        self._clock = clock or SteadyClock().seconds

    # ---- making and looking

    def enqueue(
        self,
        plan: Plan,
        *,
        run: str | None = None,
        options: Mapping[str, Any] | None = None,
        keep: Callable[[int], object] = lambda push_id: None,
        corrects: Collection[tuple[str, str]] = (),
        corrects_refused: bool = False,
    ) -> int:
        """Take the plan in, all of it or nothing; its push's number. Items are sent in the plan's order.

        `corrects`: rejected rows of earlier pushes (push, row) in whose place it has rows; they are not rejected any more.
        `corrects_refused`: those neither that the service refused; not where what it refused may have arrived all the same.
        """
        with self._store.change() as change:
            now = self._clock()
            push_id = _insert_plan(change, plan, now, run, options or {})
            named = json.dumps([f"{earlier}[{row}]" for earlier, row in corrects])
            message = f"corrected in push {push_id}"
            change.run(_CORRECTED, (message, now, change.last_revision, corrects_refused, plan.account, plan.kind, named))
            keep(push_id)
        return push_id

    def last(self, account: str, kind: str, subjects: Iterable[str]) -> dict[str, Past]:
        """The last thing done, or to be done, about each subject; those never sent anything about are absent."""
        found: dict[str, Past] = {}
        wanted = iter(subjects)
        while chunk := list(itertools.islice(wanted, _CHUNK)):
            rows = self._store.rows(
                "select subject, item_id, content, state, message, request_id, sent_at, done_at, verified_at, drift"
                " from json_each(?) cross join effect"
                " on account = ? and kind = ? and subject = value join item using (item_id)"
                " where state <> 'skipped' order by item_id",
                (json.dumps(chunk), account, kind),
            )
            for subject, item_id, content, state, message, request_id, sent_at, done, verified, drift in rows:
                is_drifted = state in DONE and drift not in (None, "{}")
                late = 0.0 if request_id is None or sent_at is None else order_of(request_id) - sent_at
                done, verified = done and done + late, verified and verified + late
                found[subject] = Past(item_id, content, State(state), message, done, verified, is_drifted)
        return found

    def pushes(self, account: str | None = None, *, limit: int = 1000) -> list[Push]:
        """The latest first."""
        rows = self._store.rows(
            "select * from push where ? is null or account = ? order by push_id desc limit ?", (account, account, limit)
        )
        return [read_push(row) for row in rows]

    def push(self, push_id: int) -> Push | None:
        return next((read_push(row) for row in self._store.rows("select * from push where push_id = ?", (push_id,))), None)

    def entry(self, item_id: int) -> Entry:
        return read_entry(self._store.rows(f"{_ENTRY} where item_id = ?", (item_id,))[0])

    def items(self, push_id: int, states: Collection[State] = tuple(State)) -> list[Entry]:
        """The push's entries, in order of sending; then rejected and idle rows."""
        marks = ", ".join("?" * len(states))
        rows = self._store.rows(f"{_ENTRY} where push_id = ? and state in ({marks}) order by item_id", (push_id, *states))
        return [read_entry(row) for row in rows]

    def rejected(self, account: str, push_id: int | None = None) -> list[Entry]:
        """What is rejected, in order of push and row: of one push, or of all without what only repeats a request of an earlier one.
        Not what a later push has changed since.
        """
        of_one = "(push_id = :push_id or (:push_id is null and (operation is not null or rejected_by = 'check')))"
        rows = self._store.rows(
            f"{_ENTRY} where account = :account and state = 'rejected' and {of_one} and not {_SUPERSEDED} order by item_id",
            {"account": account, "push_id": push_id},
        )
        return [read_entry(row) for row in rows]

    def open(self, account: str) -> list[Entry]:
        """What is left to be sent or found out, in order of push and row."""
        return [read_entry(row) for row in self._store.rows(f"{_ENTRY} where {_IS_OPEN} and account = ? order by item_id", (account,))]

    def subjects(self, item_ids: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """What each item touches."""
        rows = self._store.rows(
            "select item_id, subject from json_each(?) cross join effect on item_id = value order by item_id", (json.dumps(list(item_ids)),)
        )
        return {item_id: tuple(row[1] for row in group) for item_id, group in itertools.groupby(rows, key=lambda row: row[0])}

    def sent_to(self, account: str, kind: str, contact_id: int) -> list[Entry]:
        """Those of the kind that were sent to the contact, in any push: what of its timeline is ours."""
        sent = "kind = ? and state in ('applied', 'verified', 'unknown', 'sending')"
        rows = self._store.rows(f"{_ENTRY} where contact_id = ? and account = ? and {sent}", (contact_id, account, kind))
        return [read_entry(row) for row in rows]

    def synced_at(self, account: str, adding: Collection[str], email: str) -> float | None:
        """When the service last put the address on a list (unix seconds). `adding`: the kinds that do so."""
        begins = f"{email.lower()}|"
        found = self._store.rows(
            "select max(done_at) from json_each(?) cross join effect on kind = value join item using (item_id) where account = ?"
            " and subject >= ? and subject < ? and state in ('applied', 'verified')",
            (json.dumps(adding), account, begins, begins[:-1] + "}"),  # the character after |
        )
        return None if found[0][0] is None else float(found[0][0])

    def counts(self, push_id: int) -> Counts:
        """How far the push is."""
        rank = " ".join(f"when '{state}' then {number}" for number, state in enumerate(_LEAST_FAR))
        rows = self._store.rows(
            f"select worst, count(*) from (select min(case state {rank} end) as worst from item, json_each(item.rows)"  # noqa: S608
            " where push_id = ? group by value) group by worst",
            (push_id,),
        )
        of_requests = "select state, count(*) from item where push_id = ? and operation is not null group by state"
        requests = {State(state): count for state, count in self._store.rows(of_requests, (push_id,))}
        drifted, rejected_by_check = self._store.rows(
            "select count(*) filter (where drift <> '{}'), count(*) filter (where rejected_by = 'check') from item where push_id = ?",
            (push_id,),
        )[0]
        return Counts({_LEAST_FAR[worst]: count for worst, count in rows}, requests, rejected_by_check, drifted)

    @property
    def begun_at(self) -> float | None:
        """When its first push was taken in (unix seconds): tells this outbox from one that was moved away. None while it is empty."""
        found = self._store.rows("select begun_at from push order by push_id limit 1")
        return float(found[0][0]) if found else None

    @property
    def revision(self) -> int:
        """That of the last change."""
        return int(self._store.rows("select value from revision")[0][0])

    def changed_since(self, revision: int) -> Iterator[Entry]:
        """Entries changed after `revision`, as of one moment, in order of change."""
        with self._store.reading() as connection:
            for row in connection.execute(f"{_ENTRY} where revision > ? order by revision, item_id", (revision,)):
                yield read_entry(row)

    def members(self, account: str, activation: str) -> dict[str, float]:
        """Who is in an activation's result as last pushed, and since when (unix seconds)."""
        rows = self._store.rows("select subject, entered_at from membership where account = ? and activation = ?", (account, activation))
        return {row[0]: row[1] for row in rows}

    def note_members(self, account: str, activation: str, entered: Iterable[str], left: Iterable[str]) -> None:
        """Who counts as a member from now on, and who no longer does."""
        with self._store.change() as change:
            gone = "delete from membership where account = ? and activation = ? and subject = ?"
            change.run_many(gone, [(account, activation, subject) for subject in left])
            new = "insert or ignore into membership (account, activation, subject, entered_at) values (?, ?, ?, ?)"
            now = self._clock()
            change.run_many(new, [(account, activation, subject, now) for subject in entered])

    # ---- sending

    def sending(self, account: str) -> AbstractContextManager[None]:
        """Be the account's only sender. Raises OutboxBusy, naming who is."""
        return sender_lock(self.path.parent, account)

    def recover(self, account: str) -> int:
        """What a sender that died had sent and not settled is unknown now; how many. Only for who holds `sending`."""
        with self._store.change() as change:
            return change.run(
                "update item set state = 'unknown', message = ?, changed_at = ?, revision = ?"
                " where state = 'sending' and push_id in (select push_id from push where account = ?)",
                ("the program ended before an answer came", self._clock(), change.revision(), account),
            ).rowcount

    def claim(self, item_id: int, *, contact_id: int | None = None) -> bool:
        """Commit the intent to send it now; False when it is not planned any more. `contact_id`: what was looked up."""
        with self._store.change() as change:
            now = self._clock()
            done = change.run(
                "update item set state = 'sending', attempts = attempts + 1, sent_at = ?, changed_at = ?, message = null,"
                " request_id = null, contact_id = coalesce(?, contact_id), revision = ? where item_id = ? and state = 'planned'",
                (now, now, contact_id, change.revision(), item_id),
            )
            if done.rowcount == 1:
                change.run(_UNREAD, (item_id,))
            if done.rowcount == 1 and contact_id is not None:  # from now on the subject is known by the contact's id, too
                change.run(
                    "insert or ignore into effect (account, kind, subject, item_id, content) select account, kind,"
                    " ? || substr(subject, length(email) + 1), item_id, content from effect join item using (item_id)"
                    " where item_id = ? and lower(substr(subject, 1, length(email) + 1)) = lower(email) || '|'",
                    (str(contact_id), item_id),
                )
            return done.rowcount == 1

    def settle(
        self,
        item_id: int,
        state: State,
        *,
        message: str | None = None,
        request_id: int | None = None,
        contact_id: int | None = None,
        drift: Mapping[str, Any] | None = None,
    ) -> None:
        """Commit what became of it. Rejections are the service's; `drift` {}: read back and as intended. ValueError when the
        state cannot follow on the present one.
        """
        with self._store.change() as change:
            now = self._clock()
            before = State(change.run("select state from item where item_id = ?", (item_id,)).fetchone()[0])
            if state not in _NEXT.get(before, ()):
                raise ValueError(f"item {item_id} is {before} and cannot become {state}")
            is_over = state in (State.APPLIED, State.VERIFIED, State.REJECTED)
            change.run(
                "update item set state = ?, message = ?, rejected_by = ?, request_id = coalesce(?, request_id),"
                " changed_at = case when ? then changed_at else ? end,"
                " done_at = case when ? then coalesce(done_at, ?) end, verified_at = case when ? then ? else verified_at end,"
                " drift = coalesce(?, drift), contact_id = coalesce(contact_id, ?), revision = ? where item_id = ?",
                (
                    *(state, message, "service" if state is State.REJECTED else None, request_id),
                    *(state is before, now, is_over, now),
                    *(state is State.VERIFIED, now, None if drift is None else json.dumps(drift)),
                    *(contact_id, change.revision(), item_id),
                ),
            )

    def unclaim(self, item_id: int) -> None:
        """It certainly was not sent: as if it had never been claimed."""
        with self._store.change() as change:
            change.run(
                "update item set state = 'planned', attempts = attempts - 1, sent_at = null, changed_at = ?, revision = ?"
                " where item_id = ? and state = 'sending'",
                (self._clock(), change.revision(), item_id),
            )

    def note(self, messages: Mapping[int, str | None]) -> None:
        """Say of planned items why they are not sent yet."""
        if not messages:
            return
        with self._store.change() as change:
            revision = change.revision()
            values = [(message, revision, item_id) for item_id, message in messages.items()]
            change.run_many("update item set message = ?, revision = ? where item_id = ? and state = 'planned'", values)

    def not_read_back(self, account: str) -> set[int]:
        """Pushes of which something was sent, by whichever run, that nobody has looked at since."""
        rows = self._store.rows(
            "select push_id from push where account = ? and json_extract(options, '$.is_read_back') = 0"
            " and exists (select 1 from item where item.push_id = push.push_id and state in ('applied', 'verified', 'unknown'))",
            (account,),
        )
        return {row[0] for row in rows}

    def has_left(self, account: str) -> bool:
        """Whether the next push has something to do beside its own rows: to send, to find out, or to read back."""
        return bool(self.open(account) or self.not_read_back(account))

    def note_read_back(self, push_ids: Collection[int]) -> None:
        with self._store.change() as change:
            done = "update push set options = json_set(options, '$.is_read_back', json('true'))"
            change.run_many(f"{done} where push_id = ? and json_extract(options, '$.is_read_back') = 0", [(each,) for each in push_ids])

    # ---- maintenance

    def cancel(self, account: str, push_id: int | None = None, *, unknown: bool = False) -> int:
        """Drop what is planned, and what is `unknown` if wanted, of one push or all; how many requests. What is unknown and dropped
        counts as never sent: whoever drops it has looked.
        """
        with self._store.change() as change:
            return change.run(
                "update item set state = 'skipped', message = 'cancelled', changed_at = ?, revision = ?"
                " where (state = 'planned' or (? and state = 'unknown'))"
                " and push_id in (select push_id from push where account = ? and (? is null or push_id = ?))",
                (self._clock(), change.revision(), unknown, account, push_id, push_id),
            ).rowcount

    def retry(
        self,
        account: str,
        push_id: int | None = None,
        *,
        not_idempotent: Collection[str],
        is_left: Callable[[str | None], bool] = lambda message: False,
    ) -> Retried:
        """Plan again what the service rejected, what drifted, and what is unknown and idempotent; not what a later item has changed, nor
        what was rejected with a message that `is_left`.

        What is of a kind `not_idempotent` and was sent is unknown then, with its attempts forgotten: the next sender looks before it sends.
        """
        values = {"account": account, "push_id": push_id, "now": self._clock(), "looked_for": json.dumps(not_idempotent), "left": "[]"}
        fresh = "attempts = 0, rejected_by = null, done_at = null, revision = :revision"
        with self._store.change() as change:
            values["revision"] = change.revision()
            refused = change.run(f"{_ENTRY} where state = 'rejected' and {_CHOSEN} and not {_SUPERSEDED}", values)
            left = [entry for entry in map(read_entry, refused) if is_left(entry.message)]
            values["left"] = json.dumps([entry.item_id for entry in left])
            superseded = change.run(f"select count(*) from item where {_CHOSEN} and {_SUPERSEDED}", values).fetchone()[0]  # noqa: S608
            unknown = change.run(
                f"update item set state = 'unknown', {fresh} where {_CHOSEN} and {_LOOKS_FIRST} and not {_SUPERSEDED}",  # noqa: S608
                values,
            )
            planned = change.run(
                f"update item set state = 'planned', message = null, changed_at = :now, {fresh}"  # noqa: S608
                f" where {_CHOSEN} and not {_LOOKS_FIRST} and not {_SUPERSEDED}",
                values,
            )
        return Retried(planned.rowcount + unknown.rowcount, superseded, left)

    def again(self, item_ids: Collection[int]) -> int:
        """Plan applied contacts again, unless a later item has changed them since; how many. Their drift says in which form they go."""
        with self._store.change() as change:
            return change.run(
                "update item set state = 'planned', done_at = null, changed_at = ?, revision = ?"  # noqa: S608
                f" where state = 'applied' and not {_SUPERSEDED} and item_id in (select value from json_each(?))",
                (self._clock(), change.revision(), json.dumps(list(item_ids))),
            ).rowcount

    def prune(self) -> int:
        """Forget skipped rows of pushes older than KEEP_SKIPPED_DAYS; how many. The push's own counts stay."""
        before = self._clock() - KEEP_SKIPPED_DAYS * 86_400
        old = "state = 'skipped' and push_id in (select push_id from push where begun_at < ?)"
        with self._store.change() as change:
            change.run(f"delete from effect where item_id in (select item_id from item where {old})", (before,))  # noqa: S608
            return change.run(f"delete from item where {old}", (before,)).rowcount  # noqa: S608

    def close(self) -> None:
        self._store.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _insert_plan(change: Change, plan: Plan, now: float, run: str | None, options: Mapping[str, Any]) -> int:
    """The number of the new push. Items in their order, then what is rejected or idle."""
    revision, source = change.revision(), plan.source
    push_id = change.insert(
        "push",
        account=plan.account,
        kind=plan.kind,
        source_name=source.name,
        source_hash=source.content_hash,
        row_count=plan.row_count,
        item_count=len(plan.items),
        new_count=plan.new_count,
        changed_count=plan.changed_count,
        idle_count=len(plan.idle),
        bad_count=len(plan.bad),
        begun_at=now,
        run=run,
        options=json.dumps(options),
    )
    for item in plan.items:
        item_id = change.insert(
            "item",
            push_id=push_id,
            rows=json.dumps(item.rows),
            email=item.email,
            contact_id=item.contact_id,
            operation=item.operation.name,
            params=json.dumps(dict(item.params), ensure_ascii=False),
            expected=json.dumps(dict(item.expected), ensure_ascii=False),
            must_look_up=item.must_look_up,
            state=State.PLANNED,
            planned_at=now,
            changed_at=now,
            revision=revision,
        )
        effects = {effect.subject: effect.content for effect in item.effects}
        change.run_many(_EFFECT, [(plan.account, plan.kind, subject, item_id, content) for subject, content in effects.items()])
    bad = [(f"[{row.row}]", None, None, State.REJECTED, row.reason, "service" if row.by_service else "check") for row in plan.bad]
    idle = [(f"[{row.row}]", row.email, row.contact_id, State.SKIPPED, row.reason, None) for row in plan.idle]
    change.run_many(_ROW_WITHOUT_REQUEST, [(*each, push_id, now, now, now, revision) for each in bad + idle])
    return push_id
