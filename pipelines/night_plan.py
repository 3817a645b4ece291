"""Plans a night for `sync --dry-run`: its requests, how long they take, whether the maximum age is kept.

It goes by what the last sync left: what only the listings will show is not in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from assets.planning.crawl_plan import CAMPAIGN_STATS, CampaignPlan, ContactPlan, PlanEntry, Planner
from assets.planning.order import Reason, in_words
from assets.sources import SourceAsset, campaign_stats
from home import exits
from home.accounts import known_accounts
from home.door import open_archive, warehouse_of
from home.folder import prepare_home
from home.identity import check_kind
from home.output import AccountPlan, Plan, Planned, print_json
from home.progress import format_clock
from home.settings import Settings, estimated_rate
from home.texts import make_grid, text_template
from marketing_api.operations import ALL
from marketing_api.rate_limit import RateLimiter
from pipelines.commands import Arguments
from pipelines.reading import Planners, budget_of, named_assets, needed_too

_OTHERS = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
#: What is not planned contact by contact. Nothing else is requested before it is there.
LISTINGS = "listings"
#: Parameters that name one campaign, contact or the like.
_OF_ONE = ("id", "email")


@dataclass(frozen=True)
class Night:
    """An account's requests by kind: `wanted` without a budget, `sent` within `allowed` (None: no budget),
    the contacts' by `plan`."""

    wanted: Mapping[str, int]
    sent: Mapping[str, int]
    allowed: int | None
    plan: ContactPlan
    requests_all: bool = False

    @property
    def left_out(self) -> dict[str, int]:
        return {
            name: count - self.sent[name] for name, count in self.wanted.items() if count > self.sent[name]
        }

    def describe_night(self, rate: float, max_age_days: int) -> list[str]:
        words = text_template(__file__, clock=format_clock).render(
            night=self, plan=self.plan, rate=rate, max_age_days=max_age_days, LISTINGS=LISTINGS
        )
        return words.splitlines()


def plan_night(
    before: Mapping[str, int],
    whole: ContactPlan,
    plan: ContactPlan,
    allowed: int | None,
    *,
    requests_all: bool = False,
) -> Night:
    """`before`: what is requested first, by kind. `whole` is planned without the budget, `plan` with what
    `before` leaves of it."""
    planned = {**before, **{name: len(line.keys) for name, line in plan.entries.items()}}
    wanted = {**before, **{name: max(len(line.keys), planned[name]) for name, line in whole.entries.items()}}
    sent, left = {}, sum(planned.values()) if allowed is None else allowed
    for name, count in planned.items():
        sent[name] = min(count, left)
        left -= sent[name]
    return Night(wanted, sent, allowed, plan, requests_all)


def show_plan(arguments: Arguments, settings: Settings) -> int:
    """Print the plan; returns the exit code. Raises SettingsError."""
    check_kind(settings)
    chosen = named_assets(arguments.only)
    plans = list(_plan_accounts(arguments, settings, chosen)) if settings.warehouse_path.exists() else []
    console = Console(highlight=False, soft_wrap=True)
    if arguments.json:
        print_json(Plan(plans))
    elif not plans:
        console.print(
            "nothing has been synced yet: the first sync reads every contact, the newest first; run "
            "`marketing-sync sync`"
        )
    else:
        for number, each in enumerate(plans):
            console.print(end="\n" if number else "")
            _print_plan(console, each)
    return exits.DONE


def _plan_accounts(
    arguments: Arguments, settings: Settings, chosen: Sequence[SourceAsset]
) -> Iterator[AccountPlan]:
    prepare_home(settings.home, settings.lock_seconds)
    with open_archive(settings.home) as archive:
        warehouse = warehouse_of(settings, archive)
        with warehouse.open_for_reading():  # once for all, after the tables are as this version declares them
            accounts = known_accounts(settings)
            assets = needed_too(chosen, accounts, warehouse)
            budget = budget_of(settings, arguments.max_requests, arguments.until)
            planners = Planners(settings, warehouse, assets, len(accounts), arguments.all)
            for connection in accounts:
                limiter = RateLimiter.share_limit(connection)
                rate = estimated_rate(settings, connection.account)
                limited, whole = (
                    planners.make_planner(connection.account, limiter, each) for each in (budget, None)
                )
                yield _plan_of(settings, assets, limited, whole, rate)


def _plan_of(
    settings: Settings, assets: Sequence[SourceAsset], planner: Planner, whole: Planner, rate: float
) -> AccountPlan:
    """One account; `whole` plans without the budget, `rate` is the expected one."""
    campaigns = planner.make_campaign_plan() if campaign_stats in assets else None
    params = {"account": planner.account, "operations": _nightly_operations(assets)}
    before = {LISTINGS: int(planner.warehouse.run_query(_OTHERS, params).column(0)[0].as_py())}
    if campaigns:
        before[CAMPAIGN_STATS] = len(campaigns.campaigns)
    allowed = planner.allowance()
    if allowed is not None:
        left = max(allowed - sum(before.values()), 0)  # a sync requests them first
        planner.allowance = lambda: left
    plan = planner.make_contact_plan()
    planned = plan_night(
        before,
        plan if allowed is None else whole.make_contact_plan(),
        plan,
        allowed,
        requests_all=planner.rules.requests_all,
    )
    out, sent = planned.left_out, sum(planned.sent.values())
    of_campaigns = {CAMPAIGN_STATS: campaigns} if campaigns else {}
    entries: dict[str, CampaignPlan | PlanEntry] = {**of_campaigns, **plan.entries}
    lines = [Planned(LISTINGS, planned.sent[LISTINGS], out.get(LISTINGS, 0), None, {})]
    for name, entry in entries.items():
        why = {str(reason): number for reason, number in entry.counts.items()}
        lines.append(Planned(name, planned.sent[name], out.get(name, 0), entry.total, why))
    return AccountPlan(
        planner.account, sent, sent / rate, rate, lines, planned.describe_night(rate, settings.max_age_days)
    )


def _nightly_operations(assets: Sequence[SourceAsset]) -> list[str]:
    """Those that fill tables of the assets and are requested every night. What names one thing is requested
    when that is due or new."""
    records = {table.record for asset in assets for table in asset.tables}
    return [
        each.name
        for each in ALL.values()
        if records.intersection(each.records)
        and not any(parameter.name in _OF_ONE and parameter.required for parameter in each.parameters)
    ]


def _print_plan(console: Console, plan: AccountPlan) -> None:
    console.print(
        make_grid(
            f"account {plan.account}", "what, >requests, >left out, >of, why", map(_plan_cells, plan.planned)
        )
    )
    for reason in Reason:
        if any(reason in line.why for line in plan.planned):
            console.print(f"  {reason}: {reason.meaning}", style="dim")
    for sentence in plan.sentences:
        console.print(sentence)


def _plan_cells(line: Planned) -> tuple[str, ...]:
    left_out, total = f"{line.left_out:,}" if line.left_out else "", "" if line.of is None else f"{line.of:,}"
    return line.what, f"{line.requests:,}", left_out, total, _describe_reasons(line)


def _describe_reasons(line: Planned) -> str:
    if line.left_out and not line.requests:
        return "no budget is left"
    if line.what == LISTINGS:
        return "as in the last run" if line.requests or line.left_out else "no earlier run to go by"
    return in_words({Reason(reason): count for reason, count in line.why.items()})
