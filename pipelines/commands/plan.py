"""`marketing-sync plan`: what the next sync would ask, for which reasons, how long that takes, and whether the guarantee holds.

It sends nothing: it goes by what the last sync left, so what the listings will show first is not in it.
"""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table as Grid

from assets import SOURCE_ASSETS
from assets.planning.order import MEANINGS, Reason
from assets.planning.plan import ContactPlan
from assets.planning.planner import CAMPAIGN_STATS, Planner, PlanSettings
from marketing_api.pace import Pace, pace_path
from pipelines import exits
from pipelines.commands.arguments import add_options
from pipelines.options import LIMITS
from pipelines.reading import budget_of, planner_of
from pipelines.service import known_accounts
from pipelines.settings import Settings
from pipelines.waiting import tell
from warehouse.archive import Archive
from warehouse.warehouse import Warehouse

#: What is not planned question by question, as the account's last run that read contacts asked it.
_OTHERS = """
    with last as (
        select started_at, coalesce(ended_at, now()) as ended_at from sync.runs
        where exists (from sync.plans p where p.run_id = runs.run_id) order by started_at desc limit 1
    )
    select count(*) from sync.requests, last
    where account = $account and requested_at between last.started_at and last.ended_at and operation not in
        ('emailmarketing/getcontacttimeline', 'emailmarketing/getcoupon', 'emailmarketing/stats')
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The limits of `sync`, to try them out."""
    add_options(parser, LIMITS)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print a table and a sentence per account; 0 also when the guarantee cannot be kept: that is what it tells."""
    console = Console(highlight=False, soft_wrap=True)
    if not settings.warehouse_path.exists():
        console.print(
            "nothing has been synced yet: the first sync asks about everybody, the newest contacts first; run `marketing-sync sync`"
        )
        return exits.DONE
    with Archive(settings.home / "archive") as archive:
        warehouse = Warehouse(settings.home, archive, deadline_s=settings.lock_seconds, on_wait=tell)
        warehouse.read("select 1")  # makes sure that the tables are as this version declares them
        for number, (planner, rate) in enumerate(_planners(arguments, settings, warehouse)):
            if number:
                console.print()
            _print(console, settings, warehouse, planner, rate)
    return exits.DONE


def _planners(arguments: argparse.Namespace, settings: Settings, warehouse: Warehouse) -> Iterator[tuple[Planner, float]]:
    """One per account, with the rate at which its requests leave."""
    accounts = known_accounts(settings)
    plan_settings = PlanSettings(dt.timedelta(days=settings.max_age_days), arguments.all)
    budget = budget_of(settings, arguments.max_requests, arguments.until)
    for connection in accounts:
        pace = Pace(pace_path(connection.url, connection.key), cap=connection.max_rate)
        yield planner_of(warehouse, connection, pace, plan_settings, list(SOURCE_ASSETS.values()), budget, len(accounts)), pace.rate


def _print(console: Console, settings: Settings, warehouse: Warehouse, planner: Planner, rate: float) -> None:
    campaigns = planner.campaigns()
    others = int(warehouse.read(_OTHERS, {"account": planner.account}).column(0)[0].as_py())
    whole = planner.allowance()
    planner.allowance = lambda: whole.after(others + len(campaigns.campaigns))  # a sync asks for them first
    plan = planner.contacts()
    grid = Grid(title=f"account {planner.account}", title_justify="left", title_style="bold", box=None, header_style="dim", pad_edge=False)
    for column in ("question", "requests", "of", "why"):
        grid.add_column(column, justify="right" if column in ("requests", "of") else "left", overflow="fold")
    grid.add_row("listings and details", *((f"{others:,}", "", "as in the last run") if others else ("–", "", "no earlier run tells")))
    grid.add_row(CAMPAIGN_STATS, f"{len(campaigns.campaigns):,}", f"{campaigns.total:,}", _why(campaigns.counts))
    for name, line in plan.lines.items():
        why = _why({str(reason): count for reason, count in line.counts.items()})
        grid.add_row(name, f"{len(line.keys):,}", f"{line.total:,}", why if line.is_whole or line.counts else "no budget is left")
    console.print(grid)
    named = {*campaigns.counts, *(reason for line in plan.lines.values() for reason in line.counts)}
    for reason in (reason for reason in Reason if reason in named):
        console.print(f"  {reason}: {MEANINGS[reason]}", style="dim")
    total = others + len(campaigns.campaigns) + plan.requests
    console.print(f"{total:,} requests, {dt.timedelta(seconds=round(total / rate))} at {rate:,.1f} a second{_limited(plan)}")
    for sentence in guarantee(plan, settings.max_age_days):
        console.print(sentence)


def _why(counts: dict[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in counts.items()) or "nothing is due"


def _limited(plan: ContactPlan) -> str:
    if plan.limit is None:
        return ""
    if not plan.limit:
        return "; the budget is used up before timelines and coupons come"
    return f"; the budget leaves {plan.limit:,} for timelines and coupons"


def guarantee(plan: ContactPlan, max_age_days: int) -> Iterator[str]:
    """Whether nobody gets older than allowed, and what it takes."""
    late, waiting = (sum(getattr(line, name) for line in plan.lines.values()) for name in ("late", "waiting"))
    dropped = sum(line.dropped for line in plan.lines.values()) - waiting
    if not late and not waiting:
        yield f"the guarantee holds: nobody's timeline and coupons get older than {max_age_days} days"
    else:
        parts = [f"{late:,} get older than {max_age_days} days" if late else "", f"{waiting:,} are still never asked" if waiting else ""]
        yield f"the guarantee cannot be kept with this budget: {' and '.join(filter(None, parts))}"
        yield f"it would take {plan.needed:,} requests tonight"
    if plan.limit is not None and plan.limit < plan.steady:
        days = f"; with {plan.limit:,} a night, MARKETING_MAX_AGE_DAYS={_days(plan, max_age_days)} can be kept" if plan.limit else ""
        yield f"to keep it every night takes {plan.steady:,} requests for timelines and coupons{days}"
    if dropped > 0:
        yield f"{dropped:,} that have probably changed wait for another night"


def _days(plan: ContactPlan, max_age_days: int) -> int:
    """In so many nights the limit asks everybody."""
    return -(-plan.steady * max_age_days // max(plan.limit or 0, 1))
