"""Plans and results in words: the same lines on a terminal, in a log and in Dagster; and for programs.

Belongs here: wording only. Not here: `rejected.csv` (`rejected`), where lines go (`commands.push`, `jobs`).
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from marketing_api.redaction import plain, without_addresses
from pipelines import output
from pipelines.write_back.input.rows import shown
from pipelines.write_back.item import Change, Earlier, Plan, State
from pipelines.write_back.kinds import KINDS
from pipelines.write_back.outbox.entries import Retried
from pipelines.write_back.refusals import REFUSALS, is_permanent, known
from pipelines.write_back.rejected_rows import RejectedRows
from pipelines.write_back.result import Ran, Reason, Result, grouped, reasons_of

_SHOWN = 10  # changes, bad rows and the like; the rest is in rejected.csv
_LONGEST = 60
_NO_ROWS = "the input has no rows"


def plan_lines(plan: Plan, *, rate: float, reject_limit: float, is_discreet: bool = False) -> list[str]:
    """What a push would do, at `rate` requests a second. `is_discreet`: without addresses and values, for logs and Dagster."""
    lines = [f"{_count(plan.row_count, 'row')} of {plan.source.name} → {plan.kind} of account {plan.account}"]
    if plan.columns:
        lines.append("columns: " + ", ".join(f'{shown(ours)[1:-1]} ← "{shown(theirs)[1:-1]}"' for ours, theirs in plan.columns))
    lines += ["", *_columns(_plan_counts(plan, reject_limit))]
    if plan.changes and not is_discreet:
        whole = plan.changed_count + (plan.new_count if KINDS[plan.kind].samples_new else 0)
        sample = f" (a sample of {whole:,} rows)" if min(len(plan.changes), _SHOWN) < whole else ""
        lines += ["", f"changes{sample}", *map(_change_line, plan.changes[:_SHOWN])]
    if plan.additions and not is_discreet:
        sample = f" (a sample of {plan.new_count:,} rows)" if len(plan.additions) < plan.new_count else ""
        lines += ["", f"new{sample}", *map(_change_line, plan.additions)]
    bad = reasons_of(plan)
    lines += _reason_lines("not valid, not sent", [each for each in bad if not each.by_service])
    lines += _reason_lines("rejected before, or with a mismatch on read-back: not sent again", [each for each in bad if each.by_service])
    if notes := [*_unknown_address_note(plan), *plan.warnings]:
        lines += ["", "note", *(f"  {note}" for note in notes)]
    if plan.earlier:
        lines += ["", "still open from earlier pushes, and sent first", *map(_earlier_line, plan.earlier)]
    return [*lines, "", _cost_line(plan, rate)]


def plan_document(planned: Plan, *, rate: float, refusal: str | None) -> output.PushPlan:
    """The same for a program."""
    return output.PushPlan(
        account=planned.account,
        kind=str(planned.kind),
        source=planned.source.name,
        rows=planned.row_count,
        new=planned.new_count,
        changed=planned.changed_count,
        idle=dict(Counter(idle.reason for idle in planned.idle)),
        invalid=list(map(reason_document, reasons_of(planned))),
        changes=list(map(_change_document, planned.changes)),
        additions=list(map(_change_document, planned.additions)),
        columns=dict(planned.columns),
        unknown_addresses=planned.unknown_address_count,
        notes=list(planned.warnings),
        requests=planned.request_count,
        seconds=planned.request_count / rate,
        refusal=refusal,
    )


def reason_document(each: Reason) -> output.Reason:
    """A reason with what is known of it, for a program."""
    refusal = known(each.reason) if each.by_service else None
    return output.Reason(list(each.rows), each.reason, each.by_service, *((refusal.is_permanent, refusal.remedy) if refusal else ()))


def rejected_document(several: Iterable[RejectedRows]) -> output.RejectedRows:
    """Rejected rows for a program."""
    rows = ((each, row) for each in several for row in each.rows)
    return output.RejectedRows(
        [
            output.RejectedRow(row.push_id or 0, each.kind, reason_document(row.why), dict(zip(each.columns, row.cells, strict=True)))
            for each, row in rows
        ]
    )


def rejected_lines(each: RejectedRows) -> list[str]:
    """How many there are, and why."""
    pushes = ", ".join(map(str, sorted({row.push_id or 0 for row in each.rows})))
    title = f"{_count(len(each.rows), 'rejected row')} of {each.kind} (push {pushes})"
    return _reason_lines(title, [row.why for row in each.rows])


def alert_body(result: Result, ran: Ran) -> dict[str, object]:
    """What the alert address is told: counts, reasons with what to do, and how to go on; nothing that a row or the service said."""
    push, needs = result.push, result.needs_person
    lines = [f"{sum(needs.values()):,} of push {push.push_id} ({push.kind} of account {push.account}) need a person:"]
    lines += [f"{count:,} {what}" for what, count in needs.items()]
    for each in grouped(replace(each, reason=_without_words(each)) for each in result.refusals)[:_SHOWN]:
        refusal = next((one for one in REFUSALS if one.name == each.reason), None)
        lines.append(f"{_count(len(each.rows), 'row')}: {each.reason}{f'; to do: {refusal.remedy}' if refusal else ''}")
    number = push.push_id
    lines.append(f"`marketing-sync push status {number}` shows it, `push rejected {number}` writes the rows to be corrected, `push retry`")
    lines[-1] += " sends once more what may pass"
    about = {"job": ran.job, "run_id": ran.run, "push": push.push_id, "account": push.account, "kind": str(push.kind)}
    return {"text": "marketing-sync: " + "\n".join(lines), **about, "needs_person": needs}


def _without_words(each: Reason) -> str:
    """The reason without anything of a cell, or of the service's own words."""
    if each.by_service:
        return refusal.name if (refusal := known(each.reason)) else "other words of the service"
    return re.sub(r"“[^“”]*”|\d{5,}", "…", without_addresses(each.reason))


