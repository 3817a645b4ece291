"""Plans and results in words: the same lines on a terminal, in a log and in Dagster; and for programs.

Belongs here: what the texts of `push_report.jinja` and the documents for programs are filled with. Not here:
`rejected.csv` (`rejected_rows`), where lines go (`push_terminal`, `push_jobs`)."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from home import output
from home.formatting import plural
from home.output import PushResult, Reason
from marketing_api.redaction import plain, without_addresses
from write_back.input.rows import shown
from write_back.item import Plan, State
from write_back.kinds import KINDS
from write_back.order import Planned
from write_back.refusals import known
from write_back.rejected_rows import RejectedRows
from write_back.result import Ran, explained, grouped, needs_person

_TEXTS = Path(__file__).with_suffix(".jinja")
_SHOWN = 10  # changes, bad rows and the like; the rest is in rejected.csv


def lines(text: str, *values: object) -> list[str]:
    """The text of that name in `push_report.jinja`, filled with the values."""
    return str(getattr(_texts(), text)(*values)).removesuffix("\n").split("\n")


def plan_lines(planned: Planned, *, is_discreet: bool = False) -> list[str]:
    """What a push would do. `is_discreet`: without addresses and values, for logs and Dagster."""
    plan = planned.plan
    whole = plan.changed_count + (plan.new_count if KINDS[plan.kind].samples_new else 0)
    return lines(
        "plan", plan, list(_plan_counts(plan, planned.order.reject_limit)), planned.rate, whole, is_discreet
    )


def result_lines(result: PushResult) -> list[str]:
    counts = [
        (words, count, "") for state, words in _texts().STATES.items() if (count := result.rows.get(state))
    ]
    may_pass = any(each.by_service and not each.is_permanent for each in result.reasons)
    return lines("result", result, counts, may_pass)


def headline(result: PushResult) -> str:
    """What is not as it was meant to be, a sentence with numbers; without addresses."""
    return (
        f"push {result.push}: {result.shortfall:,} of {result.row_count:,} rows are not as they were meant "
        f"to be ({problem(result, result.rows.get(State.REJECTED, 0))})"
    )


def problem(result: PushResult, rejected: int) -> str:
    """The same in counts; `rejected`: what counts of that."""
    parts = {"rejected": rejected, "open": result.open, "with a mismatch on read-back": result.drifted}
    counts = [f"{count:,} {what}" for what, count in parts.items() if count]
    return ", ".join(counts + ([f"stopped: {without_addresses(result.stopped)}"] if result.stopped else []))


def alert_body(result: PushResult, ran: Ran) -> dict[str, object]:
    """What the alert address is told: counts, reasons with what to do, and how to go on; nothing that a row
    or the service said."""
    needs, reasons = needs_person(result), Counter[tuple[str, str | None]]()
    for each in result.reasons:
        reasons[_without_words(each), each.remedy] += len(each.rows)
    return {
        "text": "\n".join(lines("alert", result, needs, reasons.most_common())),
        "job": ran.job,
        "run_id": ran.run,
        "push": result.push,
        "account": result.account,
        "kind": result.kind,
        "needs_person": needs,
    }


def _without_words(each: Reason) -> str:
    """The reason without anything of a cell, or of the service's own words."""
    if each.by_service:
        return refusal.name if (refusal := known(each.reason)) else "other words of the service"
    return re.sub(r"“[^“”]*”|\d{5,}", "…", without_addresses(each.reason))


def say(text: Iterable[str], stream: object = None) -> None:
    """Print lines; one that is wider than the terminal is not cut."""
    for line in text:
        print(plain(line), file=stream or sys.stdout, flush=True)  # type: ignore[arg-type]


# ---- for programs


def plan_document(planned: Planned) -> output.PushPlan:
    plan = planned.plan
    return output.PushPlan(
        account=plan.account,
        kind=str(plan.kind),
        source=plan.source.name,
        rows=plan.row_count,
        new=plan.new_count,
        changed=plan.changed_count,
        idle={each.reason: len(each.rows) for each in grouped(plan.idle)},
        invalid=list(map(explained, plan.bad)),
        changes=[output.Change(*astuple(each)) for each in plan.changes],
        additions=[output.Change(*astuple(each)) for each in plan.additions],
        columns=dict(plan.columns),
        unknown_addresses=plan.unknown_address_count,
        notes=list(plan.warnings),
        requests=plan.request_count,
        seconds=plan.request_count / planned.rate,
        refusal=planned.refusal,
    )


def rejected_document(several: Iterable[RejectedRows]) -> output.RejectedRows:
    return output.RejectedRows(
        [
            output.RejectedRow(
                row.push_id or 0,
                each.kind,
                explained(row.why),
                dict(zip(each.columns, row.cells, strict=True)),
            )
            for each in several
            for row in each.rows
        ]
    )


# ---- what the texts are made of


@cache
def _texts() -> Any:
    made = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)  # noqa: S701 (plain text)
    made.filters |= {
        "of": plural,
        "number": "{:,}".format,
        "grouped": grouped,
        "shown": lambda name: shown(name)[1:-1],
    }
    made.filters["cell"] = lambda count: (f"{count:,}" if count else "·").rjust(11)
    made.globals |= {"KINDS": KINDS, "SHOWN": _SHOWN, "NO_ROWS": "the input has no rows"}
    return made.from_string(_TEXTS.read_text(encoding="utf-8")).module


def _plan_counts(plan: Plan, reject_limit: float) -> Iterator[tuple[str, int, str]]:
    checked = sum(not bad.by_service for bad in plan.bad)
    yield "new", plan.new_count, ""
    yield "changed", plan.changed_count, ""
    for each in grouped(plan.idle):
        yield each.reason, len(each.rows), "nothing to send"
    if not plan.idle:
        yield "unchanged", 0, ""
    share = f"{100 * plan.bad_share:.1f} % of the rows; more than {100 * reject_limit:g} % stop the push"
    yield "invalid", checked, share if checked else ""
    if refused := len(plan.bad) - checked:
        yield (
            "rejected before",
            refused,
            "or with a mismatch on read-back; `marketing-sync push retry` tries them again",
        )
