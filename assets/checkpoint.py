"""What a run that did not reach its end was reading, so that the next one resumes from its archived
responses.

A run notes in the archive's ledger what it is reading, under the name of its use of the archive.
When that has ended and the note is there still, the run was killed, stopped, or ran out of
requests; the note goes when a run that read the same assets ends."""

from collections.abc import Iterable

from marketing_api.exchange import new_request_id
from warehouse.archive.archive import Archive


class Checkpoints:
    """Those of earlier runs, and this run's own."""

    def __init__(self, archive: Archive) -> None:
        """The run's own requests have larger ids than the one made here."""
        self.since = new_request_id()
        self._ledger = archive.ledger
        self._holder = archive.holder
        notes = self._ledger.find_unfinished()
        self._abandoned = {
            holder: note for holder, note in notes.items() if not archive.is_in_use(holder)
        }

    def begin_assets(self, assets: Iterable[str]) -> None:
        self._ledger.set_unfinished(self._holder, self.since, assets)

    def resume_from(self, asset: str) -> int | None:
        """The request id with which the earliest run began that was reading the asset and did not
        end; None when there is none."""
        return min(
            (since for since, assets in self._abandoned.values() if asset in assets), default=None
        )

    def end_assets(self, assets: Iterable[str]) -> None:
        """This run has read all of these assets: nothing of them is unfinished any more."""
        done = frozenset(assets)
        for holder, (since, unfinished) in self._abandoned.items():
            self._ledger.set_unfinished(holder, since, unfinished - done)
        self._ledger.set_unfinished(self._holder, self.since, ())
