"""When the next request may leave: the rules as values and arithmetic, without clocks, threads or
files.

Paced evenly, slots are (1 + margin) / limit seconds apart; the margin grows when the service
refuses and shrinks while it does not. That suits every way of counting. The service counts in
windows of one second. Once its responses show where they begin, the slots are put into them, which
uses more of the limit and is refused less.

While requests leave evenly, a response with the lowest count that windows begin with (1, or more
when another client of the account is always quicker) shows an edge: it lies between that request
and the one sent before. Edges that stay at the same fraction of the second belong to a fixed grid.
What contradicts it later is a strike; after a few it is disbelieved for a while.

The slots lie in the middle of the windows, where neither delays nor clock drift carry a request
over an edge: the whole limit is used and nothing is refused. What other clients use of a window
shows in refusals: the margin then leaves it to them. Where a service counts in another way (windows
that begin with a request, sliding windows, a bucket), no grid is found, and pacing stays even.

Times are seconds on one steady clock; every field is a float, so that the state can be shared. Not
here: waiting, and sharing between processes (`rate_limit`)."""

import dataclasses
import math
from dataclasses import dataclass, field

# seconds: edges that follow the slots would have moved on by about so much before we decide
DRIFT_TO_TELL = 0.45
# seconds by which a sighting of an edge may differ from those before: one slot and the delays
TOLERANCE = 0.12
NEAR = 0.2  # seconds between two slots within which an edge is worth noting
# per second: how soon a higher count is taken for the lowest, once another client is first in each
# window
LOWEST_RISES = 1.0
STRIKES = 3.0
STRIKE_FADES = 0.99  # per window
DISTRUST = 60.0  # seconds
# seconds left free at the start of a window; its end gets more, since delays only push requests
# later
LEAD = 0.15
SPAN = 0.6  # seconds over which the slots of a window are spread
LAST_ENTRY = 0.85  # seconds into a window after which a slot is one of the next window


@dataclass(frozen=True, slots=True)
class RateReport:
    """The `rate-limit` object: `reset` in unix seconds, `after` in seconds; None for what was not
    said or not readable."""

    limit: int | None = None  # requests allowed in a window of one second
    requests: int | None = None
    remaining: int | None = None
    reached: bool = False  # this very request was blocked
    reset: float | None = None
    after: float | None = None

    @property
    def count(self) -> float | None:
        """How many requests the service has counted in its window, this one included."""
        if self.requests is not None:
            return float(self.requests)
        return (
            None
            if self.limit is None or self.remaining is None
            else float(self.limit - self.remaining)
        )

    def seconds_left(self, wall: float) -> float:
        """Seconds until the window resets, as far as the service's clock can be trusted; 0 when it
        does not say."""
        return 0.0 if self.reset is None else self.reset - wall


@dataclass(frozen=True, slots=True)
class Slot:
    """Permission to send one request at `at`, which is `gap` seconds after the slot before."""

    at: float
    gap: float
    window: float = -1.0  # the window it was put into, -1 when paced evenly
    index: float = 0.0  # how many slots of that window were given before it


