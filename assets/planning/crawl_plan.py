"""The crawl plan of one account's night: whose timelines and coupons are requested. It is made once
per run. All are requested if they fit into the night; otherwise `order` decides.

Not here: the rows that it is made from (`warehouse.warehouse`), how probable a change is
(`change_chances`), which candidates are requested first (`order`), requesting them
(`assets.fetch`)."""

import datetime as dt
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assets.planning.candidates import DAY_S, Floats, from_arrow, unix_seconds
from assets.planning.change_chances import change_chances
from assets.planning.order import (
    HALF_DAY_S,
    Order,
    Reason,
    Rules,
    by_reason,
    find_reasons,
    in_words,
    order_requests,
)
from marketing_api.clock import Clock
from marketing_api.records.contacts import GETCOUPON
from warehouse.bookkeeping import Planned
from warehouse.warehouse import Warehouse

#: The share of the rate at which responses arrive (measured: 98.9-99.4 % of the limit, and a repeat
#: now and then).
USABLE = 0.97
#: Requests that are kept for repeats and for the other assets.
_SPARE_SHARE = 0.02
_SPARE_LEAST = 5


def find_allowance(
    left: int | None, until: dt.datetime | None, now: dt.datetime, rate: float, accounts: int
) -> int | None:
    """Requests that one account may still send tonight; None: no limit.

    The lower of two limits: the requests that the run has `left` for all its accounts, and what
    `rate` requests a second allow before the run must end."""
    limits = []
    if left is not None:
        share = left // accounts
        spare = max(int(share * _SPARE_SHARE), min(_SPARE_LEAST, share // 2))
        limits.append(share - spare)
    if until is not None:
        seconds = max((until - now).total_seconds(), 0.0)
        limits.append(int(seconds * rate * USABLE))
    return min(limits, default=None)


def share_night(
    request_counts: Mapping[str, int],
    rates: Mapping[str, float],
    night_s: float,
    measured_rate: float | None,
) -> dict[str, float]:
    """Requests that fit into a night of `night_s` seconds, by account. Each account has its own
    rate, and all together have the rate that this machine achieved (None: not yet measured). The
    smallest accounts come first, so that as many accounts as possible are read completely."""
    room = {}
    left = math.inf if measured_rate is None else measured_rate * night_s
    by_size = sorted(rates, key=lambda name: request_counts.get(name, 0))
    for place, account in enumerate(by_size):
        fair_share = left / (len(rates) - place)
        room[account] = min(rates[account] * night_s, fair_share)
        left -= min(room[account], request_counts.get(account, 0))
    return room


#: Days for which a campaign is young after it was created or its totals changed. Statistics of
#: young campaigns are requested every night, of others every week.
YOUNG_DAYS = 30


@dataclass(frozen=True)
class CampaignPlan:
    """The campaigns whose statistics are fetched as (id, type), the newest first; `counts`: how
    many by reason; `due_at`: when the next statistics are due."""

    campaigns: list[tuple[int, str]]
    counts: dict[Reason, int]
    total: int
    due_at: dt.datetime


def plan_campaigns(rows: pa.Table, now: dt.datetime, rules: Rules) -> CampaignPlan:
    """Statistics that were never fetched, whose campaign changed in the listing since, or that are
    a day old (of young campaigns) or a week."""
    moment = now.timestamp()
    requested = unix_seconds(rows["asked_at"], moment)
    created = unix_seconds(rows["created_at"], moment)
    moved = unix_seconds(rows["moved_on"], moment)
    is_old = np.fmax(created, moved) < moment - YOUNG_DAYS * DAY_S  # False if the age is unknown
    max_age_s = np.where(is_old, 7, 1) * DAY_S
    conditions = {
        Reason.NEW: np.isnan(requested),
        Reason.ROW: unix_seconds(rows["row_at"], moment) > requested,
        Reason.DUE: requested + max_age_s - moment < HALF_DAY_S,
        Reason.ROOM: np.full(len(rows), rules.requests_all),
    }
    reasons = np.select(list(conditions.values()), list(conditions), -1)
    is_chosen = reasons >= 0
    due = np.where(is_chosen, moment, requested) + max_age_s
    chosen = rows.filter(pa.array(is_chosen))
    return CampaignPlan(
        list(zip(chosen["campaign_id"].to_pylist(), chosen["type"].to_pylist(), strict=True)),
        by_reason(reasons[is_chosen]),
        len(rows),
        _find_earliest(due, moment + 7 * DAY_S),
    )


def _find_earliest(moments: Floats, latest: float) -> dt.datetime:
    """The earliest of the moments (unix seconds), and `latest` if none is before it."""
    return dt.datetime.fromtimestamp(np.min(moments, initial=latest), dt.UTC)


TIMELINES = "timelines"
COUPONS = "coupons"
#: The column that is the key of a request.
_KEYS = {TIMELINES: "contact_id", COUPONS: "email"}


@dataclass(frozen=True)
class PlanEntry:
    """What is requested for one asset: `keys` in the order of the requests, each with its reason
    (the number of a Reason) and its chance of something new. `total`: the number of candidates.
    Candidates that are left out: `late` pass the maximum age before the next night, `waiting` were
    never requested. `due_at`: when the next candidate is due after this night."""

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

    def to_table(self) -> pa.Table:
        names = pa.array(list(map(str, Reason)))
        reasons = names.take(pa.array(self.reasons))
        return pa.table({"key": self.keys, "reason": reasons, "chance": self.chance})

    @property
    def not_due(self) -> int:
        return self.total - len(self.keys) - self.late - self.waiting

    @property
    def summary(self) -> str:
        """How many are requested and why, and how many can wait: for the log and the terminal."""
        planned = f"{len(self.keys):,} of {self.total:,} planned ({in_words(self.counts)})"
        if not self.not_due:
            return planned
        return f"{planned}; {self.not_due:,} can wait, `--all` reads them too"

    @property
    def is_whole(self) -> bool:
        """Whether everything is requested that the maximum age requires."""
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
    """The entries by asset. `needed`: requests that keep the maximum age tonight; `steady`: the
    same every night if nothing changes."""

    entries: Mapping[str, PlanEntry] = field(default_factory=dict)
    needed: int = 0
    steady: int = 0

    @property
    def requests(self) -> int:
        return sum(len(entry.keys) for entry in self.entries.values())


def plan_contacts(
    candidates: Mapping[str, Callable[[], pa.Table]], rules: Rules, now: dt.datetime
) -> ContactPlan:
    """Which contacts to request tonight. The same tables and rules give the same plan.

    `candidates` are read asset by asset, and only their figures are kept: a million rows of one
    asset are freed before the next is read."""
    moment = now.timestamp()
    max_age_s = rules.max_age_days * DAY_S
    parts = {name: _read_part(name, read(), max_age_s, moment) for name, read in candidates.items()}
    if not parts:
        return ContactPlan()
    _, *columns = zip(*parts.values(), strict=True)
    requested, deadline, chance, why = map(np.concatenate, columns)
    found = order_requests(requested, deadline, chance, why, moment, rules)
    entries = {}
    first = 0
    for name, part in parts.items():
        entries[name] = part.make_entry(found, first, moment + max_age_s)
        first += len(part.keys)
    steady = math.ceil(first / rules.max_age_days)
    return ContactPlan(entries, found.needed, steady)


def _read_part(asset: str, rows: pa.Table, max_age_s: float, now: float) -> "_Part":
    candidates = from_arrow(rows, max_age_s, now)
    return _Part(
        rows[_KEYS[asset]],
        candidates.requested,
        candidates.deadline,
        change_chances(candidates, now),
        find_reasons(candidates),
    )


class _Part(NamedTuple):
    """The candidates of one asset, as columns."""

    keys: pa.ChunkedArray
    requested: Floats
    deadline: Floats
    chance: Floats
    why: npt.NDArray[np.int8]

    def make_entry(self, found: Order, first: int, next_due: float) -> PlanEntry:
        """This part of an order over all parts; it begins at position `first`."""
        end = first + len(self.keys)
        is_mine = (found.positions >= first) & (found.positions < end)
        positions = found.positions[is_mine] - first
        due = np.delete(self.deadline, positions)
        return PlanEntry(
            keys=self.keys.take(pa.array(positions)).combine_chunks(),
            reasons=found.reasons[is_mine],
            chance=self.chance[positions],
            total=len(self.keys),
            late=int(found.is_late[first:end].sum()),
            waiting=int(found.is_waiting[first:end].sum()),
            due_at=_find_earliest(due, next_due),
        )


@dataclass
class Planner:
    """Makes the plans of one account. `assets`: which of TIMELINES and COUPONS are fetched.
    `find_rules` is called when the plan is made, since other requests use up the limit until then.

    Thread-safe: the first thread that needs a plan makes it, others wait.
    """

    warehouse: Warehouse
    account: str
    find_rules: Callable[[], Rules]
    assets: Sequence[str]
    now: Clock
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _made_at: dt.datetime = field(init=False)
    _contacts: ContactPlan | None = None

    def make_contact_plan(self) -> ContactPlan:
        """Timelines and coupons."""
        with self._lock:
            if self._contacts is None:
                self._made_at = now = self.now()
                candidates = {name: partial(self.find_candidates, name) for name in self.assets}
                self._contacts = plan_contacts(candidates, self.find_rules(), now)
            return self._contacts

    def make_campaign_plan(self) -> CampaignPlan:
        rows = self.warehouse.find_rows("campaign_candidates", self.account)
        return plan_campaigns(rows, self.now(), self.find_rules())

    def find_candidates(self, asset: str) -> pa.Table:
        """The rows of every contact that could be requested when the plan was made."""
        if asset == TIMELINES:
            return self.warehouse.timeline_candidates(self.account, self._made_at)
        return self.warehouse.coupon_candidates(self.account, self.refused_as_nothing())

    def refused_as_nothing(self) -> set[int]:
        """The errorCodes of earlier runs by which the service reports that an address has no
        coupons (`assets.result`)."""
        return self.warehouse.refused_as_nothing(self.account, GETCOUPON.name)

    def export_plan(self) -> Planned | None:
        """The plan for contacts, for `sync.plans`; None if there is none."""
        with self._lock:
            if self._contacts is None:
                return None
            tables = {name: entry.to_table() for name, entry in self._contacts.entries.items()}
            return Planned(self.account, self._made_at, tables)
