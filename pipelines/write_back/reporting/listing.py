"""`push status` and `push cancel`: what the outbox holds, and dropping what is not sent. No request is sent here."""

from __future__ import annotations

import datetime as dt
from contextlib import nullcontext

from rich.console import Console
from rich.table import Table as Grid

from pipelines import exits
from pipelines.settings import Settings, SettingsError
from pipelines.write_back.item import OPEN, State
from pipelines.write_back.outbox.entry import Push
from pipelines.write_back.outbox.outbox import Counts, Outbox, outbox_path
from pipelines.write_back.reporting.rejected import write_rejections
from pipelines.write_back.reporting.report import result_lines
from pipelines.write_back.reporting.result import result_of

_SHOWN = 20
_WIDTH = 110  # a narrow terminal wraps lines, which is better than cutting numbers


def print_status(settings: Settings, account: str, push_id: int | None) -> int:
    """The last pushes, or one in detail; 0 whatever became of them: that is what it tells."""
    with Outbox(outbox_path(settings.home)) as outbox:
        check(outbox, account, push_id)
        if push_id is not None:
            path = write_rejections(settings.home, outbox, push_id)
            print("\n".join(result_lines(result_of(outbox, push_id, spent=None, rejected_csv=path))))
            return exits.DONE
        pushes = outbox.pushes(account, limit=_SHOWN)
        if not pushes:
            print("nothing has been pushed yet")
            return exits.DONE
        console = Console(highlight=False)
        console.width = max(console.width, _WIDTH)
        console.print(_grid([(push, outbox.counts(push.push_id)) for push in pushes]))
        print(f"{len(outbox.open(account)):,} requests open" if outbox.open(account) else "nothing is open")
    return exits.DONE


def cancel(settings: Settings, account: str, push_id: int | None, *, unknown: bool) -> int:
    """Drop what is planned, and what is `unknown` if wanted."""
    with Outbox(outbox_path(settings.home)) as outbox:
        check(outbox, account, push_id)
        with outbox.sending(account) if unknown else nullcontext():  # whoever sends is still finding out about them
            count = outbox.cancel(account, push_id, unknown=unknown)
        left = [entry for entry in outbox.open(account) if push_id in (None, entry.push_id)]
    print(f"{count:,} requests dropped")
    if left:
        print(f"{len(left):,} were sent and their outcome is not known yet: `marketing-sync push retry` finds out")
    return exits.DONE


def check(outbox: Outbox, account: str, push_id: int | None) -> None:
    """SettingsError when the account has no push of that number."""
    push = outbox.push(push_id) if push_id is not None else None
    if push_id is not None and (push is None or push.account != account):
        raise SettingsError(f"account {account} has no push {push_id}; `marketing-sync push status` lists them")


def _grid(pushes: list[tuple[Push, Counts]]) -> Grid:
    grid = Grid(box=None, header_style="dim", pad_edge=False)
    for column in ("push", "begun (UTC)", "what", "from", "rows", "sent", "rejected", "open", "drifted"):
        grid.add_column(column, justify="left" if column in ("begun (UTC)", "what", "from") else "right", no_wrap=True)
    for push, counts in pushes:
        begun = dt.datetime.fromtimestamp(push.begun_at, dt.UTC).strftime("%Y-%m-%d %H:%M")
        done = sum(counts.rows.get(state, 0) for state in (State.APPLIED, State.VERIFIED))
        open_ = sum(counts.rows.get(state, 0) for state in OPEN)
        cells = (push.row_count, done, counts.rows.get(State.REJECTED, 0), open_, counts.drifted)
        grid.add_row(str(push.push_id), begun, str(push.kind), push.source.name, *(f"{cell:,}" if cell else "·" for cell in cells))
    return grid