@dataclass(slots=True)
class Windows:
    """Where the service's windows begin, whether that is certain (0 or 1, as all numbers here are
    floats), and what was put into them."""

    is_fixed: float = 0.0
    phase: float = 0.0  # windows begin at whole seconds plus this, in sending time
    since: float = 0.0  # the first edge at this phase
    lowest: float = 1.0  # count that windows begin with
    strikes: float = 0.0
    distrust_until: float = 0.0
    number: float = -1.0  # the window that is being filled
    used: float = 0.0  # slots given in it
    before: float = 0.0  # and in the one before

    def is_window_start(self, count: float, limit: float) -> bool:
        """Whether a request that was number `count` of its window was the first of ours in it."""
        is_first = count <= self.lowest
        self.lowest = count if is_first else self.lowest + LOWEST_RISES / limit
        return is_first

    def note_edge(self, edge: float, margin: float, now: float) -> None:
        """An edge at about `edge`, while slots were (1 + margin) / limit apart."""
        off = (edge - self.phase + 0.5) % 1.0 - 0.5
        if abs(off) > TOLERANCE or not self.since:
            self.since = edge
            self.phase = edge % 1.0
            return
        self.phase = (self.phase + off / 8) % 1.0
        if (edge - self.since) * margin >= DRIFT_TO_TELL and now >= self.distrust_until:
            self.is_fixed = 1.0

    def contradicts(self, slot: Slot, count: float, half: float, *, is_edge: bool) -> bool:
        """Whether ours came before its edge, or the first of a window late in ours. `half`: of the
        limit."""
        is_early = (
            slot.index == 0 and count > half and slot.at > slot.window + self.phase + LEAD / 2
        )
        return is_early or (is_edge and slot.index >= half)

    def add_strike(self, weight: float, now: float) -> None:
        """Something came that should not have come if windows were fixed."""
        self.strikes += weight
        if self.strikes > STRIKES:
            self.is_fixed = self.strikes = 0.0
            self.since = now
            self.distrust_until = now + DISTRUST

    def place_slot(self, earliest: float, last_at: float, limit: float, allowance: float) -> Slot:
        """The next slot not before `earliest`, in a window that holds `allowance`."""
        number = max(math.floor(earliest - self.phase + 1 - LAST_ENTRY), self.number)
        if number == self.number and self.used >= allowance:
            number += 1
        if number != self.number:
            self.before = self.used if number == self.number + 1 else 0.0
            self.used = 0.0
            self.number = number
            self.strikes *= STRIKE_FADES
        start = number + self.phase
        # with less than half of a window requested, a request that slips over an edge does no harm
        is_crowded = max(self.used, self.before) > allowance / 2
        free = (
            start + LEAD + SPAN * self.used / limit
            if is_crowded
            else max(last_at + SPAN / limit, start + LAST_ENTRY - 1)
        )
        at = max(earliest, free)
        self.used += 1
        return Slot(at, at - last_at, number, self.used - 1)

    def note_even(self, at: float, limit: float) -> None:
        """A slot was paced evenly, which has used up its share of the window until then."""
        self.number = math.floor(at - self.phase + 1 - LAST_ENTRY)
        self.used = math.ceil(max(at - self.phase - self.number, 0.0) * limit) + 1
        self.before = limit


