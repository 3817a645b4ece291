"""When the next request may leave: the rules as values and arithmetic, without clocks, threads or
files.

With even pacing, slots are (1 + margin) / limit seconds apart. The margin grows when the service
refuses a request and shrinks while it does not. That works however the service counts. This service
counts in windows of one second. Once its responses show where windows begin, slots are put into
them. That uses more of the limit, and fewer requests are refused.

With even pacing, a response with the lowest count that windows begin with shows an edge between
that request and the one before. (The lowest count is 1, or more if another client of the account is
always first.) Edges that stay at the same fraction of the second belong to a fixed grid. Later
responses that contradict it are strikes; after a few of them, the grid is not used for a while.

The slots lie in the middle of the windows, where neither delays nor clock drift carry a request
over an edge: the whole limit is used and nothing is refused. If other clients use a part of the
windows, requests are refused, and the margin grows until it leaves them that part. If a service
counts in another way (windows that begin with a request, sliding windows, a bucket), no grid is
found, and pacing stays even.

Times are seconds on one steady clock; every field is a float, so that the state can be shared. Not
here: waiting, and sharing between processes (`rate_limit`)."""

import dataclasses
import math
from dataclasses import dataclass, field

# seconds by which an edge that moves with the slots has moved before we decide that it is fixed
DRIFT_TO_TELL = 0.45
# seconds by which a sighting of an edge may differ from those before: one slot and the delays
TOLERANCE = 0.12
NEAR = 0.2  # seconds between two slots within which an edge is worth noting
# per second: how fast a higher count becomes the lowest one when another client is first in each
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
    """The `rate-limit` object: `reset` in unix seconds, `after` in seconds; None where a value is
    missing or unreadable."""

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
        if self.limit is None or self.remaining is None:
            return None
        return float(self.limit - self.remaining)

    def seconds_left(self, wall: float) -> float:
        """Seconds until the window resets, if the service's clock is right; 0 if it does not
        say."""
        if self.reset is None:
            return 0.0
        return self.reset - wall


@dataclass(frozen=True, slots=True)
class Slot:
    """Permission to send one request at `at`, which is `gap` seconds after the slot before."""

    at: float
    gap: float
    window: float = -1.0  # the window it was put into, -1 when paced evenly
    index: float = 0.0  # how many slots of that window were given before it


@dataclass(slots=True)
class Windows:
    """Where the service's windows begin, whether that is certain (0 or 1, since all fields are
    floats), and the slots that were put into them."""

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
        """Whether a first request was counted late in a window of the service, or a late one first.
        `half`: of the limit."""
        lead = slot.at - slot.window - self.phase
        is_early = slot.index == 0 and count > half and lead > LEAD / 2
        return is_early or (is_edge and slot.index >= half)

    def add_strike(self, weight: float, now: float) -> None:
        """A response came that would not have come if windows were fixed."""
        self.strikes += weight
        if self.strikes > STRIKES:
            self.is_fixed = self.strikes = 0.0
            self.since = now
            self.distrust_until = now + DISTRUST

    def place_slot(self, earliest: float, last_at: float, limit: float, allowance: float) -> Slot:
        """The next slot not before `earliest`, in a window that holds `allowance`."""
        earliest_number = math.floor(earliest - self.phase + 1 - LAST_ENTRY)
        number = max(earliest_number, self.number)
        if number == self.number and self.used >= allowance:
            number += 1
        if number != self.number:
            is_next = number == self.number + 1
            self.before = self.used if is_next else 0.0
            self.used = 0.0
            self.number = number
            self.strikes *= STRIKE_FADES
        start = number + self.phase
        # with less than half of a window requested, a request that slips over an edge does no harm
        is_crowded = max(self.used, self.before) > allowance / 2
        if is_crowded:
            free_at = start + LEAD + SPAN * self.used / limit
        else:
            first_entry = start + LAST_ENTRY - 1
            free_at = max(last_at + SPAN / limit, first_entry)
        at = max(earliest, free_at)
        self.used += 1
        return Slot(at, at - last_at, number, self.used - 1)

    def note_even(self, at: float, limit: float) -> None:
        """A slot was paced evenly: all of the window until then counts as used."""
        self.number = math.floor(at - self.phase + 1 - LAST_ENTRY)
        passed = max(at - self.phase - self.number, 0.0)
        self.used = math.ceil(passed * limit) + 1
        self.before = limit


