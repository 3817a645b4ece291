"""Plans a night for `sync --dry-run`: its requests, how long they take, whether the maximum age is
kept.

It goes by what the last sync left: what only the listings will show is not in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from assets.planning.crawl_plan import CAMPAIGN_STATS, Planner
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
from marketing_api.operations import ALL
from marketing_api.rate_limit import RateLimiter
from marketing_sync.commands import Arguments
from marketing_sync.texts import make_grid, text_template
from pipelines.reading import Planners, budget_of, named_assets, needed_too

_OTHERS = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
#: What is not planned contact by contact. Nothing else is requested before it is there.
LISTINGS = "listings"
#: Parameters that name one campaign, contact or the like.
_OF_ONE = ("id", "email")


def show_plan(arguments: Arguments, settings: Settings) -> int:
    """Print the plan; returns the exit code. Raises SettingsError."""
    check_kind(settings)
    chosen = named_assets(arguments.only)
    plans = (
        list(_plan_accounts(arguments, settings, chosen))
        if settings.warehouse_path.exists()
        else []
    )
    console = Console(highlight=False, soft_wrap=True)
    if arguments.json:
        print_json(Plan(plans))
    elif not plans:
        console.print(
            "nothing has been synced yet: the first sync reads every contact, the newest first; "
            "run `marketing-sync sync`"
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
        # once for all, after the tables are as this version declares them
        with warehouse.open_for_reading():
            accounts = known_accounts(settings)
            assets = needed_too(chosen, accounts, warehouse)
            budget = budget_of(settings, arguments.max_requests, arguments.until)
            names = [connection.account for connection in accounts]
            planners = Planners(settings, warehouse, assets, names, budget, arguments.all)
            for connection in accounts:
                planner = planners.make_planner(
                    connection.account, RateLimiter.share_limit(connection)
                )
                yield plan_account(settings, assets, planner)


def plan_account(
    settings: Settings, assets: Sequence[SourceAsset], planner: Planner
) -> AccountPlan:
    """The requests in the order in which a sync sends them: the limit is used up by the first."""
    rules = planner.find_rules()
    params = {"account": planner.account, "operations": _nightly_operations(assets)}
    listings = int(planner.warehouse.run_query(_OTHERS, params).column(0)[0].as_py())
    campaigns = planner.make_campaign_plan() if campaign_stats in assets else None
    lines = [_limit_line(LISTINGS, listings, rules.limit)]
    if campaigns:
        left = None if rules.limit is None else rules.limit - lines[0].requests
        lines.append(_limit_line(CAMPAIGN_STATS, len(campaigns.campaigns), left))
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
    requests, rate = sum(line.requests for line in lines), estimated_rate(settings, planner.account)
    words = text_template(__file__, clock=format_clock).render(
        requests=requests,
        seconds=requests / rate,
        rate=rate,
        plan=plan,
        left_out={line.what: line.left_out for line in lines if line.left_out},
        settings=settings,
        LISTINGS=LISTINGS,
    )
    return AccountPlan(planner.account, requests, requests / rate, rate, lines, words.splitlines())


def _limit_line(what: str, wanted: int, limit: int | None) -> Planned:
    sent = wanted if limit is None else min(wanted, limit)
    return Planned(what, sent, wanted - sent, None, {})


def _name_reasons(counts: Mapping[Reason, int]) -> dict[str, int]:
    return {str(reason): number for reason, number in counts.items()}


def _nightly_operations(assets: Sequence[SourceAsset]) -> list[str]:
    """Those that fill tables of the assets and are requested every night. What names one thing is
    requested when that is due or new."""
    records = {table.record for asset in assets for table in asset.tables}
    return [
        each.name
        for each in ALL.values()
        if records.intersection(each.records)
        and not any(
            parameter.name in _OF_ONE and parameter.required for parameter in each.parameters
        )
    ]


def _print_plan(console: Console, plan: AccountPlan) -> None:
    console.print(
        make_grid(
            f"account {plan.account}",
            "what, >requests, >left out, >of, why",
            map(_plan_cells, plan.planned),
        )
    )
    for reason in Reason:
        if any(reason in line.why for line in plan.planned):
            console.print(f"  {reason}: {reason.meaning}", style="dim")
    for sentence in plan.sentences:
        console.print(sentence)


def _plan_cells(line: Planned) -> tuple[str, ...]:
    left_out, total = (
        f"{line.left_out:,}" if line.left_out else "",
        "" if line.of is None else f"{line.of:,}",
    )
    return line.what, f"{line.requests:,}", left_out, total, _describe_reasons(line)


def _describe_reasons(line: Planned) -> str:
    if line.left_out and not line.requests:
        return "no budget is left"
    if line.what == LISTINGS:
        return "as in the last run" if line.requests or line.left_out else "no earlier run to go by"
    return in_words({Reason(reason): count for reason, count in line.why.items()})
