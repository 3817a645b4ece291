"""The source assets: what is fetched from the service, for which tables, and after which assets.
Each is a short function with the decorator `source_asset`.

Not here: what such a function may use (`fetch`), who runs it (`reader`), how it looks in Dagster
(`materialize`)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assets.fetch import Batches, Fetcher, refuse_paged
from assets.result import Batch
from marketing_api import operations
from marketing_api.operation import Operation
from warehouse import tables
from warehouse.tables import Table

FetchFunction = Callable[[Fetcher], Batches]


@dataclass(frozen=True, slots=True)
class SourceAsset:
    """What is fetched (`function`), for which tables, and which assets must be in the warehouse
    first (`after`).

    `informed_by`: assets whose tables show which requests are useful. If the same run reads them,
    this asset waits for them; it also works without them."""

    name: str
    tables: tuple[Table, ...]
    function: FetchFunction
    after: tuple["SourceAsset", ...] = ()
    informed_by: tuple["SourceAsset", ...] = ()
    is_daily: bool = False  # partitioned by the day that the data is about

    def __hash__(self) -> int:
        return hash(self.name)


#: Every source asset by name, in the order of declaration.
SOURCE_ASSETS: dict[str, SourceAsset] = {}


def source_asset(
    *tables: Table,
    after: Sequence[SourceAsset] = (),
    informed_by: Sequence[SourceAsset] = (),
    is_daily: bool = False,
) -> Callable[[FetchFunction], SourceAsset]:
    """Declare an asset: its function yields the batches that it fetched. The reader archives and
    loads them, and handles coverage and errors."""

    def declare(function: FetchFunction) -> SourceAsset:
        asset = SourceAsset(
            function.__name__, tables, function, tuple(after), tuple(informed_by), is_daily
        )
        SOURCE_ASSETS[asset.name] = asset
        return asset

    return declare


def one_request(operation: Operation, *tables: Table, **params: Any) -> SourceAsset:
    """An asset of one request, whose response fills all of its tables. It has the name and the
    description of the first table. Raises InvalidCall if the operation needs other parameters, or
    has pages."""
    operation.bind(**params)
    refuse_paged(operation)

    def function(fetch: Fetcher) -> Batches:
        yield fetch.fetch_one(operation, **params)

    function.__name__ = tables[0].name
    function.__doc__ = tables[0].doc
    return source_asset(*tables)(function)


def with_needed(
    chosen: Iterable[SourceAsset], was_read: Callable[[SourceAsset], bool]
) -> list[SourceAsset]:
    """The chosen assets, and these others if they were never read: the assets that they come after,
    without which there is nothing to request, and the business, whose time zone all others need."""
    needed_names = {asset.name for asset in chosen}
    if not was_read(business):
        needed_names.add(business.name)
    # each asset is declared after those that it comes after
    for asset in reversed(SOURCE_ASSETS.values()):
        if asset.name not in needed_names:
            continue
        for upstream in asset.after:
            if upstream.name not in needed_names and not was_read(upstream):
                needed_names.add(upstream.name)
    return [asset for asset in SOURCE_ASSETS.values() if asset.name in needed_names]


# ---- the account itself

business = one_request(operations.account.ME, tables.BUSINESS)


# ---- e-mail campaigns and their statistics


#: In the order in which a campaign passes through them: if its group changes between two listings,
#: the later listing counts.
_CAMPAIGN_FILTERS = ("all", "automation", "draft", "scheduled", "sent")
#: Scheduled posts are read as far ahead.
_CALENDAR_DAYS_AHEAD = 90


@source_asset(tables.CAMPAIGNS)
def campaigns(fetch: Fetcher) -> Batches:
    """Every campaign in every state. If the service shows no groups, only the filter tells the
    state (observation 40). Details are only fetched for new or changed campaigns."""
    views = [{"filter": campaign_filter} for campaign_filter in _CAMPAIGN_FILTERS]
    listing = fetch.fetch_pages(operations.campaigns.CAMPAIGNS, *views)
    yield fetch.with_details(
        listing,
        operations.campaigns.GETCAMPAIGN,
        lambda row: {"id": row.campaign_id, "type": row.type},
    )


@source_asset(
    tables.CAMPAIGN_STATS, tables.CAMPAIGN_LINKS, tables.CAMPAIGN_CLICKERS, after=[campaigns]
)
def campaign_stats(fetch: Fetcher) -> Batches:
    """Opens, bounces, unsubscribes, links and who clicked them, as of now. Statistics of older
    campaigns are fetched less often."""
    plan = fetch.plan.make_campaign_plan()
    many = [{"id": campaign_id, "type": type_} for campaign_id, type_ in plan.campaigns]
    for batch in fetch.fetch_many(operations.campaigns.STATS, many):
        yield replace(batch, due_at=plan.due_at)


# ---- lists, their contacts, and timelines and coupons: one request per contact, in the order that
# the plan gives


@source_asset(tables.LISTS, tables.LIST_FIELDS)
def lists(fetch: Fetcher) -> Batches:
    """Every list with its settings and custom fields. Details are only fetched for new or changed
    lists."""
    yield fetch.with_details(
        fetch.fetch_pages(operations.lists.GETLISTS),
        operations.lists.GETLIST,
        lambda row: {"id": row.list_id},
    )


@source_asset(tables.CONTACTS, after=[lists])
def contacts(fetch: Fetcher) -> Batches:
    """The members of every list. Members of a list that is gone are marked as deleted."""
    many = [{"listid": list_id} for list_id in fetch.warehouse.list_ids(fetch.account)]
    listings = fetch.fetch_listings(operations.contacts.GETCONTACTS, many)
    yield from fetch.hold_until_recognised(listings)
    for list_id in fetch.warehouse.vanished_list_ids(fetch.account):
        yield Batch(scope={"list_id": [list_id]})


@source_asset(
    tables.TIMELINE_EVENTS,
    tables.TIMELINE_VISITS,
    tables.TIMELINE_AUTOMATIONS,
    after=[contacts],
    informed_by=[campaign_stats],
)
def timelines(fetch: Fetcher) -> Batches:
    """What happened with each contact: messages sent and opened, visits, automations. Old entries
    are never removed."""
    yield from fetch.fetch_planned(
        operations.contacts.TIMELINE,
        lambda contact_id: {"id": contact_id, "include": "utm,automated"},
    )


@source_asset(tables.COUPONS, after=[contacts], informed_by=[campaign_stats])
def coupons(fetch: Fetcher) -> Batches:
    """Coupons by e-mail address; an address in several lists is fetched once."""
    yield from fetch.fetch_planned(operations.contacts.GETCOUPON, lambda email: {"email": email})
    fetch.learn_refusals()


# ---- webhooks and goals


@source_asset(tables.WEBHOOKS)
def webhooks(fetch: Fetcher) -> Batches:
    """Every webhook. Details are only fetched for new or changed ones."""
    listing = fetch.fetch_one(operations.webhooks.LISTS)
    yield fetch.with_details(listing, operations.webhooks.SHOW, lambda row: {"id": row.webhook_id})


@source_asset(tables.GOALS, after=[webhooks])
def goals(fetch: Fetcher) -> Batches:
    """Every goal. Only the listing by domain names a goal's domain; it is fetched for domains that
    webhooks or the settings name."""
    domain_ids = {*fetch.warehouse.domain_ids(fetch.account), *fetch.settings.goal_domains}
    many = [{"domainid": domain_id} for domain_id in sorted(domain_ids)]
    by_domain = fetch.fetch_all(operations.goals.LISTBYDOMAIN, many)
    yield fetch.with_details(
        fetch.fetch_one(operations.goals.LISTS) + by_domain,
        operations.goals.SHOW,
        lambda row: {"id": row.goal_id},
    )


# ---- reviews and mentions


@source_asset(tables.DIRECT_REVIEWS, is_daily=True)
def direct_reviews(fetch: Fetcher) -> Batches:
    """Private reviews left on the business's own feedback page."""
    yield from fetch.fetch_days(operations.reputation.DIRECT, filter="date")