#: Requests a second in the specification's text: for estimates before an account has reported its
#: own limit, never for sending.
SPECIFIED_RATE = 15.0
START_RATE = 10.0  # requests per second until the service has reported its limit (observation 27)
# requests per second; beyond it, two slots are closer together than delays differ
WIDEST = 100.0
FIRST_MARGIN = 0.06
LEAST_MARGIN = 0.02
# requests per second below which refusals don't slow us down: the service's "second" may be a
# minute, or its number wrong
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
            earliest = max(now, self.hold_until)
            allowance = self.rate()
            slot = self.windows.place_slot(earliest, self.last_at, self.limit, allowance)
        else:
            at = max(self.free_at, self.hold_until, now - CREDIT)
            self.free_at = at + 1 / self.rate(cap)
            self.windows.note_even(at, self.reported)
            slot = Slot(at, at - self.last_at)
        self.last_at = slot.at
        return slot

    def still_holds(self, slot: Slot) -> bool:
        """Whether a reserved slot may still be used. It may not if it was given before the state
        was lost, or by another clock."""
        if not self.hold_until <= slot.at <= self.last_at + 1:
            return False
        is_even = slot.window < 0 or not self.windows.is_fixed
        return is_even or slot.index < self.rate()

    @property
    def reported(self) -> float:
        """The account's limit, or the cautious start until it has reported one."""
        return self.limit or START_RATE

    def is_windowed(self, cap: float | None = None) -> bool:
        if not self.windows.is_fixed or self.share != 1:
            return False
        widest = min(WIDEST, cap or math.inf)
        return 0 < self.limit <= widest

    def rate(self, cap: float | None = None) -> float:
        """Requests per second that are allowed as of now."""
        if self.is_windowed(cap):
            # A margin beyond the least one is what other clients use; one refusal alone costs
            # nothing.
            others = self.margin - LEAST_MARGIN
            left_to_us = self.limit / (1 + others)
            return max(math.floor(left_to_us + 0.35), 1)
        limit = self.limit
        most = cap or math.inf
        if not limit:
            limit = START_RATE * (1 + FIRST_MARGIN)
            most = min(most, START_RATE)
        even = limit / (1 + self.margin)
        return self.share * min(even, most)

    def learn(
        self, slot: Slot, report: RateReport, *, refused: bool, now: float, wall: float
    ) -> None:
        """Learn from the response to the request that was sent in `slot`. `wall`: now, in unix
        seconds."""
        self.touched_at = now
        if report.limit and report.limit > 0:
            self.limit = float(report.limit)
        if refused:
            self._learn_refusal(slot, report, now, wall)
        else:
            self._learn_success(report, now, wall)
        count = report.count
        if count is not None:
            self._learn_count(slot, min(count, self.limit), now)

    def _learn_success(self, report: RateReport, now: float, wall: float) -> None:
        self.refusals = 0.0
        recovery_per_s = max(MARGIN_RECOVERY, MARGIN_DECAY * self.margin)
        recovery = recovery_per_s / self.reported
        self.margin = max(LEAST_MARGIN, self.margin - recovery)
        is_contested = self.margin > CONTESTED and not self.is_windowed()
        left_s = report.seconds_left(wall)
        if report.remaining == 0 and is_contested and 0 < left_s <= 1:
            self.hold_until = max(self.hold_until, now + left_s)

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
        hold_until = self._find_hold(report, now, wall)
        self.hold_until = max(self.hold_until, hold_until)
        # a request that was on its way at the last refusal teaches nothing
        is_news = slot.at > self.refused_at
        is_whim = not report.reached and bool(report.remaining)
        self.refused_at = now
        if is_whim or not is_news:
            return
        most = max(self.reported / SLOWEST - 1, FIRST_MARGIN)
        larger = max(self.margin + MARGIN_STEP, self.margin * 1.4)
        self.margin = min(larger, most)
        if slot.window >= 0 and slot.index < self.limit / 3:
            self.windows.add_strike(1, now)

    def _find_hold(self, report: RateReport, now: float, wall: float) -> float:
        """Until when nobody sends: the end of the window where it is known, else what the service
        advises, else 1 s."""
        advised = max(report.after or 0.0, 0.0)
        left = report.seconds_left(wall)
        if self.is_windowed() and advised <= 1:
            passed = (now - self.windows.phase) % 1.0
            return now + 1 - passed
        # The service's clock may differ from ours, so it is believed for the first refusal only.
        if self.refusals == 1 and -1 < left <= 1 and left:
            return now + max(left + 0.01, 0.0)
        return now + min(advised or 1.0, LONGEST_HOLD)

    def _forget_nonsense(self, now: float) -> None:
        """A reboot restarts the clock, so that stored times lie in the future."""
        latest = max(self.last_at, self.free_at, self.hold_until, self.touched_at)
        if latest > now + LONGEST_HOLD + 1:
            self.replace_by(Schedule(touched_at=now, share=self.share))
        elif now - self.touched_at > STALE_AFTER:
            fresh = Schedule(touched_at=now, share=self.share)
            fresh.hold_until = self.hold_until
            fresh.last_at = self.last_at
            self.replace_by(fresh)

    def restart(self, now: float, hold: float, share: float = 1.0) -> "Schedule":
        """A new state after the shared one was lost, with what is known of the service: nobody
        sends for `hold` seconds. Empty if nothing is known."""
        if not self.limit:
            return Schedule(share=share)
        hold_until = max(self.hold_until, now + hold)
        empty_windows = dataclasses.replace(self.windows, number=-1.0, used=0.0, before=0.0)
        return Schedule(
            limit=self.limit,
            margin=self.margin,
            last_at=now,
            hold_until=hold_until,
            touched_at=self.touched_at,
            share=share,
            windows=empty_windows,
        )

    def replace_by(self, other: "Schedule") -> None:
        for one in dataclasses.fields(self):
            setattr(self, one.name, getattr(other, one.name))
