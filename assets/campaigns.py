"""E-mail campaigns and their statistics."""

from dataclasses import replace

from assets.extract import source_asset
from assets.fetch import Batches, Fetcher
from marketing_api.operations import campaigns as operations
from marketing_api.records.campaigns import Campaign
from warehouse import tables


@source_asset(tables.CAMPAIGNS)
def campaigns(fetch: Fetcher) -> Batches:
    """Every campaign in every state; details are fetched only for new or changed ones."""
    listing = fetch.pages(operations.CAMPAIGNS, filter="all")
    changed = fetch.new_or_changed(listing, Campaign)
    yield listing + fetch.all(operations.GETCAMPAIGN, ({"id": row.campaign_id, "type": row.type} for row in changed))


@source_asset(tables.CAMPAIGN_STATS, tables.CAMPAIGN_LINKS, tables.CAMPAIGN_CLICKERS, after=[campaigns])
def campaign_stats(fetch: Fetcher) -> Batches:
    """Opens, bounces, unsubscribes, links and who clicked them; the service has totals as of now only. The older, the rarer fetched."""
    plan = fetch.plan.campaigns()
    for batch in fetch.each(operations.STATS, ({"id": campaign_id, "type": type_} for campaign_id, type_ in plan.campaigns)):
        yield replace(batch, due_at=plan.due_at)
