"""What earlier pushes have left open, as a plan tells it: it goes first, whether or not the input still has it.

Not here: going on with it (`push_service`), its wording (`report`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipelines.write_back.item import Earlier, Kind, Past
from pipelines.write_back.outbox.entry import Entry
from pipelines.write_back.outbox.outbox import Outbox


class Asked:
    """An outbox's history that notes which subjects a plan asks for: those of its input are among them."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._subjects: dict[Kind, set[str]] = {}

    def last(self, account: str, kind: Kind, subjects: Iterable[str]) -> Mapping[str, Past]:
        wanted = list(subjects)
        self._subjects.setdefault(kind, set()).update(wanted)
        return self._outbox.last(account, kind, wanted)

    def earlier(self, account: str, kind: Kind) -> tuple[Earlier, ...]:
        """By push, in the order in which they are sent. `kind`: the input's."""
        entries: dict[int, list[Entry]] = {}
        for entry in self._outbox.open(account):
            entries.setdefault(entry.push_id, []).append(entry)
        return tuple(self._of_push(push_id, several, kind) for push_id, several in entries.items())

    def _of_push(self, push_id: int, entries: list[Entry], kind: Kind) -> Earlier:
        touched = self._outbox.subjects(entry.item_id for entry in entries)
        asked = self._subjects.get(kind, set()) if entries[0].kind is kind else set()
        gone = sum(asked.isdisjoint(touched.get(entry.item_id, ())) for entry in entries)
        look_ups = len({entry.email for entry in entries if entry.needs_look_up})
        return Earlier(push_id, entries[0].source, entries[0].kind, len(entries), gone, look_ups)
