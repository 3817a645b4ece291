"""From an input to a plan: what a push would do, without doing any of it. Nothing is asked of the service here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from pipelines.write_back.input.rows import InputError, Rows
from pipelines.write_back.item import Kind, Past, Plan
from pipelines.write_back.planning.kinds import activities, contacts, deletions, moves, tags
from pipelines.write_back.planning.known import Known
from pipelines.write_back.planning.options import Options

__all__ = ["History", "InputError", "Options", "make_plan"]


class History(Protocol):
    """What was done before, as the outbox knows it."""

    def last(self, account: str, kind: Kind, subjects: Iterable[str]) -> Mapping[str, Past]:
        """The last thing done, or to be done, about each subject; what was cancelled does not count."""


_KINDS: Mapping[Kind, Callable[..., Plan]] = {
    Kind.CONTACTS: contacts.plan,
    Kind.TAGS: tags.plan,
    Kind.ACTIVITIES: activities.plan,
    Kind.MOVES: moves.plan,
    Kind.DELETIONS: deletions.plan,
}


def make_plan(kind: Kind, rows: Rows, known: Known, history: History, options: Options) -> Plan:
    """What a push of these rows would do. Raises InputError when the input as a whole cannot be used."""
    if options.max_rows is not None and len(rows) > options.max_rows:
        raise InputError(f"{rows.source.name} has {len(rows):,} rows, more than the {options.max_rows:,} that are allowed; nothing is sent")

    def last(subjects: Collection[str], other: Kind | None = None) -> Mapping[str, Past]:
        return history.last(known.account, other or kind, subjects)

    return _KINDS[kind](rows, known, last, options)
