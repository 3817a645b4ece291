"""The one way of a push: plan → enqueue → send → verify → conclude, for the command line, Dagster's steps and
audience syncs.

    planned = plan_push(settings, order)                         # no request, nothing is written
    push_id = enqueue(settings, planned, run=…)                  # durable from here on
    results = finish_push(settings, outbox, ran, watch)          # sends, verifies, concludes

They differ in input and display only. Belongs here: the order of the steps, and what a run takes up that
earlier ones left. Not here: each of them (`planning`, `outbox`, `sending`, `verification`), who watches
(`terminal`, `push_jobs`). The client takes long to import: a plan does without."""

from __future__ import annotations

import gc
import logging
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from home.alerts import try_to_post
from home.folder import in_use
from home.identity import check_kind
from home.settings import Settings, SettingsError
from marketing_api.errors import MarketingApiError, OtherBusiness
from marketing_api.operations import account as operations
from upkeep.backups import back_up_run
from warehouse.archive.suppression import load
from warehouse.errors import WarehouseError
from write_back.account_state import load_known
from write_back.input.files import read_file
from write_back.input.query import read_query
from write_back.input.rows import InputError, Rows
from write_back.kinds import make_plan, verify
from write_back.order import Order, Planned, rate_of
from write_back.outbox.outbox import Outbox, outbox_path
from write_back.outbox.store import check_not_held, sender_lock
from write_back.planning import without_forgotten
from write_back.push_report import alert_body
from write_back.rejected_rows import INFORMATION, folder_of, keep_rows, named_rows, write_rejections
from write_back.result import Ran, Result, result_of
from write_back.sending import Sending
from write_back.verification import Labels

if TYPE_CHECKING:
    from marketing_api.client import Client
    from marketing_api.exchange import Exchange

#: Both are waited for: whoever enqueues a push at the same moment takes seconds, who sends for the account
#: may have hours of work.
_ENQUEUE_WAIT_S, _SENDER_WAIT_S = 600.0, 24 * 3600.0


# ---- plan and enqueue


def plan_push(settings: Settings, order: Order, rows: Rows | None = None) -> Planned:
    """What would be sent. No request is sent, nothing is written. Raises InputError, SettingsError,
    WarehouseError, OutboxError."""
    check_kind(settings)
    gc.disable()  # it would walk millions of values that stay again and again, and take a quarter of the time
    try:
        with Outbox(outbox_path(settings.home)) as outbox:
            if rows is None:
                rows = (
                    read_file(order.file, limit=settings.input_limit)
                    if order.file
                    else read_query(settings, order.query or "")
                )
            return _plan(settings, order, rows, outbox)
    finally:
        gc.enable()


def _plan(settings: Settings, order: Order, rows: Rows, outbox: Outbox) -> Planned:
    revision = outbox.revision
    rows = without_forgotten(rows, order.account, load(settings.home / "archive"), order.options.mapping)
    options = replace(
        order.options, ignore=(*order.options.ignore, *(name for name in INFORMATION if name in rows.columns))
    )
    plan = make_plan(order.kind, rows, load_known(settings, order.account), outbox, options)
    plan = replace(plan, earlier=tuple(outbox.open_by_push(order.account)))
    return Planned(order, rows, plan, revision, rate_of(settings, order.account))


