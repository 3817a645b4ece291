"""A push on the command line: what is printed, what a person is asked, the exit code.

Not here: parsing (`commands.push`), the words of plan and result (`push_report`), the work (`push_service`).
"""

import datetime as dt
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

from rich.console import Console

from home import exits, interrupts, output
from home.failures import explain
from home.folder import prepare_home
from home.options import ACTIVATIONS, Option, words
from home.output import emit
from home.progress import Progress
from home.settings import Settings, SettingsError
from marketing_api.errors import MarketingApiError
from warehouse.errors import WarehouseError
from write_back import push_report as report
from write_back.audience_syncs import (
    FILE,
    AudienceSync,
    chosen,
    push_turnover,
    read_audience_syncs,
    turnover,
)
from write_back.input.rows import InputError
from write_back.item import OPEN, State
from write_back.kinds import KINDS, NOT_IDEMPOTENT
from write_back.order import Order, Planned, account_of, order_of
from write_back.outbox.outbox import Counts, Outbox, Push, outbox_path
from write_back.push_report import say
from write_back.push_service import Watch, enqueue, finish_push, plan_push
from write_back.refusals import is_permanent
from write_back.rejected_rows import (
    RejectedRows,
    rejected_rows,
    write_copy,
    write_csv,
    write_planned,
    write_rejections,
)
from write_back.result import Result, grouped, new_run, reason_of, result_of

_SHOWN = 20

T = TypeVar("T")


def run(arguments: SimpleNamespace, settings: Settings) -> int:
    """One command line of `marketing-sync push`."""
    prepare_home(settings.home, settings.lock_seconds)
    if arguments.action == "activations":
        return interruptible(settings, None, lambda stop: _audience_syncs(arguments, settings, stop))
    account = account_of(settings, arguments.account)
    if arguments.action in KINDS:
        order = order_of(settings, KINDS[arguments.action], vars(arguments))
        return interruptible(settings, account, lambda stop: _push(arguments, settings, order, stop))
    with Outbox(outbox_path(settings.home)) as outbox:
        push = outbox.push(arguments.push) if arguments.push is not None else None
        if arguments.push is not None and (push is None or push.account != account):
            raise SettingsError(
                f"account {account} has no push {arguments.push}; `marketing-sync push status` lists them"
            )
        if arguments.action == "status":
            return _print_status(settings, outbox, account, arguments.push, is_json=arguments.json)
        if arguments.action == "rejected":
            return _rejected(arguments, settings, outbox, account)
        if arguments.action == "cancel":
            return _cancel(outbox, account, arguments.push, unknown=arguments.unknown)
        return interruptible(
            settings, account, lambda stop: _retry(settings, outbox, account, arguments, stop)
        )


def interruptible(settings: Settings, account: str | None, work: Callable[[interrupts.Stop], int]) -> int:
    """Run `work`; when a person stops it, say what is open (of all accounts when none is named) and how to go
    on."""
    try:
        return interrupts.stoppable(work)
    except KeyboardInterrupt:
        with Outbox(outbox_path(settings.home)) as outbox:
            say(["", *report.lines("open", len(outbox.open(account)))], sys.stderr)
        return exits.INTERRUPTED


def _push(arguments: SimpleNamespace, settings: Settings, order: Order, stop: interrupts.Stop) -> int:
    planned = plan_push(settings, order)
    document = output.Push(report.plan_document(planned) if arguments.json else None, [])
    if not arguments.json:
        say(report.plan_lines(planned))
    if planned.refusal or not arguments.apply:
        return _without_sending(arguments, settings, planned, document)
    if (
        order.kind.agreement
        and planned.plan.items
        and not arguments.yes
        and not _agreed(planned, order.kind.agreement, arguments)
    ):
        say(["nothing was sent"])
        return exits.INCOMPLETE
    stop.check()
    ran = new_run(f"push_{order.kind}", order.account)
    ran = replace(ran, push_id=enqueue(settings, planned, run=ran.run))
    with Outbox(outbox_path(settings.home)) as outbox:
        results = _watched(stop, lambda watch: finish_push(settings, outbox, ran, watch))
    return _shown(results, document, is_json=arguments.json)


