"""A push under way: send what is open, read back, conclude; watched, and stopped when somebody wants it.

Belongs here: the order of these, and who may do them. Not here: each of them (`send`, `verify`, `conclusion`), who watches
(`terminal`, `jobs`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pipelines.settings import Settings
from pipelines.write_back.input.grid import InputError
from pipelines.write_back.item import State
from pipelines.write_back.outbox.outbox import Outbox
from pipelines.write_back.push import known_of
from pipelines.write_back.reporting.conclusion import conclude
from pipelines.write_back.reporting.result import Ran, Result
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


@dataclass
class Watch:
    """How far the work is, for whoever shows it; and whether it is to stop."""

    halt: threading.Event = field(default_factory=threading.Event)
    _state: _HowFar = field(default=_HowFar(0, 0, "getting ready"))
    _channel: Channel | None = None

    def open(self, channel: Channel) -> None:
        self._channel = channel

    def sent(self, now: Progress) -> None:
        unknown = f", {now.unknown:,} unknown" if now.unknown else ""
        self._state = _HowFar(now.done, now.total, f"sending{unknown}")

    def reading_back(self) -> None:
        self._state = self._state._replace(current="reading back")

    def progress(self) -> _HowFar:
        return self._state

    def requests_sent(self) -> int:
        return self._channel.spent.requests if self._channel else 0


def finish_push(settings: Settings, outbox: Outbox, push_id: int, ran: Ran, verification: str, watch: Watch) -> Result:
    """Send the push and whatever else is open of its account, read back, conclude. Nothing open: no request at all."""
    account = account_of_push(outbox, push_id)
    unread = outbox.not_read_back(account) - {push_id}
    ran = replace(ran, earlier=earlier_items(outbox, account, push_id), read_late=frozenset(unread))
    if outbox.open(account) or unread:
        ran = deliver(settings, outbox, account, {push_id, *ran.earlier.values(), *unread}, ran, verification, watch)
    return conclude(settings, outbox, push_id, ran)


def go_on(settings: Settings, outbox: Outbox, account: str, ran: Ran, watch: Watch) -> list[Result]:
    """Send whatever is open of the account; a result for each push that had something open. What it cost stands in the last."""
    touched = sorted({entry.push_id for entry in outbox.open(account)})
    if touched:
        ran = deliver(settings, outbox, account, touched, ran, "sample", watch)
    return [conclude(settings, outbox, each, ran if each == touched[-1] else replace(ran, spent=None)) for each in touched]


def deliver(settings: Settings, outbox: Outbox, account: str, pushes: Collection[int], ran: Ran, verification: str, watch: Watch) -> Ran:
    """Send what is open of the account and read these pushes back, as its only sender."""
    with delivering(settings, outbox, account, watch) as channel:
        stopped = send_open(outbox, channel, account, watch)
        if stopped is None:
            stopped = read_back(settings, outbox, channel, account, pushes, verification, watch)
        return replace(ran, spent=channel.spent, stopped=stopped)


@contextmanager
def delivering(settings: Settings, outbox: Outbox, account: str, watch: Watch) -> Iterator[Channel]:
    """The way to the service, for the account's only sender."""
    with outbox.sending(account, wait_s=_PATIENCE_S, on_wait=_tell), open_channel(settings, account) as channel:
        watch.open(channel)
        yield channel


def send_open(outbox: Outbox, channel: Channel, account: str, watch: Watch) -> str | None:
    """Send everything that is open; why not all of it was, in words."""
    return send(outbox, channel.client, account, stop=watch.halt, on_progress=watch.sent).stopped


def read_back(
    settings: Settings, outbox: Outbox, channel: Channel, account: str, pushes: Collection[int], verification: str, watch: Watch
) -> str | None:
    """Compare what the service shows with what was sent, drift stands in the outbox; why not all of it could be, in words.

    What arrived in some of its lists only is sent once more, list by list.
    """
    labels = _labels(settings, account)

    def look(how: str) -> str | None:
        watch.reading_back()
        return verify(outbox, channel.client, pushes, how, labels=labels, stop=watch.halt).stopped

    stopped = look(verification)
    if stopped is None and outbox.again(_in_part(outbox, pushes)):
        stopped = send_open(outbox, channel, account, watch) or look("none")
    if stopped is None:
        outbox.note_read_back(pushes)
    return stopped


def _in_part(outbox: Outbox, pushes: Collection[int]) -> list[int]:
    entries = (entry for push_id in pushes for entry in outbox.items(push_id, [State.APPLIED]))
    return [entry.item_id for entry in entries if LISTS in (entry.drift or {})]


def _labels(settings: Settings, account: str) -> Labels:
    """List → field → label, since some services show values by label. None while somebody else has the warehouse: sending is over,
    and reading back goes by ids then."""
    try:
        return known_of(settings, account).lists.fields
    except (InputError, WarehouseError):
        return {}


def account_of_push(outbox: Outbox, push_id: int) -> str:
    """LookupError when there is no such push."""
    if (push := outbox.push(push_id)) is None:
        raise LookupError(push_id)
    return push.account


def earlier_items(outbox: Outbox, account: str, push_id: int) -> dict[int, int]:
    """Item → push of what earlier pushes have left open: this one goes on with it."""
    return {entry.item_id: entry.push_id for entry in outbox.open(account) if entry.push_id != push_id}


def _tell(holder: str) -> None:
    print(f"marketing-sync: waiting for {holder}, which is sending for this account", file=sys.stderr, flush=True)
