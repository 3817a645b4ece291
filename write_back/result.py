"""What a push came to, filled once: `home.output.PushResult`, which `--json` prints, and which terminal,
Dagster and alert put into words (`push_report`). And what a run has done so far.

Not here: how it came about (`push_service`)."""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from home import output
from home.output import PushResult
from marketing_api.clock import utc_now
from write_back.consent import LEFT, LEFT_ON_TARGET
from write_back.item import DONE, OPEN, Reason, State
from write_back.outbox.outbox import Entry, Outbox
from write_back.refusals import known
from write_back.rejected_rows import write_rejections

_SHOWN = 20


@dataclass
class Ran:
    """What a run does for an account: its own push, if it has one, the earlier ones that it goes on with,
    sending or reading back, what it costs, in requests and in seconds that they waited for the limit, and why
    it ended early."""

    job: str
    account: str
    push_id: int | None = None
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    began_at: dt.datetime = field(default_factory=utc_now)
    requests: int = 0
    waited_s: float = 0.0
    earlier: frozenset[int] = frozenset()
    stopped: str | None = None


def explained(each: Reason) -> output.Reason:
    """The reason with what is known of it."""
    refusal = known(each.reason) if each.by_service else None
    what = (refusal.is_permanent, refusal.remedy) if refusal else ()
    return output.Reason(list(each.rows), each.reason, each.by_service, *what)


def grouped(reasons: Iterable[Reason | output.Reason]) -> list[output.Reason]:
    """Equal reasons as one that has the rows of all, the most frequent first."""
    rows: dict[tuple[str, bool], list[int]] = {}
    for each in reasons:
        rows.setdefault((each.reason, each.by_service), []).extend(each.rows)
    most_first = sorted(rows.items(), key=lambda item: -len(item[1]))
    return [explained(Reason(tuple(several), *same)) for same, several in most_first]


def result_of(
    home: Path,
    outbox: Outbox,
    push_id: int,
    *,
    requests_sent: int | None = None,
    stopped: str | None = None,
) -> PushResult:
    """The push as it is now, with its rejected.csv written anew. `requests_sent`: by the run that it is the
    own push of; `stopped`: why that ended before everything was sent."""
    push, counts = outbox.push(push_id), outbox.counts(push_id)
    assert push is not None  # none is ever removed
    rejected = sorted(outbox.items(push_id, [State.REJECTED]), key=lambda entry: entry.rows)
    waiting = [entry for entry in outbox.items(push_id, [State.PLANNED, State.UNKNOWN]) if entry.message]
    over = outbox.items(push_id, [*DONE, State.SKIPPED])
    left = [Reason(entry.rows, why) for entry in over if (why := _left(entry))]
    drift = Counter(name for entry in over if entry.is_done for name in entry.drift or {})
    rejected_csv = write_rejections(home, outbox, push_id)
    return PushResult(
        push=push_id,
        account=push.account,
        kind=push.kind,
        source=push.source,
        row_count=push.row_count,
        rows=counts.rows,
        requests=counts.requests,
        reasons=grouped(entry.why for entry in rejected),
        waiting=[explained(entry.why) for entry in waiting[:_SHOWN]],
        mismatches=dict(drift),
        drifted=counts.drifted,
        left_unsubscribed=grouped(left),
        open=sum(counts.requests.get(state, 0) for state in OPEN),
        shortfall=sum(counts.rows.get(state, 0) for state in (*OPEN, State.REJECTED)) + counts.drifted,
        requests_sent=requests_sent,
        stopped=stopped,
        rejected_csv=None if rejected_csv is None else str(rejected_csv),
    )


def _left(entry: Entry) -> str | None:
    """Why a status is as it was, or somebody where they were: nobody is subscribed again by the way."""
    if entry.state is State.SKIPPED:
        return entry.message if entry.message in (LEFT, LEFT_ON_TARGET) else None
    return LEFT if entry.expected.get("left") else None


def rejected_now(result: PushResult) -> int:
    """Requests and rows, without rows of which the service refused the same before."""
    by_check = sum(len(each.rows) for each in result.reasons if not each.by_service)
    return result.requests.get(State.REJECTED, 0) + by_check


def needs_person(result: PushResult) -> dict[str, int]:
    """What nothing that runs by itself puts right; empty when there is none of it."""
    counts = {
        "rejected": rejected_now(result),
        "unknown": result.requests.get(State.UNKNOWN, 0),
        "mismatches on read-back": result.drifted,
    }
    return {what: count for what, count in counts.items() if count}
