"""The one way of a push: order → plan → enqueue → send → verify → conclude, for the command line,
Dagster's steps and audience syncs.

    planned = plan_push(settings, order)                         # no request, nothing is written
    push_id = enqueue_push(settings, planned, run=…)             # durable from here on
    results = finish_push(settings, outbox, Ran(…, push_id))     # sends, verifies, concludes

Their callers differ in input and display only. Belongs here: the order of the steps, and resuming
what earlier runs left open. Not here: the steps themselves (`planning`, `outbox`, `sending`,
`verification`), displaying progress (`push_terminal`, `push_jobs`), the backup afterwards
(`upkeep`). The client takes long to import, so a plan does not import it."""

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
from write_back.item import Options, Plan
from write_back.kinds import KINDS, Kind, make_plan, verify_pushes
from write_back.order import Order, Planned, Ran
from write_back.outbox.outbox import Claims, Outbox, Push, open_outbox
from write_back.outbox.store import check_no_hold, sender_lock
from write_back.planning import set_reported_apart, without_forgotten
from write_back.push_report import alert_body, collect_result, needs_person
from write_back.rejected_rows import INFORMATION, folder_of, keep_rows, named_rows
from write_back.reverting import find_revert
from write_back.sending import Sending
from write_back.verification import Labels

if TYPE_CHECKING:
    from marketing_api.client import Client
    from marketing_api.exchange import Exchange

#: How long to wait for another process: enqueueing takes seconds, sending may take hours.
_ENQUEUE_WAIT_S = 600.0
_SENDER_WAIT_S = 24 * 3600.0


# ---- order and plan


def order_of(settings: Settings, kind: Kind, typed: Mapping[str, Any]) -> Order:
    """The order from the values of `home.options.PUSH_OPTIONS`. Raises SettingsError."""
    if (typed["from"] is None) == (typed["sql"] is None):
        raise SettingsError(
            "say what to push: either --from or --sql (in the launchpad: from or sql)"
        )
    mapping = dict(typed["map"])
    if len(mapping) < len(typed["map"]):
        raise SettingsError("--map names one of our columns twice (in the launchpad: map)")
    if typed["sql"] is not None and (typed["encoding"] or typed["sheet"]):
        raise SettingsError("--encoding and --sheet are for files: leave them out with --sql")
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


def revert_order(settings: Settings, typed: Mapping[str, Any]) -> Order:
    """The order that reverts another push. Raises SettingsError when there is no such push."""
    with open_outbox(settings.home) as outbox:
        push = find_push(outbox, typed["account"], typed["push"])
    account = account_of(settings, push.account)
    options = Options(resubscribe=typed["resubscribe"], if_plan=tuple(typed["if_plan"]))
    return Order(
        KINDS[push.kind], account, options=options, reverts=push.push_id, with_tags=typed["tags"]
    )


def find_push(outbox: Outbox, account: str | None, push_id: int) -> Push:
    """The push of this number. Raises SettingsError when there is none, or it is of another
    account than the given one."""
    push = outbox.find_push(push_id)
    if push is None or account not in (None, push.account):
        owner = f"account {account}" if account else "the home"
        raise SettingsError(
            f"{owner} has no push {push_id}; `marketing-sync push status` lists them"
        )
    return push


def plan_push(settings: Settings, order: Order, rows: Rows | None = None) -> Planned:
    """Plan an order. Sends no request and writes nothing. Raises InputError, SettingsError,
    WarehouseError, OutboxError."""
    check_kind(settings)
    with in_use(settings.home), open_outbox(settings.home) as outbox:
        if rows is None:
            rows = _read_rows(settings, order)
        first_places = range(len(rows))[: order.first]
        return _make_plan(settings, order, rows.take_rows(first_places), outbox)


def _read_rows(settings: Settings, order: Order) -> Rows:
    if order.reverts is not None:
        return Rows({}, [])  # each plan makes the rows of a revert
    if order.file is None:
        zone = load_known(settings, order.account).zone.key
        return read_query(settings, order.query or "", order.account, zone)
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
    push = None if order.reverts is None else outbox.find_push(order.reverts)
    revert = None
    if push is not None:
        revert = find_revert(known, outbox, push, with_tags=order.with_tags)
        rows = revert.make_rows(push.push_id)
    rows = without_forgotten(rows, order.account, forgotten, order.options.mapping)
    information = [name for name in INFORMATION if name in rows.columns]
    options = replace(order.options, ignore=(*order.options.ignore, *information))
    plan = make_plan(order.kind, rows, known, outbox, options)
    if revert is not None:
        plan = revert.guard_plan(plan)
    if options.is_standing:
        rejected = outbox.rejected_by_check(order.account, rows.source.name)
        plan = set_reported_apart(plan, rows, rejected)
    plan = replace(plan, earlier=tuple(outbox.open_by_push(order.account)))
    if options.if_plan and plan.request_count and plan.plan_id not in options.if_plan:
        raise InputError(
            f"nothing was sent: plan {' or '.join(options.if_plan)} has changed to plan "
            f"{plan.plan_id}: run the command without --apply and --if-plan to see it, then send it"
        )
    rate = estimated_rate(settings, order.account)
    return Planned(order, rows, plan, revision, forgotten, rate)