def enqueue(settings: Settings, planned: Planned, *, run: str) -> int:
    """Take the plan into the outbox; the push's number. From here on it survives anything. InputError when
    too many rows are bad.

    One at a time for each account, and planned anew when the outbox changed meanwhile: two people who push
    the same file at the same moment send it once."""
    check_not_held(outbox_path(settings.home))
    order = planned.order
    chosen = order.options
    options = {
        "verify": order.verify,
        "send_all": chosen.send_all,
        "ignore": chosen.ignore,
        "clear_empty": chosen.clear_empty,
    }
    options |= {"resubscribe": True} if chosen.resubscribe else {}
    options["map"] = [f"{ours}={theirs}" for ours, theirs in chosen.mapping.items()]
    is_begun = sender_lock(settings.home, f"{order.account}.begins", wait_s=_ENQUEUE_WAIT_S)
    with in_use(settings.home), Outbox(outbox_path(settings.home)) as outbox, is_begun:
        if outbox.revision != planned.revision:
            planned = _plan(settings, order, planned.rows, outbox)
        if planned.refusal:
            raise InputError(f"nothing was sent: {planned.refusal}")
        wanted = {
            row for part in (planned.plan.items, planned.plan.bad) for each in part for row in each.rows
        }

        def keep(push_id: int) -> None:
            keep_rows(folder_of(settings.home, push_id) / "rows.parquet", planned.rows, wanted)

        refused_again = {
            row for bad in planned.plan.bad if bad.by_service for row in bad.rows
        }  # that request is still to be retried
        corrects = [named for number, named in named_rows(planned.rows) if number not in refused_again]
        is_known = order.kind.is_idempotent
        return outbox.enqueue(
            planned.plan, run=run, options=options, keep=keep, corrects=corrects, corrects_refused=is_known
        )


# ---- send and verify


@dataclass
class Watch:
    """How far the work is, for whoever shows it; and whether it is to stop."""

    halt: threading.Event = field(default_factory=threading.Event)
    client: Client | None = None  # once it talks to the service
    _state: tuple[str, int, int, str] = ("sending", 0, 0, "")

    def sent(self, done: int, total: int, unknown: int) -> None:
        self._state = ("sending", done, total, f"{unknown:,} unknown" if unknown else "")

    def reading_back(self) -> None:
        self._state = ("reading back", 0, 0, "")

    def progress(self) -> tuple[str, int, int, str]:
        return self._state

    def requests_sent(self) -> int:
        return self.client.statistics.requests if self.client else 0


def finish_push(settings: Settings, outbox: Outbox, ran: Ran, watch: Watch) -> list[Result]:
    """Send the run's push and whatever else is open of its account, read back, conclude. Nothing left: no
    request at all."""
    return conclude(
        settings, outbox, PushRun(settings, outbox, ran, watch).take(PushRun.send_open, PushRun.read_back)
    )


@dataclass
class PushRun:
    """What one run does for an account, whichever push it is of and whichever run left it. Each step may be
    repeated, or be the only one, as Dagster's are: the outbox knows what is left, `ran` what was done so far.
    """

    settings: Settings
    outbox: Outbox
    ran: Ran
    watch: Watch
    client: Client = field(init=False)
    _unrecognised: str | None = field(init=False, default=None)  # why it is not known whose account it is

    def take(self, *steps: Callable[[PushRun], None]) -> Ran:
        """Take these steps as the account's only sender. Nothing left to be done: no request at all."""
        if self.ran.earlier or self.outbox.has_left(self.ran.account):
            check_not_held(outbox_path(self.settings.home))
            is_sender = sender_lock(
                self.settings.home, self.ran.account, wait_s=_SENDER_WAIT_S, on_wait=_say_who_sends
            )
            with (
                in_use(self.settings.home),
                is_sender,
                _open_client(self.settings, self.ran.account) as client,
            ):
                self.client = self.watch.client = client
                self._unrecognised = self._recognise()
                for step in steps:
                    step(self)
            ran, own = self.ran, client.statistics
            self.ran = replace(
                ran, requests=ran.requests + own.requests, waited_s=ran.waited_s + own.waited_s
            )
        return self.ran

    def _recognise(self) -> str | None:
        """Request whose account it is, ahead of everything else. Raises OtherBusiness; returns why the
        service does not say."""
        try:
            self.client.fetch(operations.ME.bind())
        except OtherBusiness:
            raise
        except MarketingApiError as problem:
            return str(problem)
        return None

    def send_open(self) -> None:
        if open_ := self.outbox.open(self.ran.account):
            sending = Sending(
                self.outbox, self.client, self.ran.account, stop=self.watch.halt, on_progress=self.watch.sent
            )
            self._note(frozenset(entry.push_id for entry in open_), self._unrecognised or sending.run())

    def read_back(self) -> None:
        """Compare what the service shows with what was sent and not looked at yet, each push as it was
        ordered; drift stands in the outbox. Nothing, once stopped."""
        pushes = self.ran.earlier | self.outbox.not_read_back(self.ran.account)
        if not pushes or self.ran.stopped:
            return
        self.watch.reading_back()
        labels, stopped = self._labels(), self._unrecognised
        ways: defaultdict[str, set[int]] = defaultdict(set)
        for push in filter(None, map(self.outbox.push, pushes)):
            ways[str(push.options.get("verify", "sample"))].add(push.push_id)
        for how, several in ways.items():
            stopped = stopped or verify(
                self.outbox, self.client, several, how, labels=labels, stop=self.watch.halt
            )
        if not stopped:
            self.outbox.note_read_back(pushes)
        self._note(pushes, stopped)

    def _note(self, pushes: frozenset[int], stopped: str | None) -> None:
        self.ran = replace(self.ran, stopped=stopped, earlier=pushes.difference([self.ran.push_id]))

    def _labels(self) -> Labels:
        """List → field → label, since some services show values by label. None while somebody else has the
        warehouse: sending is over, and reading back goes by ids then."""
        try:
            return load_known(self.settings, self.ran.account).lists.fields
        except (InputError, WarehouseError):
            return {}


