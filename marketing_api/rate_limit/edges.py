"""Where the service's one-second windows begin, read off its answers.

While requests leave evenly, an answer with the lowest count that windows begin with (1, or more when another client of the
account is always quicker) shows an edge: it lies between that request and the one sent before. Edges that stay at the same
fraction of the second belong to a *fixed* grid; edges that move on with the slots, which are a little more than a second
apiece, belong to windows that *follow* the first request. What contradicts the verdict later is a strike; after a few it is
withdrawn for a while.

Values and arithmetic only. Times are seconds on one steady clock; every field is a float, so that the state can be shared.
"""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN, FIXED, FOLLOWING = 0.0, 1.0, 2.0

DRIFT_TO_TELL = 0.45  # seconds: following edges would have moved on by about so much before we decide
TOLERANCE = 0.12  # seconds by which two sightings of one edge may differ: one slot and the delays
NEAR = 0.2  # seconds between two slots within which an edge is worth noting
LOWEST_RISES = 1.0  # per second: how soon a higher count is taken for the lowest, once another client is first in each window
MISSED = 3  # windows whose edge may have gone unseen
STRIKES = 3.0
STRIKE_FADES = 0.99  # per window
DISTRUST = 30.0  # seconds, doubling each time
LONGEST_DISTRUST = 3600.0


@dataclass(slots=True)
class Edges:
    """A chain of sightings and the verdict on them."""

    verdict: float = UNKNOWN
    phase: float = 0.0  # fixed windows begin at whole seconds plus this, in sending time
    sightings: float = 0.0
    first: float = 0.0
    last: float = 0.0
    passed: float = 0.0  # windows between the first sighting and the last
    lowest: float = 1.0  # count that windows begin with
    strikes: float = 0.0
    distrust: float = DISTRUST
    distrust_until: float = 0.0

    def begins(self, count: float, limit: float) -> bool:
        """Whether a request that was number `count` of its window was the first of ours in it."""
        is_first = count <= self.lowest
        self.lowest = count if is_first else self.lowest + LOWEST_RISES / limit
        return is_first

    def saw(self, edge: float, margin: float, now: float) -> None:
        """An edge at about `edge`, while slots were (1 + margin) / limit apart."""
        step = edge - self.last
        if step <= 0:
            return  # answers overtake each other
        windows = round(step)
        if not 1 <= windows <= MISSED or abs(step - windows) > TOLERANCE * windows:
            self._restart(edge)
            return
        self.sightings += 1
        self.passed += windows
        self.last = edge
        off = (edge - self.phase + 0.5) % 1.0 - 0.5
        self.phase = (self.phase + off / min(self.sightings, 8.0)) % 1.0
        if self.passed * margin >= DRIFT_TO_TELL and now >= self.distrust_until:
            self._decide(edge - self.first - self.passed)

    def strike(self, weight: float, now: float) -> None:
        """Something came that should not have come if the verdict were true."""
        self.strikes += weight
        if self.strikes > STRIKES:
            self.distrust_until = now + self.distrust
            self.distrust = min(2 * self.distrust, LONGEST_DISTRUST)
            self.verdict, self.strikes = UNKNOWN, 0.0
            self._restart(0.0)

    def fade(self) -> None:
        """A window has passed."""
        self.strikes *= STRIKE_FADES

    def _restart(self, edge: float) -> None:
        self.first = self.last = edge
        self.phase = edge % 1.0
        self.sightings, self.passed = 1.0, 0.0

    def _decide(self, drift: float) -> None:
        if abs(drift) <= TOLERANCE:
            self.verdict = FIXED
        elif drift >= DRIFT_TO_TELL / 2:
            self.verdict = FOLLOWING
        elif drift < -TOLERANCE:
            self._restart(self.last)
