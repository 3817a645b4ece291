"""Commands that send rows: plans and audience syncs. What they print, what they ask, and their exit
code.

Not here: parsing (`commands.push`), commands about earlier pushes (`push_maintenance`), the words
of plan and result (`push_report`), the work (`push_service`)."""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

from home import exits, interrupts, output
from home.failures import explain_error
from home.folder import prepare_home
from home.identity import check_kind
from home.options import ACTIVATIONS, PUSH_OPTIONS, REVERT, Option, typed_words
from home.output import print_json
from home.progress import Progress
from home.settings import Settings, account_of
from marketing_api.errors import MarketingApiError
from upkeep.backup import back_up_push
from warehouse.errors import WarehouseError
from write_back import push_report as report
from write_back.audience_syncs import (
    FILE,
    Audience,
    find_difference,
    push_difference,
    read_audiences,
)
from write_back.input.rows import InputError
from write_back.kinds import KINDS
from write_back.order import Order, Planned, Ran
from write_back.outbox.outbox import open_outbox
from write_back.push_report import print_lines
from write_back.push_service import (
    PushRun,
    enqueue_push,
    finish_push,
    order_of,
    plan_push,
    revert_order,
)
from write_back.rejected_rows import write_planned


def run_push(name: str, arguments: SimpleNamespace, settings: Settings) -> int:
    """`marketing-sync push` of a kind, or of the audience syncs (`activations`)."""
    check_kind(settings)
    prepare_home(settings.home, settings.lock_seconds)
    if name == "activations":
        return run_interruptible(settings, None, partial(_audience_syncs, arguments, settings))
    account = account_of(settings, arguments.account)
    if name == "revert":
        order = revert_order(settings, account, vars(arguments))
        options = REVERT
    else:
        order = order_of(settings, KINDS[name], vars(arguments))
        options = PUSH_OPTIONS[name].options
    return run_interruptible(
        settings, account, partial(_push_order, order, name, options, arguments, settings)
    )


def run_interruptible(
    settings: Settings, account: str | None, work: Callable[[interrupts.Stop], int]
) -> int:
    """Run `work`. If a person stops it, print what is open (for all accounts if none is named) and
    how to resume."""
    try:
        return interrupts.run_stoppable(work)
    except KeyboardInterrupt:
        with open_outbox(settings.home) as outbox:
            print_lines(["", *report.render_lines("open", outbox.open_count(account))], sys.stderr)
        return exits.INTERRUPTED


@contextmanager
def watch_run(settings: Settings, stop: interrupts.Stop, run: PushRun) -> Iterator[None]:
    """Show progress, then back up. If a person stops the run, it halts and KeyboardInterrupt is
    raised."""
    stop.call_on_stop(run.halt.set)
    with Progress(run):
        yield
        back_up_push(settings)
    stop.raise_if_stopped()


# ---- commands that send


def _push_order(
    order: Order,
    name: str,
    options: Sequence[Option],
    arguments: SimpleNamespace,
    settings: Settings,
    stop: interrupts.Stop,
) -> int:
    planned = plan_push(settings, order)
    again = partial(_command_lines, action=name, options=options)
    document = output.Push(report.plan_document(planned) if arguments.json else None, [])
    if not arguments.json:
        print_lines(report.plan_lines(planned))
    if planned.refusal or not arguments.apply:
        command = again(_NOT_SENT, typed=vars(arguments))
        return _without_sending(arguments, settings, planned, document, command)
    stop.raise_if_stopped()
    ran = Ran(f"push_{name}", order.account)
    ran.push_id = enqueue_push(settings, planned, run=ran.run)
    with open_outbox(settings.home) as outbox:
        document.results = finish_push(settings, outbox, ran, partial(watch_run, settings, stop))
    code = print_results(document, is_json=arguments.json)
    first = order.first
    # fewer rows than that means that there are no others
    if first and len(planned.rows) == first and not arguments.json:
        typed = vars(arguments) | {"first": None, "apply": False}
        print_lines(again("to send the other rows:", typed=typed))
    return code


def print_results(document: output.Push, *, is_json: bool) -> int:
    """Print the results of pushes; returns the exit code."""
    if is_json:
        print_json(document)
    else:
        for result in document.results:
            print_lines(["", *report.result_lines(result)])
    is_short = document.left or any(result.shortfall for result in document.results)
    return exits.INCOMPLETE if is_short else exits.DONE


def _without_sending(
    arguments: SimpleNamespace,
    settings: Settings,
    planned: Planned,
    document: output.Push,
    command: Sequence[str],
) -> int:
    path = write_planned(settings.home, planned.plan, planned.rows)
    if arguments.json:
        print_json(document)
    else:
        print_lines([f"rejected rows: {path}"] if path else [])
        if planned.refusal:
            print_lines(["", f"nothing was sent: {planned.refusal}"])
        elif planned.plan.request_count:
            print_lines(command)
    return exits.INCOMPLETE if planned.refusal else exits.DONE


_NOT_SENT = "nothing was sent; to send it:"


def _command_lines(
    title: str, action: str, options: Sequence[Option], typed: Mapping[str, object]
) -> list[str]:
    """The command as it was typed, with --apply, ready to be pasted."""
    command = ["marketing-sync", "push", action, *typed_words(options, typed), "--apply"]
    piped = "… | " if str(typed.get("from")) == "-" else ""
    return ["", title, f"  {piped}{shlex.join(command)}"]


def _audience_syncs(arguments: SimpleNamespace, settings: Settings, stop: interrupts.Stop) -> int:
    """Each sync runs alone: an error in one does not stop the others, but the exit code shows
    it."""
    codes = list[int]()
    left = 0
    for audience in read_audiences(
        settings, arguments.names, accept_shrink=arguments.accept_shrink
    ):
        stop.raise_if_stopped()
        try:
            code, unsent = _audience_sync(arguments, settings, stop, audience)
            left += unsent
        except (InputError, MarketingApiError, WarehouseError) as error:
            text, code = explain_error(error)
            print_lines(
                [f"marketing-sync: error: activation {audience.sync.name}: {text}"], sys.stderr
            )
        codes.append(code)
    if not codes:
        print_lines([f"no activation is enabled; {FILE} names them, see docs/sending-back.md"])
    elif left:
        print_lines(_command_lines(_NOT_SENT, "activations", ACTIVATIONS, vars(arguments)))
    return codes[0] if len(set(codes)) == 1 else exits.INCOMPLETE if codes else exits.DONE


def _audience_sync(
    arguments: SimpleNamespace, settings: Settings, stop: interrupts.Stop, audience: Audience
) -> tuple[int, int]:
    """The exit code, and the number of requests left to send."""
    chosen = {name: getattr(arguments, name) for name in ("resync", "reject_limit", "if_plan")}
    found = find_difference(settings, audience, **chosen)
    print_lines([*report.render_lines("difference", found), *report.plan_lines(found.planned)])
    if found.planned.refusal:
        raise InputError(f"nothing was sent: {found.planned.refusal}")
    results = []
    if arguments.apply:
        results = push_difference(settings, found, partial(watch_run, settings, stop))
    left = 0 if arguments.apply else found.planned.plan.request_count
    return print_results(output.Push(None, results), is_json=False), left
