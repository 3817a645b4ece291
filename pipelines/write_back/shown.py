"""What Dagster's UI shows of a push: counts and tables, with addresses masked. Not here: the steps (`jobs`)."""

from __future__ import annotations

from typing import Any

import dagster as dg

from marketing_api.redaction import markdown_block, markdown_table, without_addresses
from pipelines.write_back.item import State
from pipelines.write_back.outbox.entry import Entry
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.push import Planned
from pipelines.write_back.reporting.report import masked
from pipelines.write_back.reporting.result import Result

_SHOWN = 50


def headline(result: Result) -> str:
    """What failed, in one sentence with numbers; without addresses."""
    parts = {
        "rejected": result.rejected + result.earlier.get(State.REJECTED, 0),
        "open": result.open,
        "read back otherwise than sent": result.counts.drifted + result.drifted_earlier,
    }
    earlier, rows = result.earlier_shortfall, f"{result.push.row_count:,} rows"
    own = f"{result.shortfall - earlier:,} of {rows}{f' and {earlier:,} requests of earlier pushes' if earlier else ''}"
    said = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
    stopped = f"; stopped: {without_addresses(result.stopped)}" if result.stopped else ""
    return f"push {result.push.push_id}: {own} are not as they were meant to be ({said}){stopped}"


def counts_of(planned: Planned) -> dict[str, Any]:
    """Rows by fate, and requests."""
    plan = planned.plan
    return {
        "rows": plan.row_count,
        "new": plan.new_count,
        "changed": plan.changed_count,
        "nothing to send": len(plan.idle),
        "invalid": sum(not bad.by_service for bad in plan.bad),
        "refused before": sum(bad.by_service for bad in plan.bad),
        "requests": plan.request_count,
    }


def plan_metadata(planned: Planned, lines: list[str]) -> dict[str, Any]:
    """Counts, the plan in words, and the first rejected rows."""
    bad = [(each.row, without_addresses(each.reason)) for each in planned.plan.bad[:_SHOWN]]
    table = {"rejected rows": dg.MetadataValue.md(markdown_table(("row", "why"), bad))} if bad else {}
    return counts_of(planned) | {"plan": dg.MetadataValue.md(markdown_block(lines))} | table


def result_metadata(result: Result, outbox: Outbox) -> dict[str, Any]:
    """Counts, and a table of what is left; of what was sent when nothing is."""
    entries = outbox.items(result.push.push_id, [State.REJECTED, State.UNKNOWN, State.SENDING, State.PLANNED])
    entries = entries or outbox.items(result.push.push_id, [State.VERIFIED, State.APPLIED])
    metadata: dict[str, Any] = {
        "push": result.push.push_id,
        "requests": result.spent.requests if result.spent else 0,
        **{f"rows {state}": count for state, count in sorted(result.counts.rows.items())},
        "drifted": result.counts.drifted,
        "result": dg.MetadataValue.md(markdown_table(("row", "who", "state", "message"), map(_result_row, entries[:_SHOWN]))),
    }
    if result.rejected_csv:
        metadata["rejected rows"] = dg.MetadataValue.path(str(result.rejected_csv))
    if result.writebacks_follow:
        metadata["sync.writebacks follows later"] = result.writebacks_follow
    return metadata


def _result_row(entry: Entry) -> tuple[str, str, str, str]:
    who = masked(entry.email) or (f"contact {entry.contact_id}" if entry.contact_id else "")
    return ", ".join(map(str, entry.rows[:5])), who, entry.state.value, without_addresses(entry.message or "")