def enqueue_push(
    settings: Settings, planned: Planned, *, run: str, claims: Claims | None = None
) -> int:
    """Store the plan in the outbox; returns the number of the push. From here on it survives a
    kill. Raises InputError when too many rows are invalid.

    One process at a time for each account, and planned again if the outbox has changed since: two
    people who push the same file at the same moment send it once."""
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
            row_count = plan.new_count + plan.changed_count + len(plan.bad)
            plan = replace(plan, idle=(), row_count=row_count)
        numbers = {row for item in plan.items for row in item.rows}
        numbers.update(row for reason in plan.bad for row in reason.rows)
        typed = [f"{column}={title}" for column, title in order.options.mapping.items()]

        def store_rows(push_id: int) -> None:
            keep_rows(folder_of(settings.home, push_id) / "rows.parquet", rows, numbers, plan.kind)

        return outbox.enqueue_plan(
            plan,
            run=run,
            options=asdict(order.options) | {"verify": order.verify, "map": typed},
            keep=store_rows,
            corrects=_find_corrected(plan, rows),
            corrects_refused=order.kind.is_idempotent,
            claims=claims,
        )


def _find_corrected(plan: Plan, rows: Rows) -> list[tuple[str, str]]:
    """The rejected rows of earlier pushes that these rows replace, without requests that wait for
    `push retry`."""
    still_refused = {row for bad in plan.bad if bad.by_service for row in bad.rows}
    return [named for number, named in named_rows(rows) if number not in still_refused]


# ---- send and verify


@dataclass
class PushRun:
    """Sends and reads back what is open of an account: the run's own push and what earlier runs
    left. It may be repeated, as Dagster does: the outbox has what is open, `ran` what is done.

    After `halt` is set, nothing more is sent. `home.progress` displays `progress`."""

    settings: Settings
    outbox: Outbox
    ran: Ran
    halt: threading.Event = field(default_factory=threading.Event)
    client: Client = field(init=False)
    _phase: tuple[str, int, int, str] = ("sending", 0, 0, "")
    # why the account's owner could not be requested
    _unrecognised: str | None = field(init=False, default=None)

    def progress(self) -> tuple[str, int, int, str]:
        return self._phase

    def requests_sent(self) -> int:
        return self.client.statistics.requests if hasattr(self, "client") else 0

    def send_and_read_back(self) -> bool:
        """Send and read back as the account's only sender; returns whether sending stopped early.
        If nothing is open, it sends no request."""
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
        """Request the account's owner before everything else. Raises OtherBusiness."""
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
        """Compare the service with what was sent and not read back yet, with each push's own
        `--verify`. The outbox stores mismatches. Does nothing after a stop."""
        pushes = self.ran.earlier | self.outbox.not_read_back(self.ran.account)
        if not pushes or self.ran.stopped:
            return
        self._phase = ("reading back", 0, 0, "")
        labels = self._load_labels()
        stopped = self._unrecognised
        ways: defaultdict[str, set[int]] = defaultdict(set)
        for push in filter(None, map(self.outbox.find_push, pushes)):
            ways[push.verify].add(push.push_id)
        for how, push_ids in ways.items():
            stopped = stopped or verify_pushes(
                self.outbox, self.client, push_ids, how, labels=labels, stop=self.halt
            )
        if not stopped:
            self.outbox.note_read_back(pushes)
        self.ran.stopped = stopped
        self.ran.earlier = pushes.difference([self.ran.push_id])

    def _load_labels(self) -> Labels:
        """List → field → label, since some services show values by label. Empty while another
        process has the warehouse; values are then found by id only."""
        try:
            return load_known(self.settings, self.ran.account).lists.fields
        except (InputError, WarehouseError):
            return {}


@contextmanager
def _open_client(settings: Settings, account: str) -> Iterator[Client]:
    """The account's client, with its rate limit, and with every request in the archive. Opening it
    sends nothing. It stops sending when another business responds."""
    from home.accounts import choose_account, open_connections
    from home.identity import Recognition
    from marketing_api.client import Client  # a plan does not need it
    from marketing_api.rate_limit import RateLimiter

    def keep_record(exchange: Exchange) -> None:
        """A push reads in the middle of its own changes. Without its body, such a response can't be
        mistaken for a sync's."""
        if exchange.call.operation.is_read:
            exchange = replace(exchange, body=b"")
        archive.record_exchange(exchange)

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
    """The results of the run's own push, if it has one, and of each earlier push that it resumed.
    The first result has the number of requests.

    Writes rejected.csv, sync.runs, sync.requests and sync.writebacks, and posts an alert if a
    person is needed. While another process has the warehouse, the tables follow with the next push
    or sync."""
    push_ids = filter(None, [ran.push_id, *sorted(ran.earlier)])
    results = [
        collect_result(settings.home, outbox, push_id, stopped=ran.stopped) for push_id in push_ids
    ]
    if not results:
        return []
    results[0].requests_sent = ran.requests
    outbox.prune_rows(settings.kept.skipped)
    from write_back.writebacks_export import export_run  # a plan does not need it

    for result in results:
        if settings.alert_url and needs_person(result):
            try_to_post(settings, alert_body(result, ran))
    shortfall = sum(result.shortfall for result in results)
    follow = export_run(settings, shortfall, ran)
    for result in results:
        result.writebacks_follow = follow
    return results


def finish_push(
    settings: Settings, outbox: Outbox, ran: Ran, watch: Watch = nullcontext
) -> list[PushResult]:
    """Send the run's push and what else is open of its account, read back and conclude; `watch`
    gets the run. If nothing is open, it sends no request."""
    run = PushRun(settings, outbox, ran)
    with watch(run):
        run.send_and_read_back()
        return conclude_push(settings, outbox, ran)


#: Displays the progress of a run, or stops it.
Watch = Callable[[PushRun], AbstractContextManager[object]]