@contextmanager
def _open_client(settings: Settings, account: str) -> Iterator[Client]:
    """The account's client, under the account's limit, with every request in the archive. Opening it sends
    nothing; it sends nothing more once another business responds."""
    from home.accounts import connections
    from home.identity import Recognition
    from marketing_api.client import Client  # and what it needs: a plan does without
    from marketing_api.rate_limit import RateLimiter
    from warehouse.archive import Archive
    from warehouse.archive.disk import Workspace

    def record(exchange: Exchange) -> None:
        """What a push reads is as of the middle of its own changes: kept without its body, it is never taken
        for a sync's response."""
        archive.record(replace(exchange, body=b"") if exchange.call.operation.is_read else exchange)

    with connections(settings) as accounts:
        connection = next((each for each in accounts if each.account == account), None)
        if connection is None:
            raise SettingsError(
                f"there is no account {account} any more; configured are "
                f"{', '.join(each.account for each in accounts)}"
            )
        limiter, accept = RateLimiter.shared(connection), Recognition(settings, connection, notes=True)
        with (
            Archive(settings.home / "archive") as archive,
            closing(Workspace(settings.home / "tmp" / "spool")) as spool,
            Client(connection, limiter, record=record, spool=spool.folder(), accept=accept) as client,
        ):
            yield client


def _say_who_sends(holder: str) -> None:
    print(
        f"marketing-sync: waiting for {holder}, which is sending for this account",
        file=sys.stderr,
        flush=True,
    )


# ---- conclude


def conclude(settings: Settings, outbox: Outbox, ran: Ran) -> list[Result]:
    """What came of the run's own push, if it has one, and of each that it went on with (what it cost stands
    in the first), written down in rejected.csv, sync.runs, sync.requests and sync.writebacks, and posted to
    the alert address where it needs a person. While somebody else has the warehouse, the tables follow with
    the next push or sync."""
    results: list[Result] = []
    for each in filter(None, [ran.push_id, *sorted(ran.earlier)]):
        rejected_csv, requests = (
            write_rejections(settings.home, outbox, each),
            None if results else ran.requests,
        )
        results.append(
            result_of(outbox, each, requests_sent=requests, stopped=ran.stopped, rejected_csv=rejected_csv)
        )
    if not results:
        return []
    outbox.prune(settings.kept.skipped)
    from write_back.writebacks_export import export_run  # what it needs, a plan does without

    for result in results:
        if settings.alert_url and result.needs_person:
            try_to_post(settings, alert_body(result, ran))
    follow = export_run(settings, sum(result.shortfall for result in results), ran)
    if problem := back_up_run(settings):
        logging.getLogger(__name__).warning("%s", problem)
    return [replace(result, writebacks_follow=follow) for result in results]
