"""Rules about the data of a home: what becomes of personal data in copies that others read, for how
long data is kept, and when it is overdue.

Imports no library: settings load fast. Not here: doing it (`masking`, `retention`).
"""

import datetime as dt
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Self

#: How late a night's reading may be before what it should have read is overdue: who comes to work
#: after it sees that it failed.
GRACE = dt.timedelta(hours=6)
#: How old the newest response may be: reading is due every night.
FRESH_FOR = dt.timedelta(days=1) + GRACE
#: Characters of a key for hashes; a shorter one could be guessed.
LEAST_KEY = 16


class PersonalData(StrEnum):
    """What becomes of it; each keeps less than the one before."""

    KEEP = "keep"
    HASH = "hash"
    DROP = "drop"


_FOR_EVER = "ever"


@dataclass(frozen=True, slots=True)
class Kept:
    """Days; None: for ever."""

    bodies: int | None = 400  # of responses, in the archive; whole months
    requests: int | None = (
        # rows of `sync.requests`, and of the archive once their bodies are gone; whole months there
        1100
    )
    timelines: int | None = None  # entries of timelines
    deleted: int | None = (
        None  # contacts that are gone at the service: figures of the time before lose them, too
    )
    skipped: int | None = (
        # rows of pushes with nothing to send: a nightly push of 100,000 rows would fill the outbox
        7
    )
    dagster: int | None = 90  # runs of the UI with their events
    logs: int | None = 90

    @classmethod
    def from_text(cls, text: str) -> Self:
        """`bodies=400,requests=ever`; other keys keep their values. Raises ValueError and
        TypeError."""
        changes = (part.split("=") for part in text.replace(" ", "").lower().split(","))
        kept = cls(**{name: None if days == _FOR_EVER else int(days) for name, days in changes})
        if min(days for days in asdict(kept).values() if days is not None) < 1:
            raise ValueError(text)
        return kept

    def __str__(self) -> str:
        return ",".join(
            f"{limit.name}={getattr(self, limit.name) or _FOR_EVER}" for limit in fields(self)
        )
