"""What is planned and what came of it, in figures that agree and in words: `plan`, the end of a sync, `status`.

Not here: planning (`assets.planning`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assets.planning.plan import ContactPlan
from assets.reader import Reader
from warehouse.loads.coverage import GRACE

#: The last plan of each account, by question.
LAST_PLANS = """
    with runs as (select account, question, arg_max(run_id, planned_at) as run_id from sync.plans group by all),
    lines as (from sync.plans join runs using (account, question, run_id))
    select account, question, max(planned_at) as planned_at, sum(planned_count)::bigint as planned, sum(asked_count)::bigint as asked,
        sum(changed_count)::bigint as changed, string_agg(reason || ' ' || planned_count, ', ' order by planned_count desc) as why
    from lines group by account, question order by account, question
"""

#: What is not planned question by question. Nothing else is asked before it is there.
LISTINGS = "listings and details"


@dataclass(frozen=True)
class Night:
    """What one account's night would ask without a budget (`wanted`) and what of it is asked within `allowed` requests (None: no budget).

    Requests by question, in the order of asking. `plan` is the contacts' under what the budget leaves them.
    """

    wanted: Mapping[str, int]
    asked: Mapping[str, int]
    allowed: int | None
    plan: ContactPlan
    asks_everybody: bool = False

    @property
    def left_out(self) -> dict[str, int]:
        return {name: count - self.asked[name] for name, count in self.wanted.items() if count > self.asked[name]}

    def sentences(self, rate: float, max_age_days: int) -> Iterator[str]:
        """What the night would ask, what the budget allows, what stays out, and whether the maximum age can be kept."""
        whole, asked = sum(self.wanted.values()), sum(self.asked.values())
        takes = f"{dt.timedelta(seconds=round(asked / rate))} at {rate:,.1f} a second"
        if self.allowed is None:
            yield f"the night would ask {whole:,} requests, {takes}"
        else:
            allowed = f"the budget allows {self.allowed:,} beside room for repeats"
            yield f"the night would ask {whole:,} requests; {allowed}, so it asks {asked:,}, {takes}"
        if self.left_out:
            parts = ", ".join(f"{count:,} of {name}" for name, count in self.left_out.items())
            yield f"{sum(self.left_out.values()):,} stay out for another night: {parts}"
        if LISTINGS in self.left_out:
            yield "as long as listings are left out, nobody who is new is noticed"
        yield self._age(max_age_days)

    def _age(self, max_age_days: int) -> str:
        plan, limit = self.plan, self.plan.limit
        late, waiting = (sum(getattr(line, name) for line in plan.lines.values()) for name in ("late", "waiting"))
        if late or waiting:
            parts = {f"get older than {max_age_days} days": late, "are still never asked": waiting}
            why = " and ".join(f"{count:,} {what}" for what, count in parts.items() if count)
            takes = f"it would take {plan.needed:,} requests for timelines and coupons tonight"
            return f"the maximum age cannot be kept with this budget: {why}; {takes}{_age_for(plan, max_age_days)}"
        if self.asks_everybody and limit is not None and limit < plan.requests:
            return f"who gets older than {max_age_days} days depends on who stays out: --all asks the newest first"
        if limit is not None and limit < max(plan.needed, plan.steady):
            takes = f"that takes {plan.steady:,} requests for timelines and coupons, and the budget leaves {limit:,}"
            return f"nobody gets older than {max_age_days} days tonight, but not every night: {takes}{_age_for(plan, max_age_days)}"
        if LISTINGS in self.left_out:
            return "whether the maximum age can be kept is not known before the listings are there"
        return f"the maximum age is kept: nobody's timeline and coupons get older than {max_age_days} days"


def _age_for(plan: ContactPlan, max_age_days: int) -> str:
    """The maximum age that the limit can keep: in so many nights it asks everybody."""
    if not plan.limit or plan.limit >= plan.steady:
        return ""
    return f"; MARKETING_MAX_AGE_DAYS={-(-plan.steady * max_age_days // plan.limit)} can be kept"


def night(before: Mapping[str, int], whole: ContactPlan, plan: ContactPlan, allowed: int | None, *, asks_everybody: bool = False) -> Night:
    """`before`: what is asked first, by question. `whole` is planned without the budget, `plan` with what `before` leaves of it."""
    planned = {**before, **{name: len(line.keys) for name, line in plan.lines.items()}}
    wanted = {**before, **{name: max(len(line.keys), planned[name]) for name, line in whole.lines.items()}}
    asked, left = {}, allowed
    for name, count in planned.items():
        asked[name] = count if left is None else min(count, left)
        left = None if left is None else left - asked[name]
    return Night(wanted, asked, allowed, plan, asks_everybody)


def planned_by(reader: Reader) -> Iterator[str]:
    """One line per account and question: how many were asked and why, and that the others were not due."""
    for (asset, account), result in reader.results.items():
        if result.line is not None:
            yield f"account {account}, {asset}: {result.line.words}"


def last_plan(row: Mapping[str, Any]) -> str:
    """One row of `LAST_PLANS`."""
    return (
        f"account {row['account']}, {row['question']}: the last plan had {row['planned']:,} ({row['why']}); "
        f"{row['asked']:,} came, {row['changed']:,} of them with something new"
    )


def due(moment: dt.datetime | None, now: dt.datetime) -> str:
    """When a table is to be read again."""
    if moment is None:
        return ""
    if moment + GRACE < now:
        return "late"
    hours = max((moment - now).total_seconds() / 3600, 0)
    return f"in {hours:.0f} hours" if hours < 48 else f"in {hours / 24:.0f} days"
