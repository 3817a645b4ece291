"""Plans a night for `sync --dry-run`: its requests, how long they take, and whether the maximum age
is kept.

The plan goes by the last sync. What only tonight's listings will show isn't in it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from assets.planning.crawl_plan import Planner
from assets.planning.order import Reason, in_words
from assets.sources import SourceAsset, campaign_stats
from home import exits
from home.accounts import known_accounts
from home.folder import prepare_home
from home.identity import check_kind
from home.loading import open_archive, warehouse_of
from home.output import AccountPlan, Plan, Planned, print_json
from home.progress import format_clock
from home.settings import Settings
from marketing_api.operation import Operation
from marketing_api.operations import ALL
from marketing_api.rate_limit import RateLimiter
from marketing_sync.grids import make_grid
from marketing_sync.texts import text_template
from pipelines.reading import (
    NightLimits,
    Planners,
    ReadOptions,
    add_needed_assets,
    make_budget,
    read_night_limits,
)

_LISTING_COUNT = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
#: The requests that aren't planned per contact; they are sent before all others.
LISTINGS = "listings"
#: Parameters that name a single campaign, contact or the like.
_OF_ONE = ("id", "email")


def show_plan(
    settings: Settings, chosen: Sequence[SourceAsset], options: ReadOptions, *, is_json: bool
) -> int:
    """Print the plan; returns the exit code. Raises SettingsError."""
    check_kind(settings)
    plans: list[AccountPlan] = []
    if settings.warehouse_path.exists():
        prepare_home(settings.home, settings.lock_seconds)
        accounts = known_accounts(settings)
        night = read_night_limits(settings, accounts)
        budget = make_budget(settings, options)
        with open_archive(settings.home) as archive:
            warehouse = warehouse_of(settings, archive)
            # once for all accounts, after the tables have the columns of this version
            with warehouse.open_for_reading():
                assets = add_needed_assets(chosen, accounts, warehouse)
                planners = Planners(warehouse, assets, night, budget, options.requests_all)
                for connection in accounts:
                    limiter = RateLimiter.share_limit(connection)
                    planner = planners.make_planner(connection.account, limiter)
                    plans.append(plan_account(night, assets, planner))
    console = Console(highlight=False, soft_wrap=True)
    if is_json:
        print_json(Plan(plans))
    elif not plans:
        console.print(
            "nothing has been synced yet: the first sync sends about two requests per contact, the "
            "newest first (1,000 contacts in two to three minutes); run `marketing-sync sync`"
        )
    else:
        for number, plan in enumerate(plans):
            console.print(end="\n" if number else "")
            _print_plan(console, plan)
    return exits.DONE


def plan_account(
    night: NightLimits, assets: Sequence[SourceAsset], planner: Planner
) -> AccountPlan:
    """The account's requests in the order in which a sync sends them: a limit leaves out the last
    ones."""
    rules = planner.find_rules()
    params = {"account": planner.account, "operations": _nightly_operations(assets)}
    listings = int(planner.warehouse.run_query(_LISTING_COUNT, params).column(0)[0].as_py())
    campaigns = planner.make_campaign_plan() if campaign_stats in assets else None
    lines = [_limit_line(LISTINGS, listings, rules.limit)]
    if campaigns:
        left = None if rules.limit is None else rules.limit - lines[0].requests
        lines.append(_limit_line("campaign_stats", len(campaigns.campaigns), left))
        lines[-1].of, lines[-1].why = campaigns.total, _name_reasons(campaigns.counts)
    if rules.limit is not None:
        rules = replace(rules, limit=rules.limit - sum(line.requests for line in lines))
    planner.find_rules = lambda: rules
    plan = planner.make_contact_plan()
    lines += [
        Planned(
            name,
            len(entry.keys),
            entry.late + entry.waiting,
            entry.total,
            _name_reasons(entry.counts),
        )
        for name, entry in plan.entries.items()
    ]
    requests = sum(line.requests for line in lines)
    rate = night.rates[planner.account]
    words = text_template(__file__, clock=format_clock).render(
        requests=requests,
        seconds=requests / rate,
        rate=rate,
        plan=plan,
        left_out={line.what: line.left_out for line in lines if line.left_out},
        night=night,
        LISTINGS=LISTINGS,
    )
    return AccountPlan(planner.account, requests, requests / rate, rate, lines, words.splitlines())


def _limit_line(what: str, due: int, limit: int | None) -> Planned:
    """The line of requests of one kind: `due` ones, of which at most `limit` are sent."""
    sent = due if limit is None else min(due, limit)
    return Planned(what, sent, due - sent, None, {})


def _name_reasons(counts: Mapping[Reason, int]) -> dict[str, int]:
    return {str(reason): number for reason, number in counts.items()}


def _nightly_operations(assets: Sequence[SourceAsset]) -> list[str]:
    """The operations that fill the assets' tables and are requested every night. An operation that
    requests a single thing isn't: it is sent when that thing is due or new."""
    records = {table.record for asset in assets for table in asset.tables}
    return [
        operation.name
        for operation in ALL.values()
        if records.intersection(operation.records) and not _requests_single_thing(operation)
    ]


def _requests_single_thing(operation: Operation) -> bool:
    return any(
        parameter.name in _OF_ONE and parameter.required for parameter in operation.parameters
    )


def _print_plan(console: Console, plan: AccountPlan) -> None:
    console.print(
        make_grid(
            f"account {plan.account}",
            "what, >requests, >left out, >of, why",
            map(_plan_cells, plan.planned),
        )
    )
    for sentence in plan.sentences:
        console.print(sentence)


def _plan_cells(line: Planned) -> tuple[str, ...]:
    left_out = f"{line.left_out:,}" if line.left_out else ""
    total = "" if line.of is None else f"{line.of:,}"
    return line.what, f"{line.requests:,}", left_out, total, _describe_reasons(line)


def _describe_reasons(line: Planned) -> str:
    if line.left_out and not line.requests:
        return "no budget is left"
    if line.what == LISTINGS:
        return "as in the last run" if line.requests or line.left_out else "no earlier run to go by"
    return in_words({Reason[reason.upper()]: count for reason, count in line.why.items()})
