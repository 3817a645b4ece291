"""The report of a plan or a push: the values for `--json` (`home.output.PushResult`), and the lines
that a terminal, a log and Dagster display.

Belongs here: the values that fill `push_report.jinja` and the JSON documents. Not here: the push
itself (`push_service`), `rejected.csv` (`rejected_rows`), where lines are printed (`push_terminal`,
`push_jobs`)."""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from home import output
from home.formatting import count_of
from home.output import PushResult
from marketing_api.address import mask_addresses
from marketing_api.redaction import plain
from write_back.consent import LEFT
from write_back.input.rows import show_name
from write_back.item import DONE, OPEN, Plan, Reason, State
from write_back.kinds import KINDS
from write_back.kinds.kind import Kind
from write_back.order import Planned, Ran
from write_back.outbox.outbox import Entry, Outbox, Push
from write_back.refusals import find_refusal
from write_back.rejected_rows import RejectedRows, write_rejections

_TEXTS = Path(__file__).with_suffix(".jinja")
_MAX_LISTED, _MOST_WAITING = 10, 20  # changes, bad rows and the like; the rest is in rejected.csv
#: Values of cells that a reason quotes (`show_name`), and ids.
_VALUE = re.compile(r"“[^“]*”|\d{5,}")
#: Why sent rows are not verified, by `--verify`.
_UNREAD = {
    "all": "it could not be read back",
    "sample": "only a sample is read back; `--verify all` reads all",
    "none": "nothing is read back with `--verify none`",
}


# ---- the result of a push


def explain_reason(reason: Reason) -> output.Reason:
    """The reason, with what is known about the service's refusal."""
    refusal = find_refusal(reason.reason) if reason.by_service else None
    what = (refusal.is_permanent, refusal.remedy) if refusal else ()
    return output.Reason(list(reason.rows), reason.reason, reason.by_service, *what)


def group_reasons(
    reasons: Iterable[Reason | output.Reason], *, is_discreet: bool = False
) -> list[output.Reason]:
    """Equal reasons as one with the rows of all; the most frequent first."""
    rows: dict[tuple[str, bool], list[int]] = {}
    for entry in reasons:
        text = _without_values(entry.reason) if is_discreet else entry.reason
        same = rows.setdefault((text, entry.by_service), [])
        same.extend(entry.rows)
    most_first = sorted(rows.items(), key=lambda item: -len(item[1]))
    grouped: list[output.Reason] = []
    for (text, by_service), numbers in most_first:
        reason = Reason(tuple(numbers), text, by_service)
        grouped.append(explain_reason(reason))
    return grouped


def collect_result(
    home: Path, outbox: Outbox, push_id: int, *, stopped: str | None = None
) -> PushResult:
    """The push as it is now; writes its rejected.csv again. `stopped`: why its run ended before
    everything was sent."""
    push = outbox.find_push(push_id)
    counts = outbox.count_states(push_id)
    assert push is not None  # pushes are never deleted
    rejected: list[Reason] = []
    waiting: list[Reason] = []
    left: list[Reason] = []
    mismatches = Counter[str]()  # field → requests
    for entry in outbox.iterate_items(push_id):
        if entry.state is State.REJECTED:
            rejected.append(entry.why)
        elif entry.state in OPEN:
            if entry.message and len(waiting) < _MOST_WAITING:
                waiting.append(entry.why)
        elif _is_left(entry):
            left.append(Reason(entry.rows, LEFT))
        if entry.is_done:
            mismatches.update(list(entry.drift or ()))
    rejected.sort(key=lambda reason: reason.rows)
    csv_path = write_rejections(home, outbox, push)
    rejected_csv = None if csv_path is None else str(csv_path)
    applied = counts.rows.get(State.APPLIED, 0)
    is_unverified = applied > counts.mismatched_rows
    unsuccessful = _sum_counts(counts.rows, (*OPEN, State.REJECTED))
    return PushResult(
        push=push_id,
        account=push.account,
        kind=push.kind,
        source=push.source,
        row_count=push.row_count,
        rows=counts.rows,
        requests=counts.requests,
        reasons=group_reasons(rejected),
        waiting=list(map(explain_reason, waiting)),
        mismatches=dict(mismatches),
        drifted=counts.drifted,
        mismatched_rows=counts.mismatched_rows,
        left_unsubscribed=group_reasons(left),
        open=_sum_counts(counts.requests, OPEN),
        shortfall=unsuccessful + counts.mismatched_rows,
        requests_sent=None,
        stopped=stopped,
        rejected_csv=rejected_csv,
        unverified=_describe_unverified(push) if is_unverified else None,
    )


