"""The one way of a push: order → plan → enqueue → send → verify → conclude, for the command line,
Dagster's steps and audience syncs.

    planned = plan_push(settings, order)                         # no request, nothing is written
    push_id = enqueue(settings, planned, run=…)                  # durable from here on
    results = finish_push(settings, outbox, Ran(…, push_id))     # sends, verifies, concludes

They differ in input and display only. Belongs here: the order of the steps, and what a run takes up
that earlier ones left. Not here: each of them (`planning`, `outbox`, `sending`, `verification`),
who watches (`push_terminal`, `push_jobs`), the backup behind it (`upkeep`). The client takes long
to import: a plan does without."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from home.alerts import try_to_post
from home.door import archive_of, outbox_of
from home.folder import in_use
from home.identity import check_kind
from home.loading import open_archive
from home.output import PushResult
from home.settings import Settings, SettingsError, account_of, estimated_rate
from marketing_api.errors import MarketingApiError, OtherBusiness
from marketing_api.operations import account as operations
from warehouse.archive.suppression import load_forgotten
from warehouse.disk import open_scratch
from warehouse.errors import WarehouseError
from write_back.account_state import load_known
from write_back.input.files import read_file
from write_back.input.query import read_query
from write_back.input.rows import InputError, Rows
from write_back.item import Options, Plan, Source
from write_back.kinds import KINDS, Kind, make_plan, verify_pushes
from write_back.order import Order, Planned, Ran
from write_back.outbox.outbox import Claims, Outbox, open_outbox
from write_back.outbox.store import check_no_hold, sender_lock
from write_back.planning import set_reported_apart, without_forgotten
from write_back.push_report import alert_body, needs_person, result_of
from write_back.rejected_rows import INFORMATION, folder_of, keep_rows, named_rows
from write_back.reverting import find_revert
from write_back.sending import Sending
from write_back.verification import Labels

if TYPE_CHECKING:
    from marketing_api.client import Client
    from marketing_api.exchange import Exchange

#: Both are waited for: whoever enqueues a push at the same moment takes seconds, who sends for the
#: account may have hours of work.
_ENQUEUE_WAIT_S = 600.0
_SENDER_WAIT_S = 24 * 3600.0


# ---- what somebody wants pushed, and the plan of it


def order_of(settings: Settings, kind: Kind, typed: Mapping[str, Any]) -> Order:
    """What a person chose of `home.options.PUSH_OPTIONS`, wherever. Raises SettingsError."""
    if (typed["from"] is None) == (typed["sql"] is None):
        raise SettingsError(
            "say what to push: either --from or --sql (in the launchpad: from or sql)"
        )
    mapping = dict(typed["map"])
    if len(mapping) < len(typed["map"]):
        raise SettingsError("--map names one of our columns twice (in the launchpad: map)")
    if typed["sql"] is not None and (typed["encoding"] or typed["sheet"]):
        raise SettingsError("--encoding and --sheet are for files: leave them out beside --sql")
    own = {option.name: typed[option.name] for option in fields(Options) if option.name in typed}
    own |= {"mapping": mapping, "ignore": tuple(typed["ignore"]), "send_all": typed["all"]}
    return Order(
        kind,
        account_of(settings, typed["account"]),
        typed["from"],
        typed["sql"],
        Options(**own),
        typed["reject_limit"],
        "all" if typed["first"] else typed["verify"],
        typed["encoding"],
        typed["sheet"],
        typed["first"],
    )


def revert_order(settings: Settings, account: str, typed: Mapping[str, Any]) -> Order:
    """The push that undoes another one. Raises SettingsError when there is no such push."""
    with open_outbox(settings.home) as outbox:
        push = outbox.find_push(typed["push"])
    if push is None or push.account != account:
        raise SettingsError(
            f"account {account} has no push {typed['push']}; `marketing-sync push status` lists "
            "them"
        )
    options = Options(resubscribe=typed["resubscribe"], if_plan=tuple(typed["if_plan"]))
    return Order(
        KINDS[push.kind], account, options=options, reverts=push.push_id, with_tags=typed["tags"]
    )


def plan_push(settings: Settings, order: Order, rows: Rows | None = None) -> Planned:
    """What would be sent. No request is sent, nothing is written. Raises InputError, SettingsError,
    WarehouseError, OutboxError."""
    check_kind(settings)
    with in_use(settings.home), open_outbox(settings.home) as outbox:
        rows = _read_rows(settings, order) if rows is None else rows
        return _make_plan(settings, order, rows.take_rows(range(len(rows))[: order.first]), outbox)


def _read_rows(settings: Settings, order: Order) -> Rows:
    if order.reverts is not None:
        return Rows({}, [], Source("", ""))  # made by the plan, each time anew
    if order.file is None:
        zone = load_known(settings, order.account).zone.key
        return read_query(settings, order.query or "", zone)
    return read_file(
        order.file,
        limit=settings.input_limit,
        encoding=order.encoding,
        sheet=order.sheet,
    )


def _make_plan(settings: Settings, order: Order, rows: Rows, outbox: Outbox) -> Planned:
    revision = outbox.revision
    forgotten = load_forgotten(archive_of(settings.home))
    known = load_known(settings, order.account)
    revert = None
    if order.reverts is not None and (push := outbox.find_push(order.reverts)) is not None:
        revert = find_revert(known, outbox, push, with_tags=order.with_tags)
        rows = revert.make_rows(push.push_id)
    rows = without_forgotten(rows, order.account, forgotten, order.options.mapping)
    options = replace(
        order.options,
        ignore=(*order.options.ignore, *(name for name in INFORMATION if name in rows.columns)),
    )
    plan = make_plan(order.kind, rows, known, outbox, options)
    if revert is not None:
        plan = revert.guard_plan(plan)
    if options.is_standing:
        plan = set_reported_apart(
            plan, rows, outbox.rejected_by_check(order.account, rows.source.name)
        )
    plan = replace(plan, earlier=tuple(outbox.open_by_push(order.account)))
    if options.if_plan and plan.request_count and plan.plan_id not in options.if_plan:
        raise InputError(
            f"nothing was sent: it is not plan {' or '.join(options.if_plan)} any more, but plan "
            f"{plan.plan_id}: look at that without --apply and --if-plan, then send it"
        )
    return Planned(order, rows, plan, revision, forgotten, estimated_rate(settings, order.account))


def enqueue_push(
    settings: Settings, planned: Planned, *, run: str, claims: Claims | None = None
) -> int:
    """Take the plan into the outbox; the push's number. From here on it survives anything.
    InputError when too many rows are bad.

    One at a time for each account, and planned anew when the outbox changed meanwhile: two people
    who push the same file at the same moment send it once."""
    check_no_hold(outbox_of(settings.home))
    order = planned.order
    is_begun = sender_lock(settings.home, f"{order.account}.begins", wait_s=_ENQUEUE_WAIT_S)
    with in_use(settings.home), open_outbox(settings.home) as outbox, is_begun:
        forgotten = load_forgotten(archive_of(settings.home))
        if (outbox.revision, forgotten) != (planned.revision, planned.forgotten):
            planned = _make_plan(settings, order, planned.rows, outbox)
        if planned.refusal:
            raise InputError(f"nothing was sent: {planned.refusal}")
        plan = planned.plan
        rows = planned.rows
        if order.options.is_standing:
            plan = replace(
                plan, idle=(), row_count=plan.new_count + plan.changed_count + len(plan.bad)
            )
        numbers = {
            row for several in (plan.items, plan.bad) for entry in several for row in entry.rows
        }
        typed = [f"{column}={title}" for column, title in order.options.mapping.items()]
        return outbox.enqueue_plan(
            plan,
            run=run,
            options=asdict(order.options) | {"verify": order.verify, "map": typed},
            keep=lambda push_id: keep_rows(
                folder_of(settings.home, push_id) / "rows.parquet", rows, numbers
            ),
            corrects=_find_corrected(plan, rows),
            corrects_refused=order.kind.is_idempotent,
            claims=claims,
        )


def _find_corrected(plan: Plan, rows: Rows) -> list[tuple[str, str]]:
    """The rejected rows of earlier pushes that these rows replace; a request that is still to be
    retried is not corrected."""
    still_refused = {row for bad in plan.bad if bad.by_service for row in bad.rows}
    return [named for number, named in named_rows(rows) if number not in still_refused]


# ---- send and verify


@dataclass
class PushRun:
    """What one run does for an account, whichever push it is of and whichever run left it. It may
    be repeated, as Dagster does: the outbox knows what is left, `ran` what was done so far.

    Set `halt`, and nothing more is sent. How far it is can be watched (`home.progress`)."""

    settings: Settings
    outbox: Outbox
    ran: Ran
    halt: threading.Event = field(default_factory=threading.Event)
    client: Client = field(init=False)
    _phase: tuple[str, int, int, str] = ("sending", 0, 0, "")
    # why it is not known whose account it is
    _unrecognised: str | None = field(init=False, default=None)

    def progress(self) -> tuple[str, int, int, str]:
        return self._phase

    def requests_sent(self) -> int:
        return self.client.statistics.requests if hasattr(self, "client") else 0

    def send_and_read_back(self) -> bool:
        """Send and read back as the account's only sender; whether sending was stopped early.
        Nothing left to be done: no request at all."""
        home = self.settings.home
        account = self.ran.account
        is_stopped = False
        if self.outbox.has_left(account):
            check_no_hold(outbox_of(home))
            is_sender = sender_lock(home, account, wait_s=_SENDER_WAIT_S, on_wait=_say_who_sends)
            with in_use(home), is_sender, _open_client(self.settings, account) as self.client:
                self._recognise_account()
                self.send_open()
                is_stopped = self.ran.stopped is not None
                self.read_back()
            self.ran.requests += self.client.statistics.requests
            self.ran.waited_s += self.client.statistics.waited_s
        return is_stopped

    def _recognise_account(self) -> None:
        """Request whose account it is, ahead of everything else. Raises OtherBusiness."""
        try:
            self.client.fetch(operations.ME.bind())
        except OtherBusiness:
            raise
        except MarketingApiError as error:
            self._unrecognised = str(error)

    def send_open(self) -> None:
        pushes = {entry.push_id for entry in self.outbox.open_by_push(self.ran.account)}
        if pushes:
            sending = Sending(
                self.outbox,
                self.client,
                self.ran.account,
                stop=self.halt,
                on_progress=self._note_progress,
            )
            self.ran.stopped = self._unrecognised or sending.send_all()
            self.ran.earlier = frozenset(pushes).difference([self.ran.push_id])

    def _note_progress(self, done: int, total: int, unknown: int) -> None:
        self._phase = ("sending", done, total, f"{unknown:,} unknown" if unknown else "")

    def read_back(self) -> None:
        """Compare what the service shows with what was sent and not looked at yet, each push as it
        was ordered; drift stands in the outbox. Nothing, once stopped."""
        pushes = self.ran.earlier | self.outbox.not_read_back(self.ran.account)
        if not pushes or self.ran.stopped:
            return
        self._phase = ("reading back", 0, 0, "")
        labels = self._load_labels()
        stopped = self._unrecognised
        ways: defaultdict[str, set[int]] = defaultdict(set)
        for push in filter(None, map(self.outbox.find_push, pushes)):
            ways[str(push.options.get("verify", "sample"))].add(push.push_id)
        for how, several in ways.items():
            stopped = stopped or verify_pushes(
                self.outbox, self.client, several, how, labels=labels, stop=self.halt
            )
        if not stopped:
            self.outbox.note_read_back(pushes)
        self.ran.stopped, self.ran.earlier = stopped, pushes.difference([self.ran.push_id])

    def _load_labels(self) -> Labels:
        """List → field → label, since some services show values by label. None while somebody else
        has the warehouse: sending is over, and reading back goes by ids then."""
        try:
            return load_known(self.settings, self.ran.account).lists.fields
        except (InputError, WarehouseError):
            return {}


@contextmanager
def _open_client(settings: Settings, account: str) -> Iterator[Client]:
    """The account's client, under the account's limit, with every request in the archive. Opening
    it sends nothing; it sends nothing more once another business responds."""
    from home.accounts import choose_account, open_connections
    from home.identity import Recognition
    from marketing_api.client import Client  # and what it needs: a plan does without
    from marketing_api.rate_limit import RateLimiter

    def keep_record(exchange: Exchange) -> None:
        """What a push reads is as of the middle of its own changes: kept without its body, it is
        never taken for a sync's response."""
        archive.record_exchange(
            replace(exchange, body=b"") if exchange.call.operation.is_read else exchange
        )

    with open_connections(settings) as accounts:
        connection = choose_account(settings, accounts, account)
        accept = Recognition(settings, connection, notes=True)
        with (
            open_archive(settings.home) as archive,
            open_scratch(settings.home, "spool") as spool,
            Client(
                connection,
                RateLimiter.share_limit(connection),
                record=keep_record,
                spool=spool.open_folder(),
                accept=accept,
            ) as client,
        ):
            yield client


