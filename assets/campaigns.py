"""E-mail campaigns and their statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from assets.ask import Ask, Part
from assets.extract import source_asset
from marketing_api.operations import campaigns as operations
from marketing_api.records.campaigns import Campaign
from warehouse import tables


@source_asset(tables.CAMPAIGNS)
def campaigns(ask: Ask) -> Iterator[Part]:
    """Every campaign in every state; the single fetch is asked only for new or changed ones."""
    listing = ask.pages(operations.CAMPAIGNS, filter="all")
    changed = ask.new_or_changed(listing, Campaign)
    yield listing + ask.all(operations.GETCAMPAIGN, ({"id": row.campaign_id, "type": row.type} for row in changed))


@source_asset(tables.CAMPAIGN_STATS, tables.CAMPAIGN_LINKS, tables.CAMPAIGN_CLICKERS, after=[campaigns])
def campaign_stats(ask: Ask) -> Iterator[Part]:
    """Opens, bounces, unsubscribes, links and who clicked them; the service tells totals as of now only. The older, the rarer asked."""
    plan = ask.plan.campaigns()
    for part in ask.each(operations.STATS, ({"id": campaign_id, "type": type_} for campaign_id, type_ in plan.campaigns)):
        yield replace(part, due_at=plan.due_at)
