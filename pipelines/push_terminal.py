"""Pushes on the command line: what is printed, what a person is asked, the exit code.

Not here: parsing (`commands.push`), the words of plan and result (`push_report`), the work (`push_service`).
"""

import datetime as dt
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from home import exits, interrupts, output
from home.failures import explain
from home.folder import prepare_home
from home.options import ACTIVATIONS, Option, words
from home.output import emit
from home.progress import Progress
from home.settings import Settings, SettingsError
from marketing_api.errors import MarketingApiError
from upkeep.backups import back_up_push
from warehouse.errors import WarehouseError
from write_back import push_report as report
from write_back.audience_syncs import FILE, chosen, push_turnover, read_audience_syncs, turnover
from write_back.input.rows import InputError
from write_back.item import DONE, OPEN, State
from write_back.kinds import KINDS, NOT_IDEMPOTENT, Kind
from write_back.order import Planned, account_of, order_of
from write_back.outbox.outbox import Outbox, Push, open_outbox
from write_back.push_report import say
from write_back.push_service import PushRun, enqueue, finish_push, plan_push
from write_back.refusals import is_permanent
from write_back.rejected_rows import RejectedRows, rejected_rows, write_copy, write_csv, write_planned
from write_back.result import Ran, grouped, result_of

_SHOWN = 20


def run(name: str, arguments: SimpleNamespace, settings: Settings) -> int:
    """One command line of `marketing-sync push`."""
    prepare_home(settings.home, settings.lock_seconds)
    if name == "activations":
        return _interruptible(settings, None, partial(_audience_syncs, arguments, settings))
    account = account_of(settings, arguments.account)
    if name in KINDS:
        return _interruptible(settings, account, partial(_push, KINDS[name], arguments, settings))
    with open_outbox(settings.home) as outbox:
        push = outbox.push(arguments.push) if arguments.push is not None else None
        if arguments.push is not None and (push is None or push.account != account):
            raise SettingsError(
                f"account {account} has no push {arguments.push}; `marketing-sync push status` lists them"
            )
        return _AFTERWARDS[name](arguments, settings, outbox, account)


def _interruptible(settings: Settings, account: str | None, work: Callable[[interrupts.Stop], int]) -> int:
    """Run `work`; when a person stops it, say what is open (of all accounts when none is named) and how to go
    on."""
    try:
        return interrupts.stoppable(work)
    except KeyboardInterrupt:
        with open_outbox(settings.home) as outbox:
            say(["", *report.lines("open", len(outbox.open(account)))], sys.stderr)
        return exits.INTERRUPTED


@contextmanager
def _watched(settings: Settings, stop: interrupts.Stop, run: PushRun) -> Iterator[None]:
    """Progress is shown, the backup follows, and the run halts when a person stops it: KeyboardInterrupt
    then."""
    stop.then(run.halt.set)
    with Progress(run):
        yield
        back_up_push(settings)
    stop.check()


# ---- what sends


def _push(kind: Kind, arguments: SimpleNamespace, settings: Settings, stop: interrupts.Stop) -> int:
    planned = plan_push(settings, order_of(settings, kind, vars(arguments)))
    document = output.Push(report.plan_document(planned) if arguments.json else None, [])
    if not arguments.json:
        say(report.plan_lines(planned))
    if planned.refusal or not arguments.apply:
        return _without_sending(arguments, settings, planned, document)
    if not _is_agreed(planned, arguments):
        say(["nothing was sent"])
        return exits.INCOMPLETE
    stop.check()
    ran = Ran(f"push_{kind}", planned.order.account)
    ran.push_id = enqueue(settings, planned, run=ran.run)
    with open_outbox(settings.home) as outbox:
        document.results = finish_push(settings, outbox, ran, partial(_watched, settings, stop))
    return _shown(document, is_json=arguments.json)


def _shown(document: output.Push, *, is_json: bool) -> int:
    """Print what became of pushes; returns the exit code."""
    if is_json:
        emit(document)
    else:
        for result in document.results:
            say(["", *report.result_lines(result)])
    is_short = document.left or any(result.shortfall for result in document.results)
    return exits.INCOMPLETE if is_short else exits.DONE


def _without_sending(
    arguments: SimpleNamespace, settings: Settings, planned: Planned, document: output.Push
) -> int:
    path = write_planned(settings.home, planned.plan, planned.rows)
    if arguments.json:
        emit(document)
    else:
        say([f"rejected rows: {path}"] if path else [])
        if planned.refusal:
            say(["", f"nothing was sent: {planned.refusal}"])
        elif planned.plan.request_count:
            kind = planned.order.kind
            say(_to_send(kind, kind.all_options, vars(arguments)))
    return exits.INCOMPLETE if planned.refusal else exits.DONE


