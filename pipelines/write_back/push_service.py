"""The one way of a push, for the command line, Dagster's steps, the inbox and activations alike: what differs is input and display.

    planned = plan_push(settings, order)                                # `push`: no request, and no client has to be imported
    push_id = begin(settings, planned, run=…)                           # `push`: durable from here on
    result = finish_push(settings, outbox, push_id, ran, watch)         # sends, reads back, concludes

Belongs here: the order of these, and what a run takes up that earlier ones left. Not here: each of them (`send`, `verify`,
`conclusion`), who watches (`terminal`, `jobs`).
"""

from __future__ import annotations

import functools
import sys
import threading
from collections import defaultdict
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import NamedTuple, Self

from pipelines.settings import Settings
from pipelines.write_back.input.rows import InputError
from pipelines.write_back.item import State
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.push import known_of
from pipelines.write_back.reporting.conclusion import conclude
from pipelines.write_back.reporting.result import NOTHING, Ran, Result, Spent
from pipelines.write_back.sending.channel import Channel, open_channel
from pipelines.write_back.sending.forms import LISTS
from pipelines.write_back.sending.send import Progress, send
from pipelines.write_back.verifying.verify import Labels, verify
from warehouse.errors import WarehouseError

#: Who sends for the account meanwhile may have hours of work, and is waited for.
_PATIENCE_S = 24 * 3600.0


class _HowFar(NamedTuple):
    """In requests."""

    asked: int
    planned: int
    current: str
    phase: str = "sending"


@dataclass
class Watch:
    """How far the work is, for whoever shows it; and whether it is to stop."""

    halt: threading.Event = field(default_factory=threading.Event)
    _state: _HowFar = field(default=_HowFar(0, 0, ""))
    _channel: Channel | None = None

    def open(self, channel: Channel) -> None:
        self._channel = channel

    def sent(self, now: Progress) -> None:
        self._state = _HowFar(now.done, now.total, f"{now.unknown:,} unknown" if now.unknown else "")

    def reading_back(self) -> None:
        self._state = _HowFar(0, 0, "", "reading back")

    def progress(self) -> _HowFar:
        return self._state

    def requests_sent(self) -> int:
        return self._channel.spent.requests if self._channel else 0


def finish_push(settings: Settings, outbox: Outbox, push_id: int, ran: Ran, watch: Watch) -> Result:
    """Send the push and whatever else is open of its account, read back, conclude. Nothing left: no request at all."""
    if (push := outbox.push(push_id)) is None:
        raise LookupError(push_id)
    with PushRun(settings, outbox, push.account, ran, watch, push_id) as run:
        run.send_open()
        run.read_back()
    return conclude(settings, outbox, push_id, run.ran)


def go_on(settings: Settings, outbox: Outbox, account: str, ran: Ran, watch: Watch) -> list[Result]:
    """The same without a push of its own; a result for each push that something was left of. What it cost stands in the last."""
    with PushRun(settings, outbox, account, ran, watch) as run:
        run.send_open()
        run.read_back()
    touched = sorted({*run.ran.earlier.values(), *run.ran.read_late})
    own = replace(run.ran, earlier={}, read_late=frozenset())
    return [conclude(settings, outbox, each, own if each == touched[-1] else replace(own, spent=None)) for each in touched]


class PushRun:
    """What one run does for an account: first everything that is open is sent, then everything that was sent is read back, whichever
    push it is of and whichever run left it.

    A context: from the first step that has something to do to its end it is the account's only sender. Each step may be repeated,
    or be the only one, as Dagster's are: the outbox knows what is left, `ran` what was done so far.
    """

    def __init__(self, settings: Settings, outbox: Outbox, account: str, ran: Ran, watch: Watch, push_id: int | None = None) -> None:
        self._settings, self._outbox, self._account, self._watch, self._push_id = settings, outbox, account, watch, push_id
        self._spent_before = ran.spent or NOTHING
        self._channel: Channel | None = None
        self._stack = ExitStack()
        self.ran = ran

    @property
    def spent(self) -> Spent:
        """By this object's steps."""
        return self._channel.spent if self._channel else NOTHING

    def send_open(self) -> None:
        """Send everything that is open."""
        if not self._outbox.open(self._account):
            return
        channel = self._connect()
        open_ = self._outbox.open(self._account)  # as nobody else changes it any more
        earlier = {entry.item_id: entry.push_id for entry in open_ if entry.push_id != self._push_id}
        self._note(self._send(channel), replace(self.ran, earlier=earlier))

    def read_back(self) -> None:
        """Compare what the service shows with what was sent and not looked at yet; drift stands in the outbox. Nothing, once stopped.

        What arrived in some of its lists only is sent once more, list by list.
        """
        if self.ran.stopped or not (self.ran.earlier or self._outbox.not_read_back(self._account)):
            return
        channel = self._connect()
        unread = self._outbox.not_read_back(self._account)
        ran = replace(self.ran, read_late=frozenset(unread - {self._push_id}))
        self._note(self._look(channel, unread.union(ran.earlier.values())), ran)

    def _look(self, channel: Channel, pushes: Collection[int]) -> str | None:
        """Why not all of it could be read, in words. Each push is read as it was ordered."""
        self._watch.reading_back()
        look = functools.partial(verify, self._outbox, channel.client, labels=self._labels(), stop=self._watch.halt)
        for how, several in self._by_verification(pushes).items():
            if stopped := look(several, how).stopped:
                return stopped
        if self._outbox.again(self._in_part(pushes)) and (stopped := self._send(channel) or look(pushes, "none").stopped):
            return stopped
        self._outbox.note_read_back(pushes)
        return None

    def _send(self, channel: Channel) -> str | None:
        """Why not everything was sent, in words."""
        return send(self._outbox, channel.client, self._account, stop=self._watch.halt, on_progress=self._watch.sent).stopped

    def _by_verification(self, pushes: Collection[int]) -> dict[str, set[int]]:
        ways: defaultdict[str, set[int]] = defaultdict(set)
        for push in filter(None, map(self._outbox.push, pushes)):
            ways[str(push.options.get("verify", "sample"))].add(push.push_id)
        return ways

    def _in_part(self, pushes: Collection[int]) -> list[int]:
        entries = (entry for push_id in pushes for entry in self._outbox.items(push_id, [State.APPLIED]))
        return [entry.item_id for entry in entries if LISTS in (entry.drift or {})]

    def _labels(self) -> Labels:
        """List → field → label, since some services show values by label. None while somebody else has the warehouse: sending is over,
        and reading back goes by ids then."""
        try:
            return known_of(self._settings, self._account).lists.fields
        except (InputError, WarehouseError):
            return {}

    def _connect(self) -> Channel:
        """The way to the service, for the account's only sender."""
        if self._channel is None:
            self._stack.enter_context(self._outbox.sending(self._account, wait_s=_PATIENCE_S, on_wait=_tell))
            self._channel = self._stack.enter_context(open_channel(self._settings, self._account))
            self._watch.open(self._channel)
        return self._channel

    def _note(self, stopped: str | None, ran: Ran) -> None:
        self.ran = replace(ran, spent=self._spent_before.plus(self.spent), stopped=stopped)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, trace)


def _tell(holder: str) -> None:
    print(f"marketing-sync: waiting for {holder}, which is sending for this account", file=sys.stderr, flush=True)
