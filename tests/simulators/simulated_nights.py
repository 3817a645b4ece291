"""Nights over a simulated account: who is asked by which policy, and how fresh the warehouse is the next
morning.

Belongs here: the bookkeeping of a warehouse, as columns, and the policies. Not here: the account
(`simulated_account`), goals (`bench_economy`)."""

import datetime as dt
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from assets.planning.candidates import ACTIVE, NO_DAY
from assets.planning.crawl_plan import TIMELINES, Rules, plan_contacts
from marketing_api.sandbox.seed import DAY
from tests.simulators.simulated_account import START, Floats, Ints, Moments, SimulatedAccount
from warehouse.warehouse import HISTORY_DAYS

_AT = pa.timestamp("us", "UTC")


@dataclass
class Warehouse:
    """What is known after some nights; unix seconds, NaN for never. `missed`: the first unasked change."""

    asked: Floats
    missed: Floats
    row_at: Floats
    clicked_at: Floats
    pushed_at: Floats

    @classmethod
    def empty(cls, account: SimulatedAccount) -> "Warehouse":
        count = len(account)
        return cls(*(np.full(count, np.nan) for _ in range(5)))


@dataclass
class Night:
    """One night: timelines that changed in the day before it and of these asked; all that were stale and of
    these asked; the requests; how long the others had been stale (mean days); how long ago the oldest was
    asked; what planning took."""

    changed: int
    in_time: int
    stale: int
    found: int
    requests: int
    stale_days: float
    oldest_days: float
    seconds: float


Policy = Callable[["Run", float, int], Ints]


class Run:
    """A policy's weeks with an account. `budget` is in requests a night; the first night asks everybody."""

    def __init__(self, account: SimulatedAccount, policy: Policy, budget: int) -> None:
        self.account = account
        self.warehouse = Warehouse.empty(account)
        self.budget = budget
        self.today = np.empty(0, np.int64)  # what changed in the last day
        self.active_days = _first_of_day(account.visits)
        self.sendings = _sendings(account)
        self._policy = policy

    def nights(self, count: int) -> list[Night]:
        """The first night asks everybody and is not among them."""
        self._live(-np.inf, START)
        self._ask(self.listed(START), START)
        found = []
        for number in range(1, count + 1):
            now = float(START + number * DAY)
            self.today = self._live(now - DAY, now)
            began = time.perf_counter()
            asked = self._policy(self, now, self.budget)
            found.append(self._night(self.today, asked, now, time.perf_counter() - began))
        return found

    def listed(self, now: float) -> Ints:
        """Contacts that the listing shows."""
        return np.flatnonzero(self.account.registered <= now)

    def _live(self, before: float, now: float) -> Ints:
        """What has happened since the last night, as far as the warehouse can see it (and what it misses)."""
        known, account = self.warehouse, self.account
        who, when = account.changes.between(before, now)
        fresh = np.isnan(known.missed[who])
        np.fmin.at(known.missed, who[fresh], when[fresh])
        for moments, column in ((account.rows, known.row_at), (account.pushes, known.pushed_at)):
            column[moments.between(before, now)[0]] = now
        for mailing in account.mailings:
            known.clicked_at[mailing.clicks.between(before, now)[0]] = now
        return np.flatnonzero(np.bincount(who))  # distinct; np.unique takes seconds of a million

    def _night(self, changed: Ints, asked: Ints, now: float, seconds: float) -> Night:
        listed = self.listed(now)
        is_asked = np.zeros(len(self.account), bool)
        is_asked[asked] = True
        in_time = int(is_asked[changed].sum())
        stale = ~np.isnan(self.warehouse.missed[listed])
        before, found = int(stale.sum()), int((~np.isnan(self.warehouse.missed[asked])).sum())
        self._ask(asked, now)
        left = self.warehouse.missed[listed]
        waiting = (now - left[~np.isnan(left)]) / DAY
        oldest = (now - np.nanmin(self.warehouse.asked[listed])) / DAY
        return Night(
            len(changed),
            in_time,
            before,
            found,
            len(asked),
            float(waiting.mean()) if len(waiting) else 0.0,
            oldest,
            seconds,
        )

    def _ask(self, who: Ints, now: float) -> None:
        known = self.warehouse
        known.asked[who] = now
        known.missed[who] = np.nan


def everybody(run: Run, now: float, budget: int) -> Ints:
    """What common tools do; it pays no heed to a budget."""
    return run.listed(now)


def oldest_first(run: Run, now: float, budget: int) -> Ints:
    """Never asked first, then the longest ago."""
    listed = run.listed(now)
    asked = np.nan_to_num(run.warehouse.asked[listed], nan=-np.inf)
    return listed[np.argsort(asked, kind="stable")[:budget]]


