"""The source assets: what is fetched of the service, for which tables, and after what; each is a
short function under the one decorator.

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

    `informed_by`: assets whose tables say for whom a request is worth it. They are waited for when
    the same run reads them, and nothing is lost without them."""

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
    """Declare an asset: its function yields the batches it fetched; archive, load, coverage and
    errors are added around it."""

    def declare(function: FetchFunction) -> SourceAsset:
        asset = SourceAsset(
            function.__name__, tables, function, tuple(after), tuple(informed_by), is_daily
        )
        SOURCE_ASSETS[asset.name] = asset
        return asset

    return declare


def one_request(operation: Operation, *tables: Table, **params: Any) -> SourceAsset:
    """An asset of one request, whose response is the whole of its tables; it has the name and the
    description of the first one. InvalidCall when the operation needs other parameters, or has
    pages, of which one request reads the first alone."""
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
    """The chosen assets, and, as far as they were never read, those that they come after (without
    them there would be nothing to request) and the business, whose time zone whatever follows
    needs."""
    needed_names = {asset.name for asset in chosen} | (
        set() if was_read(business) else {business.name}
    )
    # each is declared behind those that it comes after
    for asset in reversed(SOURCE_ASSETS.values()):
        if asset.name in needed_names:
            needed_names |= {
                upstream.name
                for upstream in asset.after
                if upstream.name not in needed_names and not was_read(upstream)
            }
    return [asset for asset in SOURCE_ASSETS.values() if asset.name in needed_names]


# ---- the account itself

business = one_request(operations.account.ME, tables.BUSINESS)


# ---- e-mail campaigns and their statistics


#: In the order in which a campaign passes through them: one that changes between two listings
#: counts as what it is now.
_CAMPAIGN_FILTERS = ("all", "automation", "draft", "scheduled", "sent")
#: Scheduled posts are read as far ahead.
_CALENDAR_DAYS_AHEAD = 90


@source_asset(tables.CAMPAIGNS)
def campaigns(fetch: Fetcher) -> Batches:
    """Every campaign in every state, which only its filter tells where there are no groups
    (observation 40); details are fetched only for new or changed ones."""
    listing = fetch.fetch_pages(
        operations.campaigns.CAMPAIGNS,
        *({"filter": campaign_filter} for campaign_filter in _CAMPAIGN_FILTERS),
    )
    yield fetch.with_details(
        listing,
        operations.campaigns.GETCAMPAIGN,
        lambda row: {"id": row.campaign_id, "type": row.type},
    )


@source_asset(
    tables.CAMPAIGN_STATS, tables.CAMPAIGN_LINKS, tables.CAMPAIGN_CLICKERS, after=[campaigns]
)
def campaign_stats(fetch: Fetcher) -> Batches:
    """Opens, bounces, unsubscribes, links and who clicked them; the service has totals as of now
    only. The older, the rarer fetched."""
    plan = fetch.plan.make_campaign_plan()
    for batch in fetch.fetch_many(
        operations.campaigns.STATS,
        ({"id": campaign_id, "type": type_} for campaign_id, type_ in plan.campaigns),
    ):
        yield replace(batch, due_at=plan.due_at)


# ---- lists, their contacts, and timelines and coupons: one request per contact, in the order that
# the plan gives


@source_asset(tables.LISTS, tables.LIST_FIELDS)
def lists(fetch: Fetcher) -> Batches:
    """Every list with its settings and custom fields; details are fetched only for new or changed
    ones."""
    yield fetch.with_details(
        fetch.fetch_pages(operations.lists.GETLISTS),
        operations.lists.GETLIST,
        lambda row: {"id": row.list_id},
    )


@source_asset(tables.CONTACTS, after=[lists])
def contacts(fetch: Fetcher) -> Batches:
    """The members of every list; those of a list that is gone are marked as deleted."""
    list_ids = fetch.warehouse.list_ids(fetch.account)
    listings = fetch.fetch_listings(
        operations.contacts.GETCONTACTS, ({"listid": list_id} for list_id in list_ids)
    )
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
    """Every webhook; details are fetched only for new or changed ones."""
    listing = fetch.fetch_one(operations.webhooks.LISTS)
    yield fetch.with_details(listing, operations.webhooks.SHOW, lambda row: {"id": row.webhook_id})


@source_asset(tables.GOALS, after=[webhooks])
def goals(fetch: Fetcher) -> Batches:
    """Every goal. Only the listing by domain names a goal's domain: it is fetched for domains that
    webhooks name or a setting adds."""
    domain_ids = sorted({*fetch.warehouse.domain_ids(fetch.account), *fetch.settings.goal_domains})
    by_domain = fetch.fetch_all(
        operations.goals.LISTBYDOMAIN, ({"domainid": domain_id} for domain_id in domain_ids)
    )
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
    """Title, picture and profile of posts that are new or changed since they were fetched."""
    posts = fetch.warehouse.posts_needing_detail(fetch.account, operations.social.POST_CHANNELS)
    yield from fetch.fetch_many(
        operations.social.GETPOST,
        ({"id": post_id, "channel": network} for post_id, network in posts),
    )


social_links = one_request(
    operations.social.STATS,
    tables.SOCIAL_LINKS,
    tables.SOCIAL_LINK_CLICKS,
    channels="all",
    sort="asc",
)


# ---- every other table is the response to one request without parameters


def _declare_single_requests() -> None:
    filled = {table for asset in SOURCE_ASSETS.values() for table in asset.tables}
    left = [table for table in tables.TABLES.values() if table not in filled]
    for operation in operations.ALL.values():
        of_it = [table for table in left if table.record in operation.records]
        if of_it:
            one_request(operation, *of_it)


_declare_single_requests()
