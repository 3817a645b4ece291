"""The crawl plan of one account's night: whom to request, within the allowance, made once per run.

Not here: what it is made from (`warehouse.warehouse`), how probable a change is (`change_chances`), which
candidates are requested first (`order`), requesting them (`assets.fetch`)."""

import datetime as dt
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assets.planning.candidates import (
    DAY_S,
    Deadlines,
    Floats,
    from_arrow,
    noticed_by,
    requested_by,
    unix_seconds,
)
from assets.planning.change_chances import change_chances
from assets.planning.order import (
    REASONS,
    Order,
    Reason,
    by_reason,
    find_reasons,
    in_full,
    in_words,
    order_requests,
)
from marketing_api.records.contacts import GETCOUPON
from warehouse.bookkeeping import Planned
from warehouse.warehouse import Warehouse

#: Of a night's seconds times its rate, so much arrives as responses (measured: 98.9-99.4 % of the limit, and
#: a repeat now and then).
USABLE = 0.97
#: Kept back for repeats and for what the other assets still request.
_SPARE_SHARE, _SPARE_LEAST = 0.02, 5


def find_allowance(
    left: int | None, until: dt.datetime | None, now: dt.datetime, rate: float, *, accounts: int = 1
) -> int | None:
    """Requests that one account may still send tonight; None: no limit.

    From those that the run has `left` for all its accounts and, at `rate` a second, the moment it must end,
    whichever is less."""
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


@dataclass(frozen=True)
class Rules:
    """What a night has to keep to. `limit` is in requests (None: as many as are worth it)."""

    max_age: dt.timedelta = dt.timedelta(days=7)
    limit: int | None = None
    requests_all: bool = False


#: (days since a campaign was made or its totals moved last, how old its statistics may be in days); the last
#: one is for all others.
AGE_RULE: tuple[tuple[float, float], ...] = ((30, 1), (180, 7), (float("inf"), 30))


@dataclass(frozen=True)
class CampaignPlan:
    """The campaigns whose statistics are fetched as (id, type), the newest first; `counts`: how many by
    reason; `due_at`: when the first of all is due next."""

    campaigns: list[tuple[int, str]]
    counts: dict[Reason, int]
    total: int
    due_at: dt.datetime


def plan_campaigns(rows: pa.Table, now: dt.datetime, rules: Rules) -> CampaignPlan:
    """Young campaigns every night, old ones weekly, very old ones monthly: never fetched, changed in the
    listing since, or as old as the age rule allows; of those with time left, an even share a night."""
    moment = now.timestamp()
    ages = max_ages(rows, moment) * DAY_S
    requested = requested_by(unix_seconds(rows["asked_at"]), moment, ages)
    is_changed = noticed_by(unix_seconds(rows["row_at"]), moment) > requested
    deadline = np.where(np.isnan(requested), moment, requested) + ages
    calls = Deadlines(requested, deadline)
    why = np.full(len(calls), REASONS.index(Reason.ROW), np.int8)
    found = (
        in_full(calls)
        if rules.requests_all
        else order_requests(calls, is_changed.astype(float), why, moment, limit=None)
    )
    chosen = np.zeros(len(calls), bool)
    chosen[found.positions] = True
    ids, types = rows["campaign_id"].to_pylist(), rows["type"].to_pylist()
    picked = [(ids[at], types[at]) for at in np.flatnonzero(chosen)]
    next_due = float(
        np.min(np.where(chosen, moment + ages, deadline), initial=moment + AGE_RULE[-1][1] * DAY_S)
    )
    return CampaignPlan(
        picked, by_reason(found.reasons), len(rows), dt.datetime.fromtimestamp(next_due, dt.UTC)
    )


def max_ages(rows: pa.Table, now: float) -> Floats:
    """Days that each campaign's statistics may be old, by `AGE_RULE`. One of unknown age counts as young."""
    alive = np.fmax(np.fmax(unix_seconds(rows["created_at"]), unix_seconds(rows["moved_on"])), -np.inf)
    days = (now - np.where(np.isfinite(alive), alive, now)) / DAY_S
    limits, ages = (np.array(column) for column in zip(*AGE_RULE, strict=True))
    return ages[np.searchsorted(limits, np.maximum(days, 0.0), side="left")]


TIMELINES, COUPONS = "timelines", "coupons"
#: The column that is the key of a request.
_KEYS = {TIMELINES: "contact_id", COUPONS: "email"}


@dataclass(frozen=True)
class PlanEntry:
    """What is requested for one asset: `keys` in the order of the requests, each with its reason (index into
    REASONS) and its chance of something new, of the `total` that could be. `late` and `waiting` are left out
    although they pass the maximum age before the next night, or were never requested. `due_at`: when, after
    this night, the first of all is due."""

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
        """How many are requested and why, and that the others are not due: for the run's log and the
        terminal."""
        rest = f"; {self.not_due:,} are not due, `--all` requests them too" if self.not_due else ""
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
            f"the budget leaves out {left_out}, of {self.total:,}; `marketing-sync sync --dry-run` shows "
            "what would be needed"
        )