def _describe_unverified(push: Push) -> str:
    kind = KINDS[push.kind]
    if type(kind).read_back is Kind.read_back:
        return f"can't be verified: the API doesn't return {push.kind}"
    return _UNREAD[push.verify]


def _sum_counts(counts: Mapping[str, int], states: Iterable[State]) -> int:
    return sum(counts.get(state, 0) for state in states)


def _is_left(entry: Entry) -> bool:
    """Whether a status was left, so that nobody is subscribed again as a side effect."""
    is_skipped = entry.state is State.SKIPPED and entry.message == LEFT
    has_left_lists = entry.is_done and bool(entry.expected.left_lists)
    return is_skipped or has_left_lists


def push_line(outbox: Outbox, push: Push) -> output.PushLine:
    """The push in a list of many."""
    counts = outbox.count_states(push.push_id)
    begun_at = dt.datetime.fromtimestamp(push.begun_at, dt.UTC)
    done = _sum_counts(counts.rows, DONE)
    return output.PushLine(
        push.push_id,
        begun_at,
        push.kind,
        push.source,
        push.row_count,
        sent=done - counts.mismatched_rows,
        rejected=counts.rows.get(State.REJECTED, 0),
        open=_sum_counts(counts.rows, OPEN),
        mismatches=counts.mismatched_rows,
        skipped=counts.rows.get(State.SKIPPED, 0),
    )


def needs_person(result: PushResult) -> dict[str, int]:
    """Counts of what only a person can resolve; empty when there is nothing. Rows that were refused
    by the service earlier don't count."""
    by_check = sum(len(reason.rows) for reason in result.reasons if not reason.by_service)
    counts = {
        "rejected": result.requests.get(State.REJECTED, 0) + by_check,
        "unknown": result.requests.get(State.UNKNOWN, 0),
        "mismatches on read-back": result.drifted,
    }
    return {what: count for what, count in counts.items() if count}


# ---- text


def render_lines(text: str, *values: object) -> list[str]:
    """The text of that name in `push_report.jinja`, filled with the values."""
    fill_template = getattr(_load_texts(), text)
    filled = str(fill_template(*values))
    return filled.removesuffix("\n").split("\n")


def plan_lines(planned: Planned, *, is_discreet: bool = False) -> list[str]:
    """What a push would do. `is_discreet`: without addresses and values, for logs and Dagster."""
    plan = planned.plan
    whole = plan.changed_count + plan.new_count
    counts = list(_plan_counts(plan, planned.limit_words))
    return _mask_lines(
        render_lines("plan", plan, counts, planned.rate, whole, is_discreet), is_discreet
    )


def result_lines(result: PushResult, *, is_discreet: bool = False) -> list[str]:
    """The result of a push; `is_discreet` as in `plan_lines`."""
    mismatched = result.mismatched_rows
    applied = result.rows.get(State.APPLIED, 0) - mismatched
    rows = result.rows | {State.APPLIED: applied, "mismatch": mismatched}
    counts = [
        (words, rows[state], result.unverified if state == State.APPLIED else "")
        for state, words in _load_texts().STATES.items()
        if rows.get(state)
    ]
    may_pass = any(reason.by_service and not reason.is_permanent for reason in result.reasons)
    lines = render_lines("result", result, counts, may_pass, is_discreet)
    return _mask_lines(lines, is_discreet)


def _mask_lines(text: list[str], is_discreet: bool) -> list[str]:
    if not is_discreet:
        return text
    return list(map(mask_addresses, text))


def write_headline(result: PushResult) -> str:
    """One sentence with the numbers of rows that did not succeed, without addresses."""
    return (
        f"push {result.push}: {result.shortfall:,} of {result.row_count:,} rows not done "
        f"({count_shortfall(result)})"
    )


