"""Commands about pushes in the outbox: status, rejected rows, retry, cancel.

Not here: parsing (`commands.push`), sending a plan (`push_terminal`), words (`push_report`)."""

import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from home import exits, interrupts, output
from home.door import pushes_of
from home.folder import prepare_home
from home.options import PUSH_OPTIONS, typed_words
from home.output import print_json
from home.settings import Settings, SettingsError, account_of
from marketing_sync.push_terminal import print_results, run_interruptible, watch_run
from write_back import push_report as report
from write_back.kinds import NOT_IDEMPOTENT
from write_back.order import Ran
from write_back.outbox.outbox import Outbox, open_outbox
from write_back.push_report import group_reasons, print_lines, result_of
from write_back.push_service import finish_push
from write_back.refusals import is_permanent
from write_back.rejected_rows import RejectedRows, find_rejected, write_copy, write_csv

_SHOWN = 20


def run_maintenance(name: str, arguments: SimpleNamespace, settings: Settings) -> int:
    """Run one command of `marketing-sync push` about pushes in the outbox. Raises SettingsError."""
    prepare_home(settings.home, settings.lock_seconds)
    account = account_of(settings, arguments.account)
    with open_outbox(settings.home) as outbox:
        push = outbox.find_push(arguments.push) if arguments.push is not None else None
        if arguments.push is not None and (push is None or push.account != account):
            raise SettingsError(
                f"account {account} has no push {arguments.push}; `marketing-sync push status` "
                "lists them"
            )
        return _COMMANDS[name](arguments, settings, outbox, account)


def _retry_items(
    arguments: SimpleNamespace, settings: Settings, outbox: Outbox, account: str
) -> int:
    def retry_within(stop: interrupts.Stop) -> int:
        is_left = (lambda message: False) if arguments.permanent else is_permanent
        retried = outbox.retry_items(
            account, arguments.push, not_idempotent=NOT_IDEMPOTENT, is_left=is_left
        )
        left = group_reasons(entry.why for entry in retried.left)
        if not arguments.json:
            print_lines(report.render_lines("retry", retried, left))
        results = finish_push(
            settings, outbox, Ran("push_retry", account), partial(watch_run, settings, stop)
        )
        return print_results(output.Push(None, results, left), is_json=arguments.json)

    return run_interruptible(settings, account, retry_within)


def _print_status(
    arguments: SimpleNamespace, settings: Settings, outbox: Outbox, account: str
) -> int:
    """Print the last pushes, one push in detail, or rejected rows. The exit code is 0 whatever
    their outcome."""
    if arguments.rejected:
        return _write_rejected(arguments, settings, outbox, account)
    if arguments.out:
        raise SettingsError("--out is for rejected rows: add --rejected")
    if arguments.push is not None:
        result = result_of(settings.home, outbox, arguments.push)
        if arguments.json:
            print_json(output.Push(None, [result]))
        else:
            print_lines(report.result_lines(result))
        return exits.DONE
    pushes = [report.push_line(outbox, push) for push in outbox.list_pushes(account, limit=_SHOWN)]
    open_count = outbox.open_count(account)
    if arguments.json:
        print_json(output.Pushes(pushes, open_count))
    else:
        print_lines(report.render_lines("status", pushes, open_count))
    return exits.DONE


def _write_rejected(
    arguments: SimpleNamespace, settings: Settings, outbox: Outbox, account: str
) -> int:
    """The rejected rows of one push (default: the last), to be corrected. No existing file is
    replaced."""
    latest = next(iter(outbox.list_pushes(account, limit=1)), None)
    push = latest if arguments.push is None else outbox.find_push(arguments.push)
    rejected = RejectedRows((), []) if push is None else find_rejected(settings.home, outbox, push)
    if arguments.json:
        print_json(report.rejected_document(rejected))
    elif not rejected.rows:
        print_lines(["no rejected rows are left"], sys.stderr)
    elif arguments.out == Path("-") or (arguments.out is None and not sys.stdout.isatty()):
        write_csv(sys.stdout, rejected)
        print_lines(_pushed_again(arguments, rejected, Path("FILE")), sys.stderr)
    else:
        path = arguments.out or pushes_of(settings.home) / "rejected" / f"{rejected.kind}.csv"
        try:
            path = write_copy(path, rejected)
        except OSError as error:
            raise SettingsError(
                f"{path} cannot be written ({error.strerror}): name another file with --out"
            ) from None
        again = _pushed_again(arguments, rejected, path)
        print_lines([*report.render_lines("rejected", rejected), "", *again])
    return exits.DONE


def _pushed_again(arguments: SimpleNamespace, each: RejectedRows, path: Path) -> list[str]:
    if not each.columns:
        return [
            f"{path} has only numbers and reasons, because the home has lost the rows: correct "
            "the original file"
        ]
    typed = typed_words(
        PUSH_OPTIONS[each.kind].options,
        {"from": path, "account": arguments.account, **each.options},
    )
    return [
        f"correct {path}, then push it:",
        f"  {shlex.join(['marketing-sync', 'push', each.kind, *typed])}",
    ]


def _cancel_items(arguments: SimpleNamespace, _: Settings, outbox: Outbox, account: str) -> int:
    """Cancel planned items, and unknown ones if requested: then no other process may be finding out
    about them."""
    with outbox.hold_sender(account) if arguments.unknown else nullcontext():
        count = outbox.cancel_items(account, arguments.push, unknown=arguments.unknown)
    left = sum(
        each.open_count
        for each in outbox.open_by_push(account)
        if arguments.push in (None, each.push_id)
    )
    print_lines(report.render_lines("cancel", count, left))
    return exits.DONE


_COMMANDS: Mapping[str, Callable[[SimpleNamespace, Settings, Outbox, str], int]] = {
    "status": _print_status,
    "retry": _retry_items,
    "cancel": _cancel_items,
}
