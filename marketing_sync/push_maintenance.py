"""Commands about pushes in the outbox: status, rejected rows, retry, cancel.

Not here: parsing (`commands.push`), sending a plan (`push_terminal`), words (`push_report`)."""

import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from home import exits, interrupts, output
from home.door import pushes_of
from home.folder import prepare_home
from home.identity import account_in_home
from home.options import PUSH_OPTIONS, typed_words
from home.output import print_json
from home.settings import Settings, SettingsError, account_of
from marketing_sync.push_terminal import print_results, run_interruptible, watch_run
from write_back import push_report as report
from write_back.kinds import NOT_IDEMPOTENT
from write_back.order import Ran
from write_back.outbox.outbox import Outbox, Push, open_outbox
from write_back.push_report import collect_result, group_reasons, print_lines
from write_back.push_service import find_push, finish_push
from write_back.refusals import is_permanent
from write_back.rejected_rows import RejectedRows, find_rejected, write_copy, write_csv

_SHOWN = 20


@dataclass(frozen=True)
class Chosen:
    """What a command is about: an account, and one of its pushes or all. `typed_account`: the
    account as it was typed."""

    settings: Settings
    outbox: Outbox
    account: str
    typed_account: str | None
    push: Push | None

    @property
    def push_id(self) -> int | None:
        return self.push.push_id if self.push else None


def run_maintenance(
    name: str, settings: Settings, *, push: int | None, account: str | None, **options: Any
) -> int:
    """Run one command of `marketing-sync push` about pushes in the outbox. Raises SettingsError."""
    prepare_home(settings.home, settings.lock_seconds)
    find_account = account_of if name == "retry" else account_in_home  # only a retry sends
    with open_outbox(settings.home) as outbox:
        found = None if push is None else find_push(outbox, account, push)
        owner = find_account(settings, found.account if found else account)
        return _COMMANDS[name](Chosen(settings, outbox, owner, account, found), **options)


def _retry_items(chosen: Chosen, *, permanent: bool, json: bool) -> int:
    def retry_within(stop: interrupts.Stop) -> int:
        is_left = (lambda message: False) if permanent else is_permanent
        retried = outbox.retry_items(
            account, chosen.push_id, not_idempotent=NOT_IDEMPOTENT, is_left=is_left
        )
        left = group_reasons(entry.why for entry in retried.left)
        if not json:
            print_lines(report.render_lines("retry", retried, left))
        results = finish_push(
            settings, outbox, Ran("push_retry", account), partial(watch_run, settings, stop)
        )
        return print_results(output.Push(None, results, left), is_json=json)

    settings = chosen.settings
    outbox = chosen.outbox
    account = chosen.account
    return run_interruptible(settings, account, retry_within)


def _print_status(chosen: Chosen, *, rejected: bool, out: Path | None, json: bool) -> int:
    """Print the last pushes, one push in detail, or rejected rows. The exit code is 0 whatever
    their outcome."""
    if rejected:
        return _write_rejected(chosen, out, is_json=json)
    if out:
        raise SettingsError("--out is for rejected rows: add --rejected")
    outbox = chosen.outbox
    if chosen.push:
        result = collect_result(chosen.settings.home, outbox, chosen.push.push_id)
        if json:
            print_json(output.Push(None, [result]))
        else:
            print_lines(report.result_lines(result))
        return exits.DONE
    latest = outbox.list_pushes(chosen.account, limit=_SHOWN)
    pushes = [report.push_line(outbox, push) for push in latest]
    open_count = outbox.open_count(chosen.account)
    if json:
        print_json(output.Pushes(pushes, open_count))
    else:
        print_lines(report.render_lines("status", pushes, open_count))
    return exits.DONE


def _write_rejected(chosen: Chosen, out: Path | None, *, is_json: bool) -> int:
    """The rejected rows of one push (default: the last), to be corrected. No existing file is
    replaced."""
    home = chosen.settings.home
    push = chosen.push or next(iter(chosen.outbox.list_pushes(chosen.account, limit=1)), None)
    rejected = find_rejected(home, chosen.outbox, push) if push else RejectedRows((), [])
    if is_json:
        print_json(report.rejected_document(rejected))
    elif not rejected.rows:
        number = f" in push {push.push_id}" if push else ""
        print_lines([f"no rejected rows are left{number}"], sys.stderr)
    elif out == Path("-") or (out is None and not sys.stdout.isatty()):
        write_csv(sys.stdout, rejected)
        print_lines(_pushed_again(rejected, Path("FILE"), chosen.typed_account), sys.stderr)
    else:
        path = out or pushes_of(home) / "rejected" / f"{rejected.kind}.csv"
        if path.is_dir():
            path /= f"{rejected.kind}.csv"
        try:
            path = write_copy(path, rejected)
        except OSError as error:
            raise SettingsError(
                f"{path} cannot be written ({error.strerror}): name another file with --out"
            ) from None
        again = _pushed_again(rejected, path, chosen.typed_account)
        print_lines([*report.render_lines("rejected", rejected), "", *again])
    return exits.DONE


def _pushed_again(rejected: RejectedRows, path: Path, account: str | None) -> list[str]:
    if not rejected.columns:
        return [
            f"{path} has only numbers and reasons, because the home has lost the rows: correct "
            "the original file"
        ]
    typed = typed_words(
        PUSH_OPTIONS[rejected.kind].options,
        {"from": path, "account": account, **rejected.options},
    )
    return [
        f"correct {path}, then push it:",
        f"  {shlex.join(['marketing-sync', 'push', rejected.kind, *typed])}",
    ]


def _cancel_items(chosen: Chosen, *, unknown: bool) -> int:
    """Cancel planned items, and unknown ones if requested: then no other process may be finding out
    about them."""
    outbox = chosen.outbox
    with outbox.hold_sender(chosen.account) if unknown else nullcontext():
        count = outbox.cancel_items(chosen.account, chosen.push_id, unknown=unknown)
    left = sum(
        push.open_count
        for push in outbox.open_by_push(chosen.account)
        if chosen.push_id in (None, push.push_id)
    )
    print_lines(report.render_lines("cancel", count, left))
    return exits.DONE


#: Each takes what was chosen, and its own options by name.
_COMMANDS: Mapping[str, Callable[..., int]] = {
    "status": _print_status,
    "retry": _retry_items,
    "cancel": _cancel_items,
}
