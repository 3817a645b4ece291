"""When the next request may leave: the rules as values and arithmetic, without clocks, threads or files.

Paced evenly, slots are (1 + margin) / limit seconds apart; the margin grows when the service refuses and shrinks while it
does not. That suits every way of counting. Once the responses show in which windows the service counts, the slots are put into
them (`windows`), which uses more of the limit and is refused less.

Not here: waiting (`limiter`) and sharing between processes (`shared_state`).
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

from marketing_api.rate_limit.report import RateReport
from marketing_api.rate_limit.windows import NEAR, Edges, FixedWindows, Slot

#: Requests a second in the specification's text: for estimates before an account has reported its own limit, never for sending.
SPECIFIED_RATE = 15.0
START_RATE = 10.0  # requests per second until the service has reported its limit (api-observed row 27)
WIDEST = 100.0  # requests per second; beyond it two slots are closer than the delays that would have to be told apart
FIRST_MARGIN = 0.06
LEAST_MARGIN = 0.02
SLOWEST = 3.0  # requests per second that refusals alone make of any limit: its "second" may be a minute, or its number wrong
MARGIN_STEP = 0.02
CONTESTED = 0.1  # a margin beyond which other clients seem to use up the limit before us
MARGIN_RECOVERY = 0.0005  # per second without a refusal: a step is won back in 40 s
MARGIN_DECAY = 0.005  # of itself per second: a large margin shrinks sooner
CREDIT = 0.02  # seconds of lateness that even pacing makes up for; no sleep is more exact on a busy machine
LONGEST_HOLD = 60.0
STALE_AFTER = 600.0  # seconds: clocks drift and limits change, so older knowledge is dropped


@dataclass(slots=True)
class Schedule:
    """The state that all processes share. Times are seconds on one steady clock."""

    limit: float = 0.0  # per second, 0: not yet reported
    margin: float = FIRST_MARGIN
    last_at: float = 0.0  # the latest slot given
    free_at: float = 0.0  # even pacing: the next one
    hold_until: float = 0.0  # nobody sends before
    refused_at: float = 0.0  # when the last 429 came
    refusals: float = 0.0  # 429s in a row
    touched_at: float = 0.0
    edges: Edges = field(default_factory=Edges)
    fixed: FixedWindows = field(default_factory=FixedWindows)

    def reserve(self, now: float, cap: float | None = None) -> Slot:
        """Take the next free slot. `cap`: requests per second that are never exceeded."""
        self._forget_nonsense(now)
        if self.is_windowed(cap):
            slot = self.fixed.place(max(now, self.hold_until), self.last_at, self.limit, self.edges.phase)
        else:
            at = max(self.free_at, self.hold_until, now - CREDIT)
            self.free_at = at + 1 / self.rate(cap)
            self.fixed.number = -1.0
            slot = Slot(at, at - self.last_at)
        if slot.window >= 0 and slot.index == 0:
            self.edges.fade()
        self.last_at = slot.at
        return slot

    def still_holds(self, slot: Slot) -> bool:
        """Whether nothing was learnt since that forbids the slot."""
        if slot.at < self.hold_until:
            return False
        return slot.window < 0 or not self.edges.is_fixed or self.fixed.still_holds(slot, self.limit)

    @property
    def reported(self) -> float:
        """The account's limit, or the cautious start until it has reported one."""
        return self.limit or START_RATE

    def is_windowed(self, cap: float | None = None) -> bool:
        return bool(self.edges.is_fixed) and 0 < self.limit <= min(WIDEST, cap or math.inf)

    def rate(self, cap: float | None = None) -> float:
        """Requests per second that are allowed as of now."""
        if not self.is_windowed(cap):
            even = (self.limit or START_RATE * (1 + FIRST_MARGIN)) / (1 + self.margin)
            return min(even, cap or math.inf, math.inf if self.limit else START_RATE)
        return self.fixed.allowance(self.limit)

    def learn(self, slot: Slot, report: RateReport | None, *, refused: bool, now: float, wall: float) -> None:
        """Take in what came back for the request sent in `slot`. `wall`: now, in seconds since 1970."""
        self.touched_at = now
        if report is not None and report.limit and report.limit > 0:
            self.limit = float(report.limit)
        if refused:
            self._refused(slot, report, now, wall)
        else:
            self._accepted(report, now, wall)
        if (count := _count(report)) is not None:
            self._counted(slot, min(count, self.limit), now)

    def _counted(self, slot: Slot, count: float, now: float) -> None:
        is_edge = self.edges.begins(count, self.limit) and slot.gap < NEAR
        if slot.window < 0:
            if is_edge and not self.edges.is_fixed:
                self.edges.saw(slot.at - slot.gap / 2, self.margin, now)
        elif self.edges.is_fixed:
            if self.fixed.is_early(slot, count, self.limit) or (is_edge and slot.index >= self.limit / 2):
                self.edges.strike(2, now)
            elif slot.at >= slot.window + self.edges.phase + 0.1:
                self.fixed.count(slot, count)

    def _accepted(self, report: RateReport | None, now: float, wall: float) -> None:
        self.refusals = 0.0
        recovery = max(MARGIN_RECOVERY, MARGIN_DECAY * self.margin) / (self.limit or START_RATE)
        self.margin = max(LEAST_MARGIN, self.margin - recovery)
        is_used_up = report is not None and report.remaining == 0 and self.margin > CONTESTED and not self.is_windowed()
        if is_used_up and 0 < (left := _left(report, wall)) <= 1:
            self.hold_until = max(self.hold_until, now + left)

    def _refused(self, slot: Slot, report: RateReport | None, now: float, wall: float) -> None:
        self.refusals += 1
        self.hold_until = max(self.hold_until, self._hold(report, now, wall))
        is_news = slot.at > self.refused_at  # one that was on its way at the last refusal teaches nothing
        is_whim = report is not None and not report.reached and bool(report.remaining)
        self.refused_at = now
        if slot.window >= 0 and self.edges.is_fixed:
            self.fixed.uncount(slot)
        if not is_news or is_whim:
            return
        if slot.window < 0:
            most = max((self.limit or START_RATE) / SLOWEST - 1, FIRST_MARGIN)
            self.margin = min(max(self.margin + MARGIN_STEP, self.margin * 1.25), most)
        elif self.fixed.others < 1:
            self.edges.strike(1, now)

    def _hold(self, report: RateReport | None, now: float, wall: float) -> float:
        """Until when nobody sends: the end of the window as far as it can be told, else what the service advises, else 1 s."""
        advised = max(report.after or 0.0, 0.0) if report is not None else 0.0
        left = _left(report, wall)
        if self.is_windowed() and advised <= 1:
            return now + 1 - (now - self.edges.phase) % 1.0
        if self.refusals == 1 and -1 < left <= 1 and left:  # a clock that differs from ours may mislead once, not twice
            return now + max(left + 0.01, 0.0)
        return now + min(advised or 1.0, LONGEST_HOLD)

    def _forget_nonsense(self, now: float) -> None:
        """A reboot restarts the clock, so that stored times lie in the future."""
        latest = max(self.last_at, self.free_at, self.hold_until, self.touched_at)
        if latest > now + LONGEST_HOLD + 1:
            self.restore(Schedule(touched_at=now).values())
        elif now - self.touched_at > STALE_AFTER:
            self.restore(Schedule(touched_at=now, hold_until=self.hold_until, last_at=self.last_at).values())

    # --- as numbers, for the file ---

    def values(self) -> tuple[float, ...]:
        own, edges, fixed = _GETTERS
        numbers: tuple[float, ...] = own(self) + edges(self.edges) + fixed(self.fixed)
        return numbers

    def restore(self, values: Sequence[float]) -> None:
        rest = iter(values)
        for part, names in zip((self, self.edges, self.fixed), _NAMES, strict=True):
            for name in names:
                setattr(part, name, next(rest))


def _left(report: RateReport | None, wall: float) -> float:
    """Seconds until the window resets, as far as the service's clock can be trusted; 0 when it does not say."""
    return report.reset - wall if report is not None and report.reset is not None else 0.0


def _count(report: RateReport | None) -> float | None:
    """How many requests the service has counted in its window, this one included."""
    if report is None:
        return None
    if report.requests is not None:
        return float(report.requests)
    if report.limit is not None and report.remaining is not None:
        return float(report.limit - report.remaining)
    return None


_KINDS: tuple[type, ...] = (Schedule, Edges, FixedWindows)
_NAMES = [[each.name for each in dataclasses.fields(kind) if each.type == "float"] for kind in _KINDS]
_GETTERS = [operator.attrgetter(*names) for names in _NAMES]
VALUES = sum(map(len, _NAMES))
