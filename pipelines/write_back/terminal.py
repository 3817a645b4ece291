"""A push on the command line: what is printed, what is asked, the exit code.

Not here: parsing (`commands.push`), the words of plan and result (`report`), the work (`push`, `applying`). What only sending needs
is imported when something is to be sent: a plan is told sooner.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import TypeVar

from pipelines import exits, interrupts
from pipelines.home import prepare_home
from pipelines.options import push_options, words
from pipelines.settings import Settings, SettingsError
from pipelines.write_back.accounts import account_of, rate_of
from pipelines.write_back.item import Kind
from pipelines.write_back.outbox.outbox import Outbox, outbox_path
from pipelines.write_back.push import Order, Planned, order_of, plan_push
from pipelines.write_back.reporting import listing
from pipelines.write_back.reporting.rejected import folder_of, write_rejected
from pipelines.write_back.reporting.report import open_lines, plan_lines, result_lines, retry_lines, say

T = TypeVar("T")


def run(arguments: SimpleNamespace, settings: Settings) -> int:
    """One command line of `marketing-sync push`."""
    prepare_home(settings.home)
    if arguments.action == "activations":
        from pipelines.write_back.activations import terminal as activations

        return interruptible(settings, None, lambda stop: activations.run(arguments, settings, stop))
    account = account_of(settings, arguments.account)
    if arguments.action == "status":
        return listing.print_status(settings, account, arguments.push)
    if arguments.action == "cancel":
        return listing.cancel(settings, account, arguments.push, unknown=arguments.unknown)
    if arguments.action == "retry":
        return interruptible(settings, account, lambda stop: _retry(settings, account, arguments.push, stop))
    order = order_of(settings, Kind(arguments.action), vars(arguments))
    return interruptible(settings, account, lambda stop: _push(arguments, settings, order, stop))


def interruptible(settings: Settings, account: str | None, work: Callable[[interrupts.Stop], int]) -> int:
    """Run `work`; when a person stops it, say what is open and how to go on."""
    try:
        return interrupts.stoppable(work)
    except KeyboardInterrupt:
        say(["", *open_lines(_open_count(settings, account))], sys.stderr)
        return exits.INTERRUPTED


def _open_count(settings: Settings, account: str | None) -> int:
    """Requests that are left, of all accounts when none is named."""
    if not outbox_path(settings.home).exists():
        return 0
    names = [account] if account else [account_of(settings, each.account) for each in settings.accounts] or [account_of(settings, None)]
    with Outbox(outbox_path(settings.home)) as outbox:
        return sum(len(outbox.open(name)) for name in names)


def _push(arguments: SimpleNamespace, settings: Settings, order: Order, stop: interrupts.Stop) -> int:
    planned = plan_push(settings, order)
    say(plan_lines(planned.plan, rate=rate_of(settings, order.account), reject_limit=order.reject_limit))
    if planned.is_refused or not arguments.apply:
        return _without_sending(arguments, settings, planned)
    if order.kind is Kind.DELETIONS and planned.plan.items and not arguments.yes and not _agreed(planned):
        say(["nothing was sent"])
        return exits.INCOMPLETE
    stop.check()
    from pipelines.write_back.applying import apply_plan

    result = apply_plan(settings, planned, stop)
    say(["", *result_lines(result)])
    return exits.INCOMPLETE if result.shortfall else exits.DONE


def _without_sending(arguments: SimpleNamespace, settings: Settings, planned: Planned) -> int:
    reasons = {bad.row: bad.reason for bad in planned.plan.bad}
    path = write_rejected(folder_of(settings.home, None) / "rejected.csv", planned.rows, reasons)
    say([f"rejected rows: {path}"] if path else [])
    if planned.is_refused:
        say(["", f"nothing was sent: {planned.refusal}"])
        return exits.INCOMPLETE
    if planned.plan.request_count:
        say(["", "nothing was sent; to send it:", f"  {command_line(arguments)}"])
    return exits.DONE


def _agreed(planned: Planned) -> bool:
    """Whether the person types the number of requests. SettingsError where nobody can be asked."""
    count = len({row for item in planned.plan.items for row in item.rows})
    if not sys.stdin.isatty() or str(planned.order.file) == "-":
        raise SettingsError("deletions have to be agreed to: run it on a terminal, or with --yes")
    try:
        return input(f"Deleting cannot be undone. Type {count} to delete the contacts of {count} rows: ").strip() == str(count)
    except EOFError:
        return False


def _retry(settings: Settings, account: str, push_id: int | None, stop: interrupts.Stop) -> int:
    from pipelines.write_back.applying import apply_open

    with Outbox(outbox_path(settings.home)) as outbox:
        listing.check(outbox, account, push_id)
        say(retry_lines(outbox.retry(account, push_id)))
        results = apply_open(settings, outbox, account, stop)
    for result in results:
        say(["", *result_lines(result)])
    return exits.INCOMPLETE if any(result.shortfall for result in results) else exits.DONE


def command_line(arguments: SimpleNamespace) -> str:
    """The same command with --apply, as it can be pasted."""
    chosen = vars(arguments)
    typed = ["marketing-sync", "push", arguments.action, *words(push_options(Kind(arguments.action)), chosen), "--apply"]
    return ("… | " if str(chosen["from"]) == "-" else "") + shlex.join(typed)
