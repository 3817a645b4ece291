"""How a push ends: what came of it, written down where people look. Sends nothing.

Not here: sending (`push_service`), wording (`report`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from marketing_api.clock import utc_now
from pipelines.progress import report_waiting
from pipelines.settings import Settings
from pipelines.write_back.item import DONE
from pipelines.write_back.mirror import show_writebacks
from pipelines.write_back.outbox.entry import Entry
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.reporting.rejected import write_rejections
from pipelines.write_back.reporting.result import Ran, Result, Spent, result_of
from warehouse.archive import Archive
from warehouse.bookkeeping import Run, load_requests, write_run
from warehouse.errors import WarehouseError
from warehouse.warehouse import Warehouse


def conclude(settings: Settings, outbox: Outbox, push_id: int, ran: Ran) -> Result:
    """What came of it, written down: rejected.csv, sync.runs, sync.requests, sync.writebacks. Sends nothing.

    The push counts even while somebody else has the warehouse: then the tables follow with the next push or sync.
    """
    result = result_of(
        outbox,
        push_id,
        earlier=Counter(entry.state for entry in _entries(outbox, ran.earlier)),
        drifted_earlier=sum(bool(entry.drift) for each in ran.read_late for entry in outbox.items(each, DONE)),
        spent=ran.spent,
        stopped=ran.stopped,
        rejected_csv=write_rejections(settings.home, outbox, push_id),
    )
    for earlier_push in sorted(set(ran.earlier.values())):
        write_rejections(settings.home, outbox, earlier_push)
    outbox.prune()
    return replace(result, writebacks_follow=_show(settings, result, ran))


def _entries(outbox: Outbox, items: Mapping[int, int]) -> Iterator[Entry]:
    for push_id in set(items.values()):
        yield from (entry for entry in outbox.items(push_id) if entry.item_id in items)


def _show(settings: Settings, result: Result, ran: Ran) -> str | None:
    """Bring the warehouse up to date; the reason when that has to wait."""
    try:
        with Archive(settings.home / "archive") as archive:
            warehouse = Warehouse(settings.home, archive, deadline_s=settings.lock_seconds, on_wait=report_waiting)
            with warehouse.writing() as connection:
                if ran.spent is not None:
                    write_run(connection, _run(result, ran, ran.spent))
                load_requests(connection, archive)
            show_writebacks(warehouse, settings.home)
    except WarehouseError as problem:
        return str(problem)
    return None


def _run(result: Result, ran: Ran, spent: Spent) -> Run:
    """The row of sync.runs."""
    outcome = "failed" if ran.stopped and not spent.requests else "partial" if result.shortfall else "done"
    message = "\n".join(filter(None, (ran.stopped, f"{result.shortfall:,} rows not done" if result.shortfall else "")))
    return Run(ran.run, ran.job, ran.began_at, utc_now(), outcome, spent.requests, spent.waited_s, message)
