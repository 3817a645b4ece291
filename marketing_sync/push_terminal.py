"""Commands that send rows: plans and audience syncs. What they print, what they ask, and their exit
code.

Not here: parsing (`commands.push`), commands about earlier pushes (`push_maintenance`), the words
of plan and result (`push_report`), the work (`push_service`)."""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from home import exits, interrupts, output
from home.failures import explain_error
from home.folder import prepare_home
from home.identity import check_kind
from home.options import ACTIVATIONS, PUSH_OPTIONS, REVERT, Option, typed_words
from home.output import print_json
from home.progress import Progress
from home.settings import Settings
from marketing_api.errors import MarketingApiError
from upkeep.backup import back_up_push
from warehouse.errors import WarehouseError
from write_back import push_report as report
from write_back.audience_syncs import (
    FILE,
    AudienceOptions,
    Difference,
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


def _quote_word(word: str) -> str:
    """A word for a shell, in double quotes if it has single ones, as most queries have."""
    is_plain = not set(word) & set('"$`\\!')
    return f'"{word}"' if "'" in word and is_plain else shlex.quote(word)


@dataclass(frozen=True)
class PushCommand:
    """A command that sends if it `applies`. `typed`: the values of its other `options`, by name."""

    name: str
    options: Sequence[Option]
    typed: Mapping[str, object]
    applies: bool
    is_json: bool = False
    is_sandbox: bool = False

    def make_lines(self, title: str, **changed: object) -> list[str]:
        """The command as it was typed, with --apply, ready to be pasted."""
        options = typed_words(self.options, {**self.typed, **changed})
        words = ["marketing-sync", "push", self.name, *options, "--apply"]
        # a terminal needs no option for the sandbox
        if self.is_sandbox and not sys.stderr.isatty():
            words.append("--sandbox")
        piped = "… | " if str(self.typed.get("from")) == "-" else ""
        return ["", title, f"  {piped}{' '.join(map(_quote_word, words))}"]


def push_order(name: str, settings: Settings, *, apply: bool, json: bool, **typed: Any) -> int:
    """`marketing-sync push` of a kind, or `revert`."""
    check_kind(settings)
    prepare_home(settings.home, settings.lock_seconds)
    if name == "revert":
        order = revert_order(settings, typed)
        options = REVERT
    else:
        order = order_of(settings, KINDS[name], typed)
        options = PUSH_OPTIONS[name].options
    command = PushCommand(name, options, typed, apply, json, settings.is_sandbox_chosen)
    return run_interruptible(
        settings, order.account, partial(_push_order, order, command, settings)
    )


def push_activations(settings: Settings, *, apply: bool, **typed: Any) -> int:
    """`marketing-sync push activations`."""
    check_kind(settings)
    prepare_home(settings.home, settings.lock_seconds)
    is_sandbox = settings.is_sandbox_chosen
    command = PushCommand("activations", ACTIVATIONS, typed, apply, is_sandbox=is_sandbox)
    options = AudienceOptions.from_values(typed)
    return run_interruptible(settings, None, partial(_audience_syncs, options, command, settings))


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
    order: Order, command: PushCommand, settings: Settings, stop: interrupts.Stop
) -> int:
    planned = plan_push(settings, order)
    document = output.Push(report.plan_document(planned) if command.is_json else None, [])
    if not command.is_json:
        print_lines(report.plan_lines(planned))
    if planned.refusal or not command.applies:
        return _without_sending(command, settings, planned, document)
    stop.raise_if_stopped()
    ran = Ran(f"push_{command.name}", order.account)
    ran.push_id = enqueue_push(settings, planned, run=ran.run)
    with open_outbox(settings.home) as outbox:
        document.results = finish_push(settings, outbox, ran, partial(watch_run, settings, stop))
    code = print_results(document, is_json=command.is_json)
    first = order.first
    # fewer rows than that means that there are no others
    if first and len(planned.rows) == first and not command.is_json:
        print_lines(command.make_lines("to send the other rows:", first=None))
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
    command: PushCommand, settings: Settings, planned: Planned, document: output.Push
) -> int:
    path = write_planned(settings.home, planned.plan, planned.rows)
    if command.is_json:
        print_json(document)
    else:
        print_lines([f"rejected rows: {path}"] if path else [])
        if planned.refusal:
            print_lines(["", f"nothing was sent: {planned.refusal}"])
        elif planned.plan.request_count:
            print_lines(command.make_lines(_NOT_SENT))
    return exits.INCOMPLETE if planned.refusal else exits.DONE


_NOT_SENT = "nothing was sent; to send it:"


def _audience_syncs(
    options: AudienceOptions, command: PushCommand, settings: Settings, stop: interrupts.Stop
) -> int:
    """Each sync runs alone: an error in one does not stop the others, but the exit code shows
    it."""
    codes = list[int]()
    left = 0
    for audience in read_audiences(settings, options):
        stop.raise_if_stopped()
        try:
            found = find_difference(settings, audience, options)
            code = _push_audience(found, settings, stop, applies=command.applies)
            left += 0 if command.applies else found.planned.plan.request_count
        except (InputError, MarketingApiError, WarehouseError) as error:
            text, code = explain_error(error)
            print_lines(
                [f"marketing-sync: error: activation {audience.sync.name}: {text}"], sys.stderr
            )
        codes.append(code)
    if not codes:
        print_lines(
            [f"{FILE} enables no audience sync; docs/sending-back.md shows how to declare one"]
        )
    elif left:
        print_lines(command.make_lines(_NOT_SENT))
    return codes[0] if len(set(codes)) == 1 else exits.INCOMPLETE if codes else exits.DONE


def _push_audience(
    found: Difference, settings: Settings, stop: interrupts.Stop, *, applies: bool
) -> int:
    """Print the difference, and push it if the command applies; returns the exit code."""
    print_lines([*report.render_lines("difference", found), *report.plan_lines(found.planned)])
    if found.planned.refusal:
        raise InputError(f"nothing was sent: {found.planned.refusal}")
    results = []
    if applies:
        results = push_difference(settings, found, partial(watch_run, settings, stop))
    return print_results(output.Push(None, results), is_json=False)