def _say_who_sends(holder: str) -> None:
    print(
        f"marketing-sync: waiting for {holder}, which is sending for this account",
        file=sys.stderr,
        flush=True,
    )


# ---- conclude


def conclude_push(settings: Settings, outbox: Outbox, ran: Ran) -> list[PushResult]:
    """What came of the run's own push, if it has one, and of each that it went on with (what it
    cost stands in the first), written down in rejected.csv, sync.runs, sync.requests and
    sync.writebacks, and posted to the alert address where it needs a person. While somebody else
    has the warehouse, the tables follow with the next push or sync."""
    pushes = filter(None, [ran.push_id, *sorted(ran.earlier)])
    results = [result_of(settings.home, outbox, push, stopped=ran.stopped) for push in pushes]
    if not results:
        return []
    results[0].requests_sent = ran.requests
    outbox.prune_rows(settings.kept.skipped)
    from write_back.writebacks_export import export_run  # what it needs, a plan does without

    for result in results:
        if settings.alert_url and needs_person(result):
            try_to_post(settings, alert_body(result, ran))
    follow = export_run(settings, sum(result.shortfall for result in results), ran)
    for result in results:
        result.writebacks_follow = follow
    return results


def finish_push(
    settings: Settings, outbox: Outbox, ran: Ran, watch: Watch = nullcontext
) -> list[PushResult]:
    """Send the run's push and whatever else is open of its account, read back, conclude, while it
    is watched. Nothing left: no request at all."""
    run = PushRun(settings, outbox, ran)
    with watch(run):
        run.send_and_read_back()
        return conclude_push(settings, outbox, ran)


#: What shows how far a run is, or stops it.
Watch = Callable[[PushRun], AbstractContextManager[object]]
