"""`marketing-sync plan`: what the next sync would request, why, how long that takes, and what the maximum age takes.

It sends nothing: it goes by what the last sync left, so what only the listings will show is not in it.
"""

import datetime as dt

from rich.console import Console

from assets import SOURCE_ASSETS
from assets.planning.crawl_plan import CAMPAIGN_STATS, Planner, Rules
from assets.planning.order import in_words
from marketing_api.rate_limit import RateLimiter
from pipelines import exits
from pipelines.accounts import known_accounts
from pipelines.commands import Arguments, command
from pipelines.commands.status import grid
from pipelines.options import LIMITS, parameters
from pipelines.progress import report_waiting
from pipelines.reading import budget_of, planner_of
from pipelines.settings import Settings
from warehouse.archive import Archive
from warehouse.warehouse import Warehouse

#: What is not planned contact by contact, as the account's last run that read contacts requested it.
_OTHERS = """
    with last as (
        select started_at, coalesce(ended_at, now()) as ended_at from sync.runs
        where exists (from sync.plans p where p.run_id = runs.run_id) order by started_at desc limit 1
    )
    select count(*) from sync.requests, last
    where account = $account and requested_at between last.started_at and last.ended_at and operation not in
        ('emailmarketing/getcontacttimeline', 'emailmarketing/getcoupon', 'emailmarketing/stats')
"""


@command(*parameters(LIMITS))
def plan(arguments: Arguments, settings: Settings) -> int:
    console = Console(highlight=False, soft_wrap=True)
    if not settings.warehouse_path.exists():
        console.print("nothing has been synced yet: the first sync reads every contact, the newest first; run `marketing-sync sync`")
        return exits.DONE
    with Archive(settings.home / "archive") as archive:
        warehouse = Warehouse(settings.home, archive, deadline_s=settings.lock_seconds, on_wait=report_waiting)
        warehouse.read("select 1")  # makes sure that the tables are as this version declares them
        accounts, assets = known_accounts(settings), list(SOURCE_ASSETS.values())
        budget = budget_of(settings, arguments.max_requests, arguments.until)
        rules = Rules(dt.timedelta(days=settings.max_age_days), requests_all=arguments.all)
        for number, connection in enumerate(accounts):
            limiter = RateLimiter.shared(connection.url, connection.key, cap=connection.max_rate)
            planner = planner_of(warehouse, connection.account, limiter, rules, assets, budget, len(accounts))
            if number:
                console.print()
            _print(console, planner, limiter.rate)
    return exits.DONE


def _print(console: Console, planner: Planner, rate: float) -> None:
    """One account; `rate` is the one at which its requests leave."""
    campaigns = planner.campaigns()
    others = int(planner.warehouse.read(_OTHERS, {"account": planner.account}).column(0)[0].as_py())
    first, allowed = others + len(campaigns.campaigns), planner.allowance()
    if allowed is not None:
        left = max(allowed - first, 0)  # a sync requests the others first
        planner.allowance = lambda: left
    entries = planner.contacts().values()
    table = grid(f"account {planner.account}", "what", "requests", "of", "why", right=("requests", "of"))
    table.add_row("listings and details", f"{others:,}", "", "as in the last run" if others else "no earlier run to go by")
    table.add_row(CAMPAIGN_STATS, f"{len(campaigns.campaigns):,}", f"{campaigns.total:,}", in_words(campaigns.counts))
    for entry in entries:
        table.add_row(entry.asset, f"{len(entry.keys):,}", f"{entry.total:,}", in_words(entry.counts))
    console.print(table)
    count = first + sum(len(entry.keys) for entry in entries)
    sent = count if allowed is None else min(count, allowed)
    takes = dt.timedelta(seconds=round(sent / rate))
    within = f", of which the budget allows {sent:,} beside a reserve for retries" if sent < count else ""
    console.print(f"the next sync would send {count:,} requests{within}, {takes} at {rate:,.1f} a second")
    for entry in entries:
        if not entry.is_whole:
            console.print(f"{entry.asset}: {entry.shortfall}")
    days = max(planner.rules.max_age.days, 1)
    steady = -(-sum(entry.total for entry in entries) // days)
    console.print(f"to keep the maximum age of {days} days takes about {steady:,} requests a night for timelines and coupons")
