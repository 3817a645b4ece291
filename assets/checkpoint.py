"""What an unfinished run was reading, so that the next one resumes from its archived responses.

A run notes in the archive's ledger what it is reading, with its name as a user of the archive. If
that user is gone and the note is still there, the run was killed, stopped, or ran out of requests.
The note is deleted when a run that read the same assets ends."""

from collections.abc import Iterable

from marketing_api.exchange import new_request_id
from warehouse.archive.archive import Archive


class Checkpoints:
    """The checkpoints of earlier runs and of this run."""

    def __init__(self, archive: Archive) -> None:
        """The run's own requests have larger ids than `since`."""
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
        """The first request id of the earliest unfinished run that was reading the asset; None if
        there is none."""
        notes = self._abandoned.values()
        return min((since for since, assets in notes if asset in assets), default=None)

    def end_assets(self, assets: Iterable[str]) -> None:
        """This run has read all of these assets, so none of them is unfinished any more."""
        done = frozenset(assets)
        for holder, (since, unfinished) in self._abandoned.items():
            self._ledger.set_unfinished(holder, since, unfinished - done)
        self._ledger.set_unfinished(self._holder, self.since, ())
