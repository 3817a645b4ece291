"""What is left planned since something before it, about the same person or thing, is unknown: said with the item.

Not here: the order itself (`schedule`).
"""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.write_back.item import State
from pipelines.write_back.outbox.entry import Entry
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.sending.schedule import Schedule


def note_waiting(outbox: Outbox, schedule: Schedule, left: Iterable[Entry]) -> None:
    """Tell of everything that is left planned what it waits for, and of nothing else. `left`: in order of their numbers."""
    unknown: dict[int, Entry] = {}  # item → the unknown one that it is, or that it waits for
    messages: dict[int, str | None] = {}
    for entry in left:
        if entry.state is State.UNKNOWN:
            unknown[entry.item_id] = entry
            continue
        cause = next((unknown[other] for other in sorted(schedule.waits_for(entry.item_id)) if other in unknown), None)
        if cause is not None:
            unknown[entry.item_id] = cause
        if (message := _message(entry, cause)) != entry.message:
            messages[entry.item_id] = message
    outbox.note(messages)


def _message(entry: Entry, cause: Entry | None) -> str | None:
    if cause is None:
        return None
    rows = f"row{'s' if len(cause.rows) > 1 else ''} {', '.join(map(str, cause.rows[:5]))}{'…' if len(cause.rows) > 5 else ''}"
    where = "" if cause.push_id == entry.push_id else f" of push {cause.push_id}"
    return f"waits for {rows}{where}, about the same person, of which is unknown whether it took effect"