@dataclass(frozen=True)
class ContactPlan:
    """The entries by asset; `needed` requests keep the maximum age tonight, `steady` every night when nothing
    changes."""

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

    `candidates` are read asset by asset, and only their figures kept: a million rows of one need no room
    while another's are read."""
    parts = {name: _Part(_KEYS[name], read(), rules, now.timestamp()) for name, read in candidates.items()}
    if not parts:
        return ContactPlan(limit=rules.limit)
    together = Deadlines(
        *(
            np.concatenate([getattr(part.deadlines, name) for part in parts.values()])
            for name in ("requested", "deadline")
        )
    )
    if rules.requests_all:
        found = in_full(together)
    else:
        chance, why = (
            np.concatenate([getattr(part, name) for part in parts.values()]) for name in ("chance", "why")
        )
        found = order_requests(together, chance, why, now.timestamp(), limit=rules.limit)
    entries, first = {}, 0
    for name, part in parts.items():
        entries[name] = part.make_entry(found, first)
        first += len(part.deadlines)
    nights = max(rules.max_age / dt.timedelta(days=1), 1.0)
    return ContactPlan(entries, rules.limit, found.needed, int(np.ceil(first / nights)))


class _Part:
    """The candidates of one asset with their chances; of the rows it keeps the keys."""

    def __init__(self, key: str, rows: pa.Table, rules: Rules, now: float) -> None:
        self._keys = rows[key]
        self._again = now + rules.max_age.total_seconds()
        candidates = from_arrow(rows, rules.max_age, now)
        self.chance = change_chances(candidates, now)
        self.why = find_reasons(candidates)
        self.deadlines = Deadlines(candidates.requested, candidates.deadline)

    def make_entry(self, found: Order, first: int) -> PlanEntry:
        """This part of an order over all parts, of which it begins at position `first`."""
        here = slice(first, first + len(self.deadlines))
        mine = (found.positions >= first) & (found.positions < here.stop)
        positions = found.positions[mine] - first
        left = np.ones(len(self.deadlines), bool)
        left[positions] = False
        due_at = float(np.min(self.deadlines.deadline[left], initial=self._again))
        return PlanEntry(
            keys=self._keys.take(pa.array(positions)).combine_chunks(),
            reasons=found.reasons[mine],
            chance=self.chance[positions],
            total=len(self.deadlines),
            late=int(found.is_late[here].sum()),
            waiting=int(found.is_waiting[here].sum()),
            due_at=dt.datetime.fromtimestamp(due_at, dt.UTC),
        )


CAMPAIGN_STATS = "campaign_stats"
#: Contacts from which on accounts are planned one after the other, for the memory it takes; smaller ones wait
#: for the file together.
_LARGE, _ONE_LARGE = 50_000, threading.Lock()


@dataclass
class Planner:
    """`assets`: those of TIMELINES and COUPONS that are to be fetched. `allowance` says how many requests may
    be sent, when it is called.

    Thread-safe: whoever needs a plan first makes it, others wait.
    """

    warehouse: Warehouse
    account: str
    rules: Rules
    assets: Collection[str]
    allowance: Callable[[], int | None]
    now: Callable[[], dt.datetime]
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _made_at: dt.datetime | None = None
    _contacts: ContactPlan | None = (
        None  # a cached_property would have the accounts wait for each other (Python 3.11)
    )
    _campaigns: CampaignPlan | None = None

    def make_contact_plan(self) -> ContactPlan:
        """Timelines and coupons under what is left of the budget."""
        with self._lock:
            if self._contacts is None:
                self._contacts = self._plan_contacts()
            return self._contacts

    def make_campaign_plan(self) -> CampaignPlan:
        with self._lock:
            if self._campaigns is None:
                rows = self.warehouse.find_rows("campaign_candidates", self.account)
                self._campaigns = plan_campaigns(rows, self.now(), self.rules)
            return self._campaigns

    def find_candidates(self, asset: str) -> pa.Table:
        """The rows of all that could be requested (`warehouse.warehouse`)."""
        if asset == TIMELINES:
            return self.warehouse.timeline_candidates(self.account, self._made_at or self.now())
        return self.warehouse.coupon_candidates(self.account, self.refused_as_nothing())

    def refused_as_nothing(self) -> set[int]:
        """The errorCodes of earlier runs by which the service reports that an address has no coupons
        (`assets.result`)."""
        return self.warehouse.refused_as_nothing(self.account, GETCOUPON.name)

    def _plan_contacts(self) -> ContactPlan:
        rules = replace(self.rules, limit=self.allowance())
        counted = self.warehouse.run_query(
            "select count(*) from source.contacts where account = ?", [self.account]
        )
        size = counted.column(0)[0].as_py()
        self._made_at = self.now()
        # Each closes the file again: what DuckDB needed for a million rows is free before planning needs as
        # much.
        candidates = {
            name: partial(self.find_candidates, name) for name in (TIMELINES, COUPONS) if name in self.assets
        }
        with _ONE_LARGE if size > _LARGE else nullcontext():
            return plan_contacts(candidates, rules, self._made_at)

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