online_reviews = one_request(
    operations.reputation.ONLINE,
    tables.ONLINE_REVIEWS,
    tables.ONLINE_REVIEW_CHANNELS,
    channels="all",
)


@source_asset(tables.SENTIMENT_MENTIONS, tables.SENTIMENT_TOTALS, is_daily=True)
def sentiment(fetch: Fetcher) -> Batches:
    """Mentions that the service judged positive, negative or neutral."""
    yield from fetch.fetch_days(operations.reputation.SENTIMENT, filter="all", channels="all")


@source_asset(tables.REVIEW_STATS, tables.SOCIAL_MEDIA_STATS, tables.FEEDBACK_VIEWS, is_daily=True)
def reputation_stats(fetch: Fetcher) -> Batches:
    """Daily counts of reviews, social mentions and views of the feedback page."""
    yield from fetch.fetch_series(operations.reputation.STATS, filter="all")


# ---- social profiles, posts and short links


@source_asset(tables.SOCIAL_POSTS)
def social_posts(fetch: Fetcher) -> Batches:
    """Posts of the calendar, sent and scheduled."""
    yield from fetch.fetch_days(
        operations.social.CALENDAR,
        ahead=_CALENDAR_DAYS_AHEAD,
        channels="all",
        includeposted=True,
        sort="asc",
    )


@source_asset(tables.SOCIAL_POST_DETAILS, after=[social_posts])
def social_post_details(fetch: Fetcher) -> Batches:
    """Title, picture and profile of posts that are new or have changed."""
    posts = fetch.warehouse.posts_needing_detail(fetch.account, operations.social.POST_CHANNELS)
    many = [{"id": post_id, "channel": network} for post_id, network in posts]
    yield from fetch.fetch_many(operations.social.GETPOST, many)


social_links = one_request(
    operations.social.STATS,
    tables.SOCIAL_LINKS,
    tables.SOCIAL_LINK_CLICKS,
    channels="all",
    sort="asc",
)


# ---- every other table is filled by one request without parameters


def _declare_single_requests() -> None:
    filled = {table for asset in SOURCE_ASSETS.values() for table in asset.tables}
    left = [table for table in tables.TABLES.values() if table not in filled]
    for operation in operations.ALL.values():
        its_tables = [table for table in left if table.record in operation.records]
        if its_tables:
            one_request(operation, *its_tables)


_declare_single_requests()
