"""Rules about the data of a home: how personal data is masked in copies that others read, how long
data is kept, and when it is overdue.

Imports no library, so that settings load fast. Not here: doing it (`masking`, `retention`)."""

import datetime as dt
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Self

#: How late a night's data may be before it is overdue: people who start work after that see that
#: the night failed.
GRACE = dt.timedelta(hours=6)
#: How old the newest response may be: the sync runs every night.
FRESH_FOR = dt.timedelta(days=1) + GRACE
#: Characters of a key for hashes; a shorter one could be guessed.
LEAST_KEY = 16


class PersonalData(StrEnum):
    """What happens to personal data; each value keeps less than the one before."""

    KEEP = "keep"
    HASH = "hash"
    DROP = "drop"


_FOR_EVER = "ever"
#: A century: more would lead to dates that don't exist.
_MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Kept:
    """Days; None: forever."""

    bodies: int | None = 400  # of responses, in the archive; whole months
    requests: int | None = (
        # rows of `sync.requests`, and of the archive after their bodies are gone; there, whole
        # months
        1100
    )
    timelines: int | None = None  # entries of timelines
    deleted: int | None = (
        None  # contacts that the service has deleted: earlier figures lose them, too
    )
    skipped: int | None = (
        # rows of pushes without a request: a nightly push of 100,000 rows would fill the outbox
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
        if any(days is not None and not 0 < days <= _MOST_DAYS for days in asdict(kept).values()):
            raise ValueError(text)
        return kept

    def __str__(self) -> str:
        return ",".join(
            f"{limit.name}={getattr(self, limit.name) or _FOR_EVER}" for limit in fields(self)
        )