def _change_document(each: Change) -> output.Change:
    return output.Change(each.row, each.what, each.column, each.old, each.new)


def result_document(result: Result) -> output.PushResult:
    """What became of a push, for a program."""
    return output.PushResult(
        push=result.push.push_id,
        account=result.push.account,
        kind=str(result.push.kind),
        source=result.push.source.name,
        rows={str(state): count for state, count in result.counts.rows.items()},
        requests={str(state): count for state, count in result.counts.requests.items()},
        reasons=list(map(reason_document, grouped(result.refusals))),
        waiting=list(map(reason_document, result.waiting)),
        mismatches=dict(result.drift),
        open=result.open,
        shortfall=result.shortfall,
        requests_sent=result.spent.requests if result.spent else None,
        stopped=result.stopped,
        rejected_csv=str(result.rejected_csv) if result.rejected_csv else None,
    )


def _plan_counts(plan: Plan, reject_limit: float) -> Iterator[tuple[str, int, str]]:
    checked = sum(not bad.by_service for bad in plan.bad)
    refused = len(plan.bad) - checked
    yield "new", plan.new_count, ""
    yield "changed", plan.changed_count, ""
    for reason, count in sorted(Counter(idle.reason for idle in plan.idle).items(), key=lambda item: -item[1]):
        yield reason, count, "nothing to send"
    if not plan.idle:
        yield "unchanged", 0, ""
    yield (
        "invalid",
        checked,
        f"{100 * plan.bad_share:.1f} % of the rows; more than {100 * reject_limit:g} % stop the push" if checked else "",
    )
    if refused:
        yield "rejected before", refused, "or with a mismatch on read-back; `marketing-sync push retry` tries them again"


def _unknown_address_note(plan: Plan) -> Iterator[str]:
    if count := plan.unknown_address_count:
        yield f"{count:,} {'address is' if count == 1 else 'addresses are'} {KINDS[plan.kind].unknown_addresses}"


def _earlier_line(each: Earlier) -> str:
    """What of it the input no longer says is what a person who edited a file wants to know."""
    gone = f", {each.gone:,} of them not in this input" if each.gone else ""
    cancel = f"`marketing-sync push cancel {each.push_id}` drops what is not sent"
    return f"  {_count(each.open_count, 'request')} of push {each.push_id} ({each.kind} of {each.source}){gone}; {cancel}"


def _cost_line(plan: Plan, rate: float) -> str:
    requests, earlier = plan.request_count, plan.earlier_count
    if not requests:
        return f"nothing to send: {'0 requests' if plan.row_count else _NO_ROWS}"
    ours = f" ({earlier:,} of them of earlier pushes)" if earlier else ""
    return f"{_count(requests, 'request')}{ours}, {_duration(requests / rate)} at {rate:g} a second (reading back comes on top)"


def result_lines(result: Result) -> list[str]:
    """What became of a push, and what to do about what is left."""
    push = result.push
    lines = [f"push {push.push_id}: {_count(push.row_count, 'row')} of {push.source.name} → {push.kind} of account {push.account}", ""]
    lines += _columns((_STATES[state], result.counts.rows.get(state, 0), "") for state in _STATES if result.counts.rows.get(state, 0))
    earlier = ", ".join(f"{count:,} {state}" for state, count in sorted(result.earlier.items()) if count)
    if earlier:
        lines += ["", f"requests of earlier pushes: {earlier}"]
    if result.drifted_earlier:
        lines += ["", f"earlier pushes, read back only now, and not as sent: {_count(result.drifted_earlier, 'request')}"]
    lines += _reason_lines("not valid, not sent", [each for each in result.refusals if not each.by_service])
    lines += _reason_lines("rejected by the service", [each for each in result.refusals if each.by_service])
    lines += _reason_lines("not done yet", result.waiting)
    if result.drift:
        lines += ["", "mismatches on read-back"]
        lines += [f"  {name}: {_count(count, 'request')}" for name, count in result.drift.items()]
    return [*lines, "", *_closing(result)]


#: State of a row → how a person calls it.
_STATES: Mapping[State, str] = {
    State.VERIFIED: "sent and verified",
    State.APPLIED: "sent",
    State.SKIPPED: "nothing to do",
    State.REJECTED: "rejected",
    State.UNKNOWN: "outcome unknown",
    State.SENDING: "being sent",
    State.PLANNED: "not sent yet",
}


