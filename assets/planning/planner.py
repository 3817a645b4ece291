"""One account's plans of one run: reads what planning needs, makes each plan once, and tells afterwards what came of it.

Not here: the plans themselves (`plan`, `campaigns`), asking (`assets.ask`).
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property, partial

import pyarrow as pa

from assets.planning.budget import Allowance
from assets.planning.campaigns import CampaignPlan, plan_campaigns
from assets.planning.order import REASONS
from assets.planning.plan import COUPONS, TIMELINES, ContactPlan, Inputs, Line, Rules, plan_contacts
from assets.refusals import CONTRADICTING, FEWEST
from marketing_api.operations.contacts import GETCOUPON
from warehouse.bookkeeping import Planned
from warehouse.warehouse import Warehouse

#: Observations of campaigns that are looked back at: with nothing asked for longer the age alone speaks for asking.
_WAVE_DAYS = 60
CAMPAIGN_STATS = "campaign_stats"


@dataclass(frozen=True)
class PlanSettings:
    """What the settings and the person say; see `pipelines.settings`."""

    max_age: dt.timedelta = dt.timedelta(days=7)
    asks_everybody: bool = False
    seed: int = 1


@dataclass
class Planner:
    """`questions`: those of `plan.TIMELINES` and `COUPONS` that are to be asked. `allowance` says what may be spent, when it is called.

    Thread-safe: whoever needs a plan first makes it, others wait.
    """

    warehouse: Warehouse
    account: str
    settings: PlanSettings
    questions: Collection[str]
    allowance: Callable[[], Allowance]
    now: Callable[[], dt.datetime]
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _made_at: dt.datetime | None = None

    def contacts(self) -> ContactPlan:
        """Timelines and coupons under what is left of the budget."""
        with self._lock:
            return self._contacts

    def campaigns(self) -> CampaignPlan:
        """Campaign statistics."""
        with self._lock:
            return self._campaigns

    def line(self, question: str) -> Line:
        """The plan's line of one question."""
        return self.contacts().lines[question]

    def people(self, question: str) -> pa.Table:
        """The rows of everybody who could be asked (`warehouse.candidates`)."""
        if question == TIMELINES:
            return self.warehouse.timeline_candidates(self.account)
        nothing = self.warehouse.refused_as_nothing(self.account, GETCOUPON.name, FEWEST, CONTRADICTING)
        return self.warehouse.coupon_candidates(self.account, nothing)

    @cached_property
    def _contacts(self) -> ContactPlan:
        rules = Rules(self.settings.max_age, self.allowance().requests, self.settings.asks_everybody, self.settings.seed)
        with self.warehouse.reading():
            tables = (
                self.warehouse.campaign_waves(self.account, _WAVE_DAYS),
                self.warehouse.campaign_reach(self.account),
                self.warehouse.plan_yields(self.account),
            )
        self._made_at = self.now()
        # Each closes the file again: what DuckDB needed for a million rows is free before planning needs as much.
        people = {name: partial(self.people, name) for name in (TIMELINES, COUPONS) if name in self.questions}
        return plan_contacts(Inputs(people, *tables), rules, self._made_at)

    @cached_property
    def _campaigns(self) -> CampaignPlan:
        rows = self.warehouse.campaign_candidates(self.account)
        return plan_campaigns(rows, self.now(), seed=self.settings.seed, asks_everybody=self.settings.asks_everybody)

    def planned(self) -> Planned | None:
        """What was planned for contacts, for `sync.plans`; None when nothing was."""
        with self._lock:
            if self._made_at is None:
                return None
            names = pa.array([str(reason) for reason in REASONS])
            lines = {
                name: pa.table({"key": line.keys, "reason": names.take(pa.array(line.reasons)), "expected": line.expected})
                for name, line in self._contacts.lines.items()
            }
            return Planned(self.account, self._made_at, lines)