def count_shortfall(result: PushResult) -> str:
    """The rows that are not done, in counts."""
    parts = {
        "rejected": result.rows.get(State.REJECTED),
        "open": _sum_counts(result.rows, OPEN),
        "with a mismatch on read-back": result.mismatched_rows,
    }
    counts = [f"{count:,} {what}" for what, count in parts.items() if count]
    if result.stopped:
        counts.append(f"stopped: {mask_addresses(result.stopped)}")
    return ", ".join(counts)


def alert_body(result: PushResult, ran: Ran) -> dict[str, object]:
    """The alert: counts, reasons with what to do, and how to continue; without values of rows or
    words of the service."""
    needs = needs_person(result)
    reasons = Counter[tuple[str, str | None]]()
    for reason in result.reasons:
        words = _without_words(reason)
        reasons[words, reason.remedy] += len(reason.rows)
    lines = render_lines("alert", result, needs, reasons.most_common())
    return {
        "text": "\n".join(lines),
        "job": ran.job,
        "run_id": ran.run,
        "push": result.push,
        "account": result.account,
        "kind": result.kind,
        "needs_person": needs,
    }


def _without_words(reason: output.Reason) -> str:
    """The reason without values of cells or words of the service."""
    if not reason.by_service:
        return _without_values(reason.reason)
    refusal = find_refusal(reason.reason)
    return refusal.name if refusal else "other words of the service"


def _without_values(reason: str) -> str:
    masked = mask_addresses(reason)
    return _VALUE.sub("…", masked)


def print_lines(text: Iterable[str], stream: object = None) -> None:
    """Print lines, without cutting long ones."""
    for line in text:
        print(plain(line), file=stream or sys.stdout, flush=True)  # type: ignore[arg-type]


# ---- for programs


def plan_document(planned: Planned) -> output.PushPlan:
    plan = planned.plan
    idle = group_reasons(plan.idle)
    return output.PushPlan(
        account=plan.account,
        kind=str(plan.kind),
        source=plan.source.name,
        rows=plan.row_count,
        new=plan.new_count,
        changed=plan.changed_count,
        idle={reason.reason: len(reason.rows) for reason in idle},
        invalid=list(map(explain_reason, plan.bad)),
        changes=list(plan.changes),
        columns=dict(plan.columns),
        unknown_addresses=plan.unknown_address_count,
        notes=list(plan.warnings),
        requests=plan.request_count,
        seconds=plan.request_count / planned.rate,
        refusal=planned.refusal,
        plan_id=plan.plan_id,
        input_columns=list(plan.input_columns),
    )


def rejected_document(rejected: RejectedRows) -> output.RejectedRows:
    return output.RejectedRows(
        [
            output.RejectedRow(
                row.push_id or 0,
                rejected.kind,
                explain_reason(row.why),
                dict(zip(rejected.columns, row.cells, strict=True)),
                row.place,
            )
            for row in rejected.rows
        ]
    )


# ---- the templates


@cache
def _load_texts() -> Any:
    # The texts are no HTML, so nothing is escaped.
    made = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)  # noqa: S701
    made.filters |= {
        "of": count_of,
        "number": "{:,}".format,
        "grouped": group_reasons,
        "shown": lambda name: show_name(name)[1:-1],
    }
    made.filters["cell"] = lambda count: (f"{count:,}" if count else "·").rjust(11)
    made.globals |= {"KINDS": KINDS, "SHOWN": _MAX_LISTED, "NO_ROWS": "the input has no rows"}
    source = _TEXTS.read_text(encoding="utf-8")
    return made.from_string(source).module


def _plan_counts(plan: Plan, limit: str) -> Iterator[tuple[str, int, str]]:
    checked = plan.bad_count
    yield "new", plan.new_count, ""
    yield "changed", plan.changed_count, ""
    for reason in group_reasons(plan.idle):
        yield reason.reason, len(reason.rows), "nothing to send"
    if not plan.idle:
        yield "unchanged", 0, ""
    note = limit if checked else ""
    yield "invalid", checked, note
    refused = len(plan.bad) - checked + len(plan.reported)
    if refused:
        yield (
            "rejected before",
            refused,
            "or with a mismatch on read-back; `marketing-sync push retry` tries them again",
        )