def _shown(results: Sequence[Result], document: output.Push, *, is_json: bool) -> int:
    """Print what became of pushes; returns the exit code."""
    if is_json:
        document.results = [report.result_document(result) for result in results]
        emit(document)
    else:
        for result in results:
            say(["", *report.result_lines(result)])
    return exits.INCOMPLETE if any(result.shortfall for result in results) else exits.DONE


def _without_sending(
    arguments: SimpleNamespace, settings: Settings, planned: Planned, document: output.Push
) -> int:
    path = write_planned(settings.home, planned.plan, planned.rows)
    code = exits.INCOMPLETE if planned.refusal else exits.DONE
    if arguments.json:
        emit(document)
        return code
    say([f"rejected rows: {path}"] if path else [])
    if planned.refusal:
        say(["", f"nothing was sent: {planned.refusal}"])
    elif planned.plan.request_count:
        say(_to_send(arguments, KINDS[arguments.action].all_options))
    return code


def _agreed(planned: Planned, agreement: str, arguments: SimpleNamespace) -> bool:
    """Whether the person types the number of rows. SettingsError where nobody can be asked."""
    count = len({row for item in planned.plan.items for row in item.rows})
    if arguments.json or not sys.stdin.isatty() or str(planned.order.file) == "-":
        raise SettingsError(
            f"{planned.order.kind} have to be agreed to: run it on a terminal without --json, or with --yes"
        )
    try:
        return input(agreement.format(count=count)).strip() == str(count)
    except EOFError:
        return False


def _retry(
    settings: Settings, outbox: Outbox, account: str, arguments: SimpleNamespace, stop: interrupts.Stop
) -> int:
    is_left = (lambda message: False) if arguments.permanent else is_permanent
    retried = outbox.retry(account, arguments.push, not_idempotent=NOT_IDEMPOTENT, is_left=is_left)
    reasons = list(map(reason_of, retried.left))
    if not arguments.json:
        say(report.lines("retry", retried, reasons))
    results = _watched(
        stop, lambda watch: finish_push(settings, outbox, new_run("push_retry", account), watch)
    )
    left = list(map(report.reason_document, grouped(reasons)))
    code = _shown(results, output.Push(None, [], left), is_json=arguments.json)
    return exits.INCOMPLETE if left else code


def _to_send(arguments: SimpleNamespace, options: Sequence[Option]) -> list[str]:
    """With the same command with --apply, as it can be pasted."""
    typed = ["marketing-sync", "push", arguments.action, *words(options, vars(arguments)), "--apply"]
    piped = "… | " if str(getattr(arguments, "from", "")) == "-" else ""
    return ["", "nothing was sent; to send it:", f"  {piped}{shlex.join(typed)}"]


def _watched(stop: interrupts.Stop, work: Callable[[Watch], T]) -> T:
    """Run `work` with its progress shown, and halt it when a person stops it: KeyboardInterrupt then."""
    watch = Watch()
    stop.then(watch.halt.set)
    with Progress(watch, Console(file=sys.stderr)):
        result = work(watch)
    stop.check()
    return result


# ---- looking after pushes


def _print_status(
    settings: Settings, outbox: Outbox, account: str, push_id: int | None, *, is_json: bool
) -> int:
    """The last pushes, or one in detail; 0 whatever became of them: that is what it displays."""
    if push_id is not None:
        result = result_of(
            outbox, push_id, requests_sent=None, rejected_csv=write_rejections(settings.home, outbox, push_id)
        )
        if is_json:
            emit(output.Push(None, [report.result_document(result)]))
        else:
            say(report.result_lines(result))
        return exits.DONE
    pushes = [_push_line(push, outbox.counts(push.push_id)) for push in outbox.pushes(account, limit=_SHOWN)]
    open_count = len(outbox.open(account))
    if is_json:
        emit(output.Pushes(pushes, open_count))
    else:
        say(report.lines("status", pushes, open_count))
    return exits.DONE


