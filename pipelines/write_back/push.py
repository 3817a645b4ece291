"""How a push begins: an order, its rows, its plan, the outbox. Not here: how it goes on (`push_service`, which needs the client and
takes longer to import), planning itself (`plan`), wording (`report`).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipelines.progress import report_waiting
from pipelines.settings import Settings, SettingsError
from pipelines.write_back.accounts import account_of
from pipelines.write_back.input.grid import InputError
from pipelines.write_back.input.rows import Rows, read_file, read_query
from pipelines.write_back.item import Kind, Plan
from pipelines.write_back.outbox.outbox import Outbox, outbox_path
from pipelines.write_back.outbox.sender_lock import sender_lock
from pipelines.write_back.planning.earlier import Asked
from pipelines.write_back.planning.known import Known, load_known
from pipelines.write_back.planning.options import Options
from pipelines.write_back.planning.plan import make_plan
from pipelines.write_back.reporting.rejected import REASON, ROW, folder_of, keep_rows

#: Whoever begins a push at the same moment takes seconds.
_PATIENCE_S = 600.0


@dataclass(frozen=True)
class Order:
    """What is to be pushed, from where (`file` or `query`), and how."""

    kind: Kind
    account: str
    file: Path | None = None
    query: str | None = None
    options: Options = field(default_factory=Options)
    reject_limit: float = 0.05
    verify: str = "sample"


@dataclass(frozen=True)
class Planned:
    """A plan with what it was made from. `revision` is the outbox's before it was looked into."""

    order: Order
    rows: Rows = field(repr=False)
    plan: Plan
    revision: int

    @property
    def is_refused(self) -> bool:
        """Whether too many rows are bad for anything to be sent."""
        return self.plan.bad_share > self.order.reject_limit

    @property
    def refusal(self) -> str:
        """Why, in words."""
        order, share = self.order, self.plan.bad_share
        return (
            f"{100 * share:.1f} % of the rows are not valid, more than the {100 * order.reject_limit:g} % of the limit:"
            " correct them, or allow more with --reject-limit (in the launchpad: reject_limit)"
        )


def order_of(settings: Settings, kind: Kind, chosen: Mapping[str, Any]) -> Order:
    """What a person chose of `options.push_options`, wherever. Raises SettingsError."""
    if (chosen["from"] is None) == (chosen["sql"] is None):
        raise SettingsError("say what to push: either --from or --sql (in the launchpad: from or sql)")
    mapping = dict(chosen["map"])
    if len(mapping) < len(chosen["map"]):
        raise SettingsError("--map names one of our columns twice (in the launchpad: map)")
    clear_empty = chosen.get("clear_empty", False)
    options = Options(mapping, tuple(chosen["ignore"]), chosen["all"], clear_empty, chosen["max_rows"])
    account = account_of(settings, chosen["account"])
    return Order(kind, account, chosen["from"], chosen["sql"], options, chosen["reject_limit"], chosen["verify"])


def parse_rows(settings: Settings, order: Order) -> Rows:
    """The input. Raises InputError, WarehouseError."""
    if order.file is not None:
        return read_file(order.file, limit=settings.input_limit)
    return run_query(settings, order.query or "")


def run_query(settings: Settings, sql: str) -> Rows:
    """The rows of somebody's query on the warehouse. Raises InputError, WarehouseError."""
    seconds, limit = settings.query_seconds, settings.input_limit
    return read_query(settings.warehouse_path, sql, deadline_s=settings.lock_seconds, on_wait=report_waiting, seconds=seconds, limit=limit)


def plan_push(settings: Settings, order: Order, rows: Rows | None = None) -> Planned:
    """What would be sent. No request is sent, nothing is written. Raises InputError, WarehouseError, OutboxError."""
    with _without_collecting(), Outbox(outbox_path(settings.home)) as outbox:
        return _plan(settings, order, parse_rows(settings, order) if rows is None else rows, outbox)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Reading and planning make millions of values, all of which stay and none of which is in a cycle: Python's collector walks
    them again and again, and takes a quarter of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _plan(settings: Settings, order: Order, rows: Rows, outbox: Outbox) -> Planned:
    revision = outbox.revision
    told = [name for name in (ROW, REASON) if name in rows.columns]  # a rejected.csv that was corrected
    options = replace(order.options, ignore=(*order.options.ignore, *told))
    known = known_of(settings, order.account)
    asked = Asked(outbox)
    plan = make_plan(order.kind, rows, known, asked, options)
    return Planned(order, rows, replace(plan, earlier=asked.earlier(order.account, order.kind)), revision)


def known_of(settings: Settings, account: str) -> Known:
    """What the warehouse knows of the account. Raises InputError when nothing was read yet, WarehouseError."""
    return load_known(
        settings.warehouse_path,
        account,
        zone=next((each.timezone for each in settings.accounts if each.account == account), None),
        fallback_zone=settings.timezone,
        deadline_s=settings.lock_seconds,
        on_wait=report_waiting,
    )


def begin(settings: Settings, planned: Planned, *, run: str) -> int:
    """Take the plan into the outbox; the push's number. From here on it survives anything.

    One at a time for each account, and planned anew when the outbox changed meanwhile: two people who push the same file at the
    same moment send it once. Raises InputError when too many rows are bad for anything to be sent.
    """
    order = planned.order
    options: dict[str, str | bool] = {"verify": order.verify, "send_all": order.options.send_all}
    with Outbox(outbox_path(settings.home)) as outbox, sender_lock(settings.home, f"{order.account} begins", wait_s=_PATIENCE_S):
        if outbox.revision != planned.revision:
            planned = _plan(settings, order, planned.rows, outbox)
        if planned.is_refused:
            raise InputError(f"nothing was sent: {planned.refusal}")
        wanted = {row for item in planned.plan.items for row in item.rows} | {bad.row for bad in planned.plan.bad}

        def keep(push_id: int) -> None:
            keep_rows(folder_of(settings.home, push_id) / "rows.parquet", planned.rows, wanted)

        return outbox.begin(planned.plan, run=run, options=options, keep=keep)