#: Requests a second in the specification's text: for estimates before an account has reported its
#: own limit, never for sending.
SPECIFIED_RATE = 15.0
START_RATE = 10.0  # requests per second until the service has reported its limit (observation 27)
# requests per second; beyond it two slots are closer than the delays that would have to be told
# apart
WIDEST = 100.0
FIRST_MARGIN = 0.06
LEAST_MARGIN = 0.02
# requests per second that refusals alone make of any limit: its "second" may be a minute, or its
# number wrong
SLOWEST = 3.0
MARGIN_STEP = 0.02
CONTESTED = 0.1  # a margin beyond which other clients seem to use up the limit before us
MARGIN_RECOVERY = 0.0005  # per second without a refusal: a step is won back in 40 s
MARGIN_DECAY = 0.005  # of itself per second: a large margin shrinks sooner
# seconds of lateness that even pacing makes up for; no sleep is more exact on a busy machine
CREDIT = 0.02
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
    # of the limit that may be used: less where the other machines cannot be seen
    share: float = 1.0
    windows: Windows = field(default_factory=Windows)

    def reserve_slot(
        self, now: float, cap: float | None = None, *, reserved: Slot | None = None
    ) -> Slot:
        """Take the next free slot, or the `reserved` one while it is valid. Never exceeds `cap`
        requests per second."""
        if reserved is not None and self.still_holds(reserved):
            return reserved
        self._forget_nonsense(now)
        if self.is_windowed(cap):
            slot = self.windows.place_slot(
                max(now, self.hold_until), self.last_at, self.limit, self.rate()
            )
        else:
            at = max(self.free_at, self.hold_until, now - CREDIT)
            self.free_at = at + 1 / self.rate(cap)
            self.windows.note_even(at, self.reported)
            slot = Slot(at, at - self.last_at)
        self.last_at = slot.at
        return slot

    def still_holds(self, slot: Slot) -> bool:
        if not self.hold_until <= slot.at <= self.last_at + 1:  # given before the state was lost
            return False  # or by another clock
        return slot.window < 0 or not self.windows.is_fixed or slot.index < self.rate()

    @property
    def reported(self) -> float:
        """The account's limit, or the cautious start until it has reported one."""
        return self.limit or START_RATE

    def is_windowed(self, cap: float | None = None) -> bool:
        return (
            bool(self.windows.is_fixed)
            and 0 < self.limit <= min(WIDEST, cap or math.inf)
            and self.share == 1
        )

    def rate(self, cap: float | None = None) -> float:
        """Requests per second that are allowed as of now."""
        if self.is_windowed(cap):
            # a margin beyond the least one is what other clients use; one refusal alone costs
            # nothing
            return max(math.floor(self.limit / (1 + self.margin - LEAST_MARGIN) + 0.35), 1)
        even = (self.limit or START_RATE * (1 + FIRST_MARGIN)) / (1 + self.margin)
        return self.share * min(even, cap or math.inf, math.inf if self.limit else START_RATE)

    def learn(
        self, slot: Slot, report: RateReport, *, refused: bool, now: float, wall: float
    ) -> None:
        """Take in what came back for the request sent in `slot`. `wall`: now, in seconds since
        1970."""
        self.touched_at = now
        if report.limit and report.limit > 0:
            self.limit = float(report.limit)
        if refused:
            self._learn_refusal(slot, report, now, wall)
        else:
            self.refusals = 0.0
            recovery = max(MARGIN_RECOVERY, MARGIN_DECAY * self.margin) / (self.limit or START_RATE)
            self.margin = max(LEAST_MARGIN, self.margin - recovery)
            is_used_up = (
                report.remaining == 0 and self.margin > CONTESTED and not self.is_windowed()
            )
            if is_used_up and 0 < (left := report.seconds_left(wall)) <= 1:
                self.hold_until = max(self.hold_until, now + left)
        count = report.count
        if count is not None:
            self._learn_count(slot, min(count, self.limit), now)

    def _learn_count(self, slot: Slot, count: float, now: float) -> None:
        windows = self.windows
        half = self.limit / 2
        is_edge = windows.is_window_start(count, self.limit) and slot.gap < NEAR
        if slot.window >= 0:
            if windows.is_fixed and windows.contradicts(slot, count, half, is_edge=is_edge):
                windows.add_strike(2, now)
        elif is_edge and not windows.is_fixed:
            windows.note_edge(slot.at - slot.gap / 2, self.margin, now)
            if windows.is_fixed and self.margin <= CONTESTED:
                self.margin = LEAST_MARGIN

    def _learn_refusal(self, slot: Slot, report: RateReport, now: float, wall: float) -> None:
        self.refusals += 1
        self.hold_until = max(self.hold_until, self._find_hold(report, now, wall))
        # one that was on its way at the last refusal teaches nothing
        is_news = slot.at > self.refused_at
        is_whim = not report.reached and bool(report.remaining)
        self.refused_at = now
        if is_news and not is_whim:
            most = max(self.reported / SLOWEST - 1, FIRST_MARGIN)
            self.margin = min(max(self.margin + MARGIN_STEP, self.margin * 1.4), most)
            if slot.window >= 0 and slot.index < self.limit / 3:
                self.windows.add_strike(1, now)

    def _find_hold(self, report: RateReport, now: float, wall: float) -> float:
        """Until when nobody sends: the end of the window where it is known, else what the service
        advises, else 1 s."""
        advised = max(report.after or 0.0, 0.0)
        left = report.seconds_left(wall)
        if self.is_windowed() and advised <= 1:
            return now + 1 - (now - self.windows.phase) % 1.0
        # a clock that differs from ours may mislead once, not twice
        if self.refusals == 1 and -1 < left <= 1 and left:
            return now + max(left + 0.01, 0.0)
        return now + min(advised or 1.0, LONGEST_HOLD)

    def _forget_nonsense(self, now: float) -> None:
        """A reboot restarts the clock, so that stored times lie in the future."""
        latest = max(self.last_at, self.free_at, self.hold_until, self.touched_at)
        if latest > now + LONGEST_HOLD + 1:
            self.replace_by(Schedule(touched_at=now, share=self.share))
        elif now - self.touched_at > STALE_AFTER:
            self.replace_by(
                Schedule(
                    touched_at=now,
                    hold_until=self.hold_until,
                    last_at=self.last_at,
                    share=self.share,
                )
            )

    def restart(self, now: float, hold: float, share: float = 1.0) -> "Schedule":
        """What is learnt of the service, in place of a state that was lost: nobody sends for `hold`
        seconds. Empty if nothing is."""
        if not self.limit:
            return Schedule(share=share)
        return dataclasses.replace(
            Schedule(self.limit, self.margin, now, touched_at=self.touched_at, share=share),
            hold_until=max(self.hold_until, now + hold),
            windows=dataclasses.replace(self.windows, number=-1.0, used=0.0, before=0.0),
        )

    def replace_by(self, other: "Schedule") -> None:
        for one in dataclasses.fields(self):
            setattr(self, one.name, getattr(other, one.name))
