"""How far a sending is, and what became of it: values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the sending is, in requests of the outbox (look-ups and looks aside)."""

    total: int
    applied: int
    rejected: int
    unknown: int  # right now

    @property
    def done(self) -> int:
        return self.applied + self.rejected


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of what was open. `stopped` says why not everything was sent, in words for people; None: it was."""

    applied: int
    rejected: int
    unknown: int  # stayed so: looked for or repeated as often as makes sense
    planned: int  # not sent
    looked_up: int  # addresses
    requests: int  # everything that was asked and sent, repeats and looks included
    seconds: float
    stopped: str | None = None