def oracle(run: Run, now: float, budget: int) -> Ints:
    """Knows what has changed: asks for what changed in the last day, then for the longest missed."""
    missed = run.warehouse.missed
    is_older = ~np.isnan(missed)
    is_older[run.today] = False
    older = np.flatnonzero(is_older)
    return np.concatenate([run.today, older[np.argsort(missed[older], kind="stable")]])[:budget]


def planner(run: Run, now: float, budget: int) -> Ints:
    """This project's plan, from tables such as the warehouse gives."""
    moment = dt.datetime.fromtimestamp(now, dt.UTC)
    candidates = {TIMELINES: lambda: _people(run, now)}
    plan = plan_contacts(candidates, Rules(max_age_days=7, room=0, limit=budget), moment)
    return plan.entries[TIMELINES].keys.to_numpy(zero_copy_only=False)


def _segments(run: Run, who: Ints, now: float) -> Ints:
    return run.account.listed[who] * 2 + (run.account.inactive_at[who] > now)


def _people(run: Run, now: float) -> pa.Table:
    account, known = run.account, run.warehouse
    listed = run.listed(now)
    active = account.inactive_at[listed] > now
    listed = listed[np.lexsort((-account.registered[listed], ~active))]
    never = np.full(len(listed), np.nan)
    reached_at = _reached_at(run, now)[_segments(run, listed, now)]
    return pa.table(
        {
            "contact_id": listed,
            "registered_at": _at(account.registered[listed]),
            "first_seen_at": _at(np.maximum(account.registered[listed], START)),
            "asked_at": _at(known.asked[listed]),
            **{name: days[listed] for name, days in _active(run, now).items()},
            "row_at": _at(known.row_at[listed]),
            "clicked_at": _at(known.clicked_at[listed]),
            "list_at": _at(reached_at),
            "campaign_at": _at(np.where(_told(run, run.sendings, now)[listed], reached_at, np.nan)),
            "redeemed_at": _at(never),
            "pushed_at": _at(known.pushed_at[listed]),
        }
    )


def _first_of_day(visits: Moments) -> Moments:
    """The first visit of each contact on each day: one for every active day."""
    order = np.lexsort((visits.time, visits.contact))
    who, day = visits.contact[order], visits.time[order] // DAY
    is_first = np.ones(len(who), bool)
    is_first[1:] = (np.diff(who) != 0) | (np.diff(day) != 0)
    return Moments.of(who[is_first], visits.time[order][is_first])


def _sendings(account: SimulatedAccount) -> Moments:
    """Who got a campaign when."""
    mailings = account.mailings
    who = np.concatenate([np.empty(0, np.int64), *(mailing.recipients for mailing in mailings)])
    return Moments.of(
        who,
        np.repeat(
            [mailing.sent_at for mailing in mailings], [len(mailing.recipients) for mailing in mailings]
        ),
    )


def _told(run: Run, moments: Moments, now: float) -> Ints:
    """How many of them are in each contact's last answer."""
    who, when = moments.between(now - HISTORY_DAYS * DAY, now)
    return np.bincount(who[when <= run.warehouse.asked[who]], minlength=len(run.account))


def _active(run: Run, now: float) -> dict[str, np.ndarray]:
    """The days of each contact's last answer with something of its own: as bits, and the last one."""
    who, when = run.active_days.between(now - HISTORY_DAYS * DAY, now)
    told = when <= run.warehouse.asked[who]
    who, ago = who[told], int(now // DAY) - (when[told] // DAY).astype(np.int64)
    found = np.zeros((2, len(run.account)), np.uint64)
    for place in (0, 1):
        mine = ago // 64 == place
        np.bitwise_or.at(found[place], who[mine], np.uint64(1) << (ago[mine] % 64).astype(np.uint64))
    last = np.full(len(run.account), NO_DAY)
    np.minimum.at(last, who, ago)
    return dict(zip((*ACTIVE, "days_since_active"), (*found, last), strict=True))


def _at(seconds: Floats) -> pa.Array:
    micros = np.nan_to_num(seconds * 1e6).astype(np.int64)
    return pa.array(micros, mask=np.isnan(seconds)).cast(_AT)


def _reached_at(run: Run, now: float) -> Floats:
    """By segment: when a campaign that one of its members clicked in was first seen as sent."""
    found = np.full(2 * int(run.account.listed.max()) + 2, np.nan)
    for mailing in run.account.mailings:
        first_seen = START + np.ceil((mailing.sent_at - START) / DAY) * DAY
        if START < first_seen <= now:
            clickers = np.unique(mailing.clicks.between(-np.inf, now)[0])
            reached = np.unique(_segments(run, clickers, now)) if len(clickers) else np.arange(len(found))
            found[reached] = np.fmax(found[reached], first_seen)
    return found
