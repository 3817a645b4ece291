"""The crawl plan of one account's night: whose timelines and coupons are requested, made once per
run. All of them, as long as they fit into the night; above that `order` decides.

Not here: what it is made from (`warehouse.warehouse`), how probable a change is (`change_chances`),
which candidates are requested first (`order`), requesting them (`assets.fetch`)."""

import datetime as dt
import math
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assets.planning.candidates import (
    DAY_S,
    Floats,
    from_arrow,
    unix_seconds,
)
from assets.planning.change_chances import change_chances
from assets.planning.order import (
    HALF_DAY_S,
    REASONS,
    Order,
    Reason,
    Rules,
    by_reason,
    find_reasons,
    in_words,
    order_requests,
)
from marketing_api.records.contacts import GETCOUPON
from warehouse.bookkeeping import Planned
from warehouse.warehouse import Warehouse

#: Of a night's seconds times its rate, so much arrives as responses (measured: 98.9-99.4 % of the
#: limit, and a repeat now and then).
USABLE = 0.97
#: Kept back for repeats and for what the other assets still request.
_SPARE_SHARE = 0.02
_SPARE_LEAST = 5


def find_allowance(
    left: int | None, until: dt.datetime | None, now: dt.datetime, rate: float, *, accounts: int = 1
) -> int | None:
    """Requests that one account may still send tonight; None: no limit.

    From those that the run has `left` for all its accounts and, at `rate` a second, the moment it
    must end, whichever is less."""
    limits = []
    if left is not None:
        share = left // max(accounts, 1)
        limits.append(share - max(int(share * _SPARE_SHARE), min(_SPARE_LEAST, share // 2)))
    if until is not None:
        limits.append(int(max((until - now).total_seconds(), 0.0) * rate * USABLE))
    return min(limits, default=None)


def next_moment(at: dt.time, zone: str, now: dt.datetime) -> dt.datetime:
    """The next time that a clock in the zone shows `at`."""
    today = now.astimezone(ZoneInfo(zone)).date()
    moments = (
        dt.datetime.combine(today + dt.timedelta(days), at, ZoneInfo(zone)).astimezone(dt.UTC)
        for days in (0, 1)
    )
    return next(moment for moment in moments if moment > now)


def share_night(
    request_counts: Mapping[str, int],
    rates: Mapping[str, float],
    night_s: float,
    measured_rate: float | None,
) -> dict[str, float]:
    """Requests that fit into a night of so many seconds, by account: at its own rate, and over all
    accounts at the rate that this machine was measured at (None: not yet). The smallest accounts
    come first, so that as many accounts as possible are read whole."""
    room = {account: rate * night_s for account, rate in rates.items()}
    left = math.inf if measured_rate is None else measured_rate * night_s
    for place, account in enumerate(sorted(room, key=lambda name: request_counts.get(name, 0))):
        room[account] = min(room[account], left / (len(room) - place))
        left -= min(room[account], request_counts.get(account, 0))
    return room


#: Days for which a campaign is young after it was made or its totals moved. Statistics of young
#: campaigns are requested every night, of others every week.
YOUNG_DAYS = 30


@dataclass(frozen=True)
class CampaignPlan:
    """The campaigns whose statistics are fetched as (id, type), the newest first; `counts`: how
    many by reason; `due_at`: when the first of all is due next."""

    campaigns: list[tuple[int, str]]
    counts: dict[Reason, int]
    total: int
    due_at: dt.datetime


def plan_campaigns(rows: pa.Table, now: dt.datetime, rules: Rules) -> CampaignPlan:
    """Statistics that were never fetched, whose campaign changed in the listing since, or that are
    a day old (of young campaigns) or a week."""
    moment = now.timestamp()
    requested, row_at, created, moved = (
        unix_seconds(rows[name], moment)
        for name in ("asked_at", "row_at", "created_at", "moved_on")
    )
    is_old = np.fmax(created, moved) < moment - YOUNG_DAYS * DAY_S  # one of unknown age is young
    max_age_s = np.where(is_old, 7, 1) * DAY_S
    conditions = {
        Reason.NEW: np.isnan(requested),
        Reason.ROW: row_at > requested,
        Reason.DUE: requested + max_age_s - moment < HALF_DAY_S,
        Reason.ROOM: np.full(len(rows), rules.requests_all),
    }
    chosen = np.logical_or.reduce(list(conditions.values()))
    reasons = np.select(
        list(conditions.values()), [REASONS.index(reason) for reason in conditions]
    )[chosen]
    ids = rows["campaign_id"].to_pylist()
    types = rows["type"].to_pylist()
    next_due = np.min(np.where(chosen, moment, requested) + max_age_s, initial=moment + 7 * DAY_S)
    return CampaignPlan(
        [(ids[place], types[place]) for place in np.flatnonzero(chosen)],
        by_reason(reasons),
        len(rows),
        dt.datetime.fromtimestamp(float(next_due), dt.UTC),
    )


TIMELINES = "timelines"
COUPONS = "coupons"
#: The column that is the key of a request.
_KEYS = {TIMELINES: "contact_id", COUPONS: "email"}


@dataclass(frozen=True)
class PlanEntry:
    """What is requested for one asset: `keys` in the order of the requests, each with its reason
    (index into REASONS) and its chance of something new, of the `total` that could be. `late` and
    `waiting` are left out although they pass the maximum age before the next night, or were never
    requested. `due_at`: when, after this night, the first of all is due."""

    keys: pa.Array
    reasons: npt.NDArray[np.int8]
    chance: Floats
    total: int
    late: int
    waiting: int
    due_at: dt.datetime

    @property
    def counts(self) -> dict[Reason, int]:
        return by_reason(self.reasons)

    @property
    def not_due(self) -> int:
        return self.total - len(self.keys) - self.late - self.waiting

    @property
    def summary(self) -> str:
        """How many are requested and why, and that the others can wait: for the log and the
        terminal."""
        rest = f"; {self.not_due:,} can wait, `--all` reads them too" if self.not_due else ""
        return f"{len(self.keys):,} of {self.total:,} planned ({in_words(self.counts)}){rest}"

    @property
    def is_whole(self) -> bool:
        """Nothing is left out that the maximum age requires."""
        return not self.late and not self.waiting

    @property
    def shortfall(self) -> str:
        parts = {"never requested yet": self.waiting, "older than they may be": self.late}
        left_out = " and ".join(f"{count:,} {what}" for what, count in parts.items() if count)
        return (
            f"the budget leaves out {left_out}, of {self.total:,}; `marketing-sync sync --dry-run` "
            "shows what would be needed"
        )


@dataclass(frozen=True)
class ContactPlan:
    """The entries by asset; `needed` requests keep the maximum age tonight, `steady` every night
    when nothing changes."""

    entries: Mapping[str, PlanEntry] = field(default_factory=dict)
    limit: int | None = None
    needed: int = 0
    steady: int = 0

    @property
    def requests(self) -> int:
        return sum(len(entry.keys) for entry in self.entries.values())


def plan_contacts(
    candidates: Mapping[str, Callable[[], pa.Table]], rules: Rules, now: dt.datetime
) -> ContactPlan:
    """Which contacts to request tonight. The same tables and rules give the same plan.

    `candidates` are read asset by asset, and only their figures kept: a million rows of one need no
    room while another's are read."""
    parts = {
        name: _Part(_KEYS[name], read(), rules, now.timestamp())
        for name, read in candidates.items()
    }
    if not parts:
        return ContactPlan(limit=rules.limit)
    requested, deadline, chance, why = (
        np.concatenate([getattr(part, name) for part in parts.values()])
        for name in ("requested", "deadline", "chance", "why")
    )
    found = order_requests(requested, deadline, chance, why, now.timestamp(), rules)
    entries = {}
    first = 0
    for name, part in parts.items():
        entries[name] = part.make_entry(found, first)
        first += len(part.deadline)
    return ContactPlan(entries, rules.limit, found.needed, int(np.ceil(first / rules.max_age_days)))


class _Part:
    """The candidates of one asset with their chances; of the rows it keeps the keys."""

    def __init__(self, key: str, rows: pa.Table, rules: Rules, now: float) -> None:
        self._keys = rows[key]
        max_age_s = rules.max_age_days * DAY_S
        self._due_next = now + max_age_s
        candidates = from_arrow(rows, max_age_s, now)
        self.chance = change_chances(candidates, now)
        self.why = find_reasons(candidates)
        self.requested = candidates.requested
        self.deadline = candidates.deadline

    def make_entry(self, found: Order, first: int) -> PlanEntry:
        """This part of an order over all parts, of which it begins at position `first`."""
        here = slice(first, first + len(self.deadline))
        mine = (found.positions >= first) & (found.positions < here.stop)
        positions = found.positions[mine] - first
        left = np.ones(len(self.deadline), bool)
        left[positions] = False
        due_at = float(np.min(self.deadline[left], initial=self._due_next))
        return PlanEntry(
            keys=self._keys.take(pa.array(positions)).combine_chunks(),
            reasons=found.reasons[mine],
            chance=self.chance[positions],
            total=len(self.deadline),
            late=int(found.is_late[here].sum()),
            waiting=int(found.is_waiting[here].sum()),
            due_at=dt.datetime.fromtimestamp(due_at, dt.UTC),
        )


CAMPAIGN_STATS = "campaign_stats"


@dataclass
class Planner:
    """Makes the plans of one account. `assets`: those of TIMELINES and COUPONS that are to be
    fetched. `find_rules` is called when the plan is made, as other requests use up the limit until
    then.

    Thread-safe: the first that needs a plan makes it, others wait.
    """

    warehouse: Warehouse
    account: str
    find_rules: Callable[[], Rules]
    assets: Collection[str]
    now: Callable[[], dt.datetime]
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _made_at: dt.datetime | None = None
    _contacts: ContactPlan | None = None

    def make_contact_plan(self) -> ContactPlan:
        """Timelines and coupons."""
        with self._lock:
            if self._contacts is None:
                self._made_at = self.now()
                candidates = {
                    name: partial(self.find_candidates, name)
                    for name in (TIMELINES, COUPONS)
                    if name in self.assets
                }
                self._contacts = plan_contacts(candidates, self.find_rules(), self._made_at)
            return self._contacts

    def make_campaign_plan(self) -> CampaignPlan:
        rows = self.warehouse.find_rows("campaign_candidates", self.account)
        return plan_campaigns(rows, self.now(), self.find_rules())

    def find_candidates(self, asset: str) -> pa.Table:
        """The rows of all that could be requested (`warehouse.warehouse`)."""
        if asset == TIMELINES:
            return self.warehouse.timeline_candidates(self.account, self._made_at or self.now())
        return self.warehouse.coupon_candidates(self.account, self.refused_as_nothing())

    def refused_as_nothing(self) -> set[int]:
        """The errorCodes of earlier runs by which the service reports that an address has no
        coupons (`assets.result`)."""
        return self.warehouse.refused_as_nothing(self.account, GETCOUPON.name)

    def export_plan(self) -> Planned | None:
        """What was planned for contacts, for `sync.plans`; None when nothing was."""
        with self._lock:
            if self._made_at is None or self._contacts is None:
                return None
            names = pa.array([str(reason) for reason in REASONS])
            tables = {
                name: pa.table(
                    {
                        "key": entry.keys,
                        "reason": names.take(pa.array(entry.reasons)),
                        "chance": entry.chance,
                    }
                )
                for name, entry in self._contacts.entries.items()
            }
            return Planned(self.account, self._made_at, tables)
