"""What a push came to, as a value: what is displayed on the terminal and in Dagster.

Not here: its wording (`push_report`), how it came about (`push_service`).
"""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from marketing_api.clock import utc_now
from marketing_api.redaction import without_addresses
from write_back.consent import LEFT, LEFT_ON_TARGET
from write_back.item import DONE, OPEN, Reason, State
from write_back.outbox.outbox import Counts, Entry, Outbox, Push

_SHOWN = 20


def reason_of(entry: Entry) -> Reason:
    return Reason(entry.rows, entry.message or "no reason given", entry.rejected_by == "service")


def grouped(reasons: Iterable[Reason]) -> list[Reason]:
    """Equal reasons as one that has the rows of all, the most frequent first."""
    rows: dict[tuple[str, bool], list[int]] = {}
    for each in reasons:
        rows.setdefault((each.reason, each.by_service), []).extend(each.rows)
    return [
        Reason(tuple(numbers), *same)
        for same, numbers in sorted(rows.items(), key=lambda item: -len(item[1]))
    ]


@dataclass(frozen=True)
class Ran:
    """What a run does for an account: its own push, if it has one, the earlier ones that it goes on with,
    sending or reading back, what it costs, in requests and in seconds that they waited for the limit, and why
    it ended early."""

    run: str
    job: str
    began_at: dt.datetime
    account: str
    push_id: int | None = None
    requests: int = 0
    waited_s: float = 0.0
    earlier: frozenset[int] = frozenset()
    stopped: str | None = None


def new_run(job: str, account: str) -> Ran:
    """A run of this moment, of a program that is not Dagster."""
    return Ran(uuid.uuid4().hex, job, utc_now(), account)


@dataclass(frozen=True)
class Result:
    """One push as the outbox has it now. `stopped`: why sending ended before everything was sent.
    `writebacks_follow`: sync.writebacks could not be brought up to date yet, and why."""

    push: Push
    counts: Counts
    refusals: tuple[Reason, ...] = field(default=(), repr=False)  # in order of rows
    drift: Mapping[str, int] = field(default_factory=dict)  # field → requests
    waiting: tuple[Reason, ...] = field(default=(), repr=False)  # a sample
    left: tuple[Reason, ...] = field(default=(), repr=False)  # nobody is subscribed again by the way
    requests_sent: int | None = 0  # by its run; None: that stands in another result of the same run
    stopped: str | None = None
    rejected_csv: Path | None = None
    writebacks_follow: str | None = None

    @property
    def rejected(self) -> int:
        """Rows: by our checks, or by the service, now or before."""
        return self.counts.rows.get(State.REJECTED, 0)

    @property
    def rejected_now(self) -> int:
        """Requests and rows, without rows of which the service refused the same before."""
        return self.counts.requests.get(State.REJECTED, 0) + self.counts.rejected_by_check

    @property
    def needs_person(self) -> dict[str, int]:
        """What nothing that runs by itself puts right; empty when there is none of it."""
        counts = {
            "rejected": self.rejected_now,
            "unknown": self.counts.requests.get(State.UNKNOWN, 0),
            "mismatches on read-back": self.counts.drifted,
        }
        return {what: count for what, count in counts.items() if count}

    @property
    def open(self) -> int:
        """Requests."""
        return sum(self.counts.requests.get(state, 0) for state in OPEN)

    @property
    def shortfall(self) -> int:
        """Rows that are not as they were meant to be; 0: everything is done."""
        return self.rejected + sum(self.counts.rows.get(state, 0) for state in OPEN) + self.counts.drifted

    def problem(self, rejected: int) -> str:
        """What is not as it was meant to be, in words without addresses. `rejected`: what counts of that."""
        parts = {"rejected": rejected, "open": self.open, "with a mismatch on read-back": self.counts.drifted}
        counts = [f"{count:,} {what}" for what, count in parts.items() if count]
        return ", ".join(
            [*counts, *([f"stopped: {without_addresses(self.stopped)}"] if self.stopped else [])]
        )


def result_of(outbox: Outbox, push_id: int, **more: object) -> Result:
    """The push as it is now. LookupError when there is none of that number."""
    if (push := outbox.push(push_id)) is None:
        raise LookupError(push_id)
    rejected = sorted(outbox.items(push_id, [State.REJECTED]), key=lambda entry: entry.rows)
    drift = Counter(name for entry in outbox.items(push_id, DONE) for name in entry.drift or {})
    waiting = [
        Reason(entry.rows, entry.message)
        for entry in outbox.items(push_id, [State.PLANNED, State.UNKNOWN])
        if entry.message
    ]
    left = [
        Reason(entry.rows, why)
        for entry in outbox.items(push_id, [*DONE, State.SKIPPED])
        if (why := _left(entry))
    ]
    refusals = tuple(map(reason_of, rejected))
    return Result(push, outbox.counts(push_id), refusals, drift, tuple(waiting[:_SHOWN]), tuple(left), **more)  # type: ignore[arg-type]


def _left(entry: Entry) -> str | None:
    """Why a status is as it was, or somebody where they were."""
    if entry.state is State.SKIPPED:
        return entry.message if entry.message in (LEFT, LEFT_ON_TARGET) else None
    return LEFT if entry.expected.get("left") else None