def _closing(result: Result) -> Iterator[str]:
    requests = f"; {_count(result.spent.requests, 'request')} sent" if result.spent else ""
    if result.is_idle and not result.shortfall:
        why = "everything is as it says, or was sent before" if result.push.row_count else _NO_ROWS
        yield f"nothing to send: {why}{requests}"
    elif result.shortfall:
        yield f"{_count(result.shortfall, 'row')} not done{requests}"
    else:
        yield f"done{requests}"
    if result.stopped:
        yield f"stopped: {result.stopped}"
    if result.open:
        own = f" {result.push.push_id}" if not result.counts.is_over else ""
        yield (
            f"{_count(result.open, 'request')} still open: the same command again resumes, and sends nothing twice;"
            f" `marketing-sync push cancel{own}` drops what is not sent"
        )
    if result.counts.requests.get(State.UNKNOWN):
        yield (
            "`marketing-sync push retry` finds out what became of the unknown ones, and sends what waits for them; where it cannot be found"
            f" out, look at the contact, then `marketing-sync push cancel {result.push.push_id} --unknown` lets go of them"
        )
    if result.drifted_earlier:
        yield "`marketing-sync push retry` sends once more what an earlier push sent without effect"
    may_pass = any(each.by_service and not is_permanent(each.reason) for each in result.refusals)
    if result.drift or (may_pass and result.counts.requests.get(State.REJECTED)):
        yield f"`marketing-sync push retry {result.push.push_id}` sends once more what the service rejected or did otherwise"
    elif may_pass:
        yield "`marketing-sync push retry` sends once more what the service rejected before or did otherwise"
    if result.rejected_csv:
        yield f"rejected rows: {result.rejected_csv}; `marketing-sync push rejected {result.push.push_id}` copies them to be corrected"
    if result.writebacks_follow:
        yield f"sync.writebacks follows with the next push or sync: {result.writebacks_follow}"


def open_lines(open_count: int) -> list[str]:
    """What is displayed when a person stops a push."""
    if not open_count:
        return ["stopped; nothing is left open"]
    return [
        f"stopped; {_count(open_count, 'request')} still open. The same command again resumes and sends nothing twice;",
        "`marketing-sync push status` shows them, `marketing-sync push cancel` drops what is not sent",
    ]


def say(lines: Iterable[str], stream: object = None) -> None:
    """Print lines; one that is wider than the terminal is not cut."""
    for line in lines:
        print(plain(line), file=stream or sys.stdout, flush=True)  # type: ignore[arg-type]


def masked(address: str | None) -> str:
    """An address as it may be seen by people who look after runs: `a•••@example.com`."""
    name, at, domain = (address or "").partition("@")
    return f"{name[:1]}•••@{domain}" if at else ""


def _reason_lines(title: str, reasons: Sequence[Reason]) -> list[str]:
    """Equal reasons together, the most frequent first."""
    if not reasons:
        return []
    several = grouped(reasons)
    lines = [line for each in several[:_SHOWN] for line in (f"  {_rows(each.rows)}: {each.reason}", *_remedy_line(each))]
    more = [f"  and {len(several) - _SHOWN} other reasons"] if len(several) > _SHOWN else []
    return ["", title, *lines, *more]


def _remedy_line(each: Reason) -> Iterator[str]:
    if each.by_service and (refusal := known(each.reason)):
        yield f"    {'permanent' if refusal.is_permanent else 'may pass'}; to do: {refusal.remedy}"


def _rows(numbers: Sequence[int]) -> str:
    first = ", ".join(map(str, numbers[:5]))
    return f"row {first}" if len(numbers) == 1 else f"rows {first}{f' and {len(numbers) - 5:,} more' if len(numbers) > 5 else ''}"


def _change_line(change: Change) -> str:
    old = "(empty)" if change.old in (None, "") else _short(change.old or "")
    new = "(empty)" if change.new in (None, "") else _short(change.new or "")
    return f"  row {change.row}  {change.what}  {change.column}: {old} → {new}"


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"


def _columns(counts: Iterable[tuple[str, int, str]]) -> list[str]:
    listed = list(counts)
    width = max((len(name) for name, _, _ in listed), default=0)
    return [f"  {name:<{width}}  {count:>9,}{f'   {note}' if note else ''}" for name, count, note in listed]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 1.5:
        return "about a second"
    if seconds < 120:
        return f"about {seconds:.0f} seconds"
    return f"about {seconds / 60:.0f} minutes" if seconds < 7200 else f"about {seconds / 3600:.1f} hours"


def retry_lines(retried: Retried) -> list[str]:
    """What `push retry` puts back."""
    lines = [f"{_count(retried.planned, 'request')} to be tried again" if retried.planned else "nothing to be tried again"]
    title = f"{_count(len(retried.left), 'request')} left, which would be refused again; `--permanent` sends them all the same"
    lines += _reason_lines(title, list(map(Reason.of, retried.left)))
    if retried.superseded:
        lines.append(f"{_count(retried.superseded, 'request')} left as they are: a later push changed the same thing")
    return lines