def _rejected(arguments: SimpleNamespace, settings: Settings, outbox: Outbox, account: str) -> int:
    """Write rejected rows to be corrected, over no file that is there; 0 whatever there is, like `push
    status`."""
    several = rejected_rows(settings.home, outbox, account, arguments.push)
    is_piped = arguments.out == Path("-") or (arguments.out is None and not sys.stdout.isatty())
    why = "they are of several kinds, or of pushes with different columns or options"
    if arguments.json:
        emit(report.rejected_document(several))
    elif not several:
        say(["no rejected rows are left"], sys.stderr)
    elif is_piped and len(several) > 1:
        raise SettingsError(
            f"one CSV cannot hold the rejected rows, since {why}: name one push, or write files "
            "with --out FILE"
        )
    elif is_piped:
        write_csv(sys.stdout, several[0])
        say(_pushed_again(arguments, several[0], Path("FILE")), sys.stderr)
    else:
        say([f"{len(several)} files, since {why}"] if len(several) > 1 else [])
        for each in several:
            path = arguments.out or settings.home / "pushes" / "rejected" / f"{each.kind}.csv"
            try:
                path = write_copy(path, each)
            except OSError as problem:
                raise SettingsError(
                    f"{path} cannot be written ({problem.strerror}): name another file with --out"
                ) from None
            say([*report.lines("rejected", each), "", *_pushed_again(arguments, each, path)])
    return exits.DONE


def _pushed_again(arguments: SimpleNamespace, each: RejectedRows, path: Path) -> list[str]:
    if not each.columns:
        return [
            f"{path} has numbers and reasons alone, since the home has lost the rows: correct them where "
            "they came from"
        ]
    typed = words(KINDS[each.kind].all_options, {"from": path, "account": arguments.account, **each.options})
    return [
        f"{path}, corrected, can be pushed as it is:",
        f"  {shlex.join(['marketing-sync', 'push', each.kind, *typed])}",
    ]


def _cancel(outbox: Outbox, account: str, push_id: int | None, *, unknown: bool) -> int:
    """Drop what is planned, and what is `unknown` if wanted."""
    with (
        outbox.sending(account) if unknown else nullcontext()
    ):  # whoever sends is still finding out about them
        count = outbox.cancel(account, push_id, unknown=unknown)
    say(
        report.lines("cancel", count, sum(push_id in (None, entry.push_id) for entry in outbox.open(account)))
    )
    return exits.DONE


def _push_line(push: Push, counts: Counts) -> output.PushLine:
    sent = sum(counts.rows.get(state, 0) for state in (State.APPLIED, State.VERIFIED))
    open_ = sum(counts.rows.get(state, 0) for state in OPEN)
    begun = dt.datetime.fromtimestamp(push.begun_at, dt.UTC)
    cells = (push.row_count, sent, counts.rows.get(State.REJECTED, 0), open_, counts.drifted)
    return output.PushLine(push.push_id, begun, str(push.kind), push.source.name, *cells)


# ---- audience syncs


def _audience_syncs(arguments: SimpleNamespace, settings: Settings, stop: interrupts.Stop) -> int:
    """Each for itself: what is wrong with one does not hold up the others."""
    codes = [exits.DONE]
    for sync in chosen(read_audience_syncs(settings.folder), arguments.names):
        try:
            codes.append(_audience_sync(arguments, settings, sync, stop))
        except (InputError, MarketingApiError, WarehouseError) as problem:
            text, code = explain(problem)
            say([f"marketing-sync: {text}"], sys.stderr)
            codes.append(code)
    if len(codes) == 1:
        say([f"no activation is enabled; {FILE} names them, see docs/sending-back.md"])
    elif not arguments.apply:
        say(_to_send(arguments, ACTIVATIONS))
    return max(codes)


def _audience_sync(
    arguments: SimpleNamespace, settings: Settings, sync: AudienceSync, stop: interrupts.Stop
) -> int:
    found = turnover(settings, sync, accept_shrink=arguments.accept_shrink)
    say(report.lines("turnover", found))
    if found.planned is not None:
        say(report.plan_lines(found.planned))
    if not arguments.apply:
        return exits.DONE
    stop.check()
    results = _watched(stop, lambda watch: push_turnover(settings, found, watch))
    return _shown(results, output.Push(None, []), is_json=False)