def _to_send(action: str, options: Sequence[Option], typed: Mapping[str, object]) -> list[str]:
    """With the same command with --apply, as it can be pasted."""
    command = ["marketing-sync", "push", action, *words(options, typed), "--apply"]
    piped = "… | " if str(typed.get("from")) == "-" else ""
    return ["", "nothing was sent; to send it:", f"  {piped}{shlex.join(command)}"]


def _is_agreed(planned: Planned, arguments: SimpleNamespace) -> bool:
    """Whether the person types the number of rows, where the kind has to be agreed to. SettingsError where
    nobody can be asked."""
    agreement = planned.order.kind.agreement
    if not agreement or not planned.plan.items or arguments.yes:
        return True
    count = planned.plan.new_count + planned.plan.changed_count
    if arguments.json or not sys.stdin.isatty() or str(planned.order.file) == "-":
        raise SettingsError(
            f"{planned.order.kind} have to be agreed to: run it on a terminal without --json, or with --yes"
        )
    try:
        return input(agreement.format(count=count)).strip() == str(count)
    except EOFError:
        return False


def _audience_syncs(arguments: SimpleNamespace, settings: Settings, stop: interrupts.Stop) -> int:
    """Each for itself: what is wrong with one does not hold up the others."""
    codes = [exits.DONE]
    for sync in chosen(read_audience_syncs(settings.folder), arguments.names):
        try:
            found = turnover(settings, sync, accept_shrink=arguments.accept_shrink)
            say(report.lines("turnover", found))
            if found.planned is not None:
                say(report.plan_lines(found.planned))
            results = []
            if arguments.apply:
                stop.check()
                results = push_turnover(settings, found, partial(_watched, settings, stop))
            codes.append(_shown(output.Push(None, results), is_json=False))
        except (InputError, MarketingApiError, WarehouseError) as problem:
            text, code = explain(problem)
            say([f"marketing-sync: {text}"], sys.stderr)
            codes.append(code)
    if len(codes) == 1:
        say([f"no activation is enabled; {FILE} names them, see docs/sending-back.md"])
    elif not arguments.apply:
        say(_to_send("activations", ACTIVATIONS, vars(arguments)))
    return max(codes)


# ---- looking after pushes


def _retry(arguments: SimpleNamespace, settings: Settings, outbox: Outbox, account: str) -> int:
    def work(stop: interrupts.Stop) -> int:
        is_left = (lambda message: False) if arguments.permanent else is_permanent
        retried = outbox.retry(account, arguments.push, not_idempotent=NOT_IDEMPOTENT, is_left=is_left)
        left = grouped(entry.why for entry in retried.left)
        if not arguments.json:
            say(report.lines("retry", retried, left))
        results = finish_push(settings, outbox, Ran("push_retry", account), partial(_watched, settings, stop))
        return _shown(output.Push(None, results, left), is_json=arguments.json)

    return _interruptible(settings, account, work)


def _status(arguments: SimpleNamespace, settings: Settings, outbox: Outbox, account: str) -> int:
    """The last pushes, or one in detail; 0 whatever became of them: that is what it displays."""
    if arguments.push is not None:
        result = result_of(settings.home, outbox, arguments.push)
        if arguments.json:
            emit(output.Push(None, [result]))
        else:
            say(report.result_lines(result))
        return exits.DONE
    pushes = [_push_line(outbox, push) for push in outbox.pushes(account, limit=_SHOWN)]
    open_count = len(outbox.open(account))
    if arguments.json:
        emit(output.Pushes(pushes, open_count))
    else:
        say(report.lines("status", pushes, open_count))
    return exits.DONE


def _push_line(outbox: Outbox, push: Push) -> output.PushLine:
    counts = outbox.counts(push.push_id)
    sent, rejected, open_ = (
        sum(counts.rows.get(state, 0) for state in states) for states in (DONE, [State.REJECTED], OPEN)
    )
    return output.PushLine(
        push.push_id,
        dt.datetime.fromtimestamp(push.begun_at, dt.UTC),
        push.kind,
        push.source,
        push.row_count,
        sent,
        rejected,
        open_,
        counts.drifted,
    )


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


def _cancel(arguments: SimpleNamespace, _: Settings, outbox: Outbox, account: str) -> int:
    """Drop what is planned, and what is unknown if wanted: whoever sends is still finding out about that."""
    with outbox.sending(account) if arguments.unknown else nullcontext():
        count = outbox.cancel(account, arguments.push, unknown=arguments.unknown)
    left = sum(arguments.push in (None, entry.push_id) for entry in outbox.open(account))
    say(report.lines("cancel", count, left))
    return exits.DONE


_AFTERWARDS: Mapping[str, Callable[[SimpleNamespace, Settings, Outbox, str], int]] = {
    "status": _status,
    "rejected": _rejected,
    "retry": _retry,
    "cancel": _cancel,
}
