"""Conversion goals."""

from assets.extract import source_asset
from assets.fetch import Batches, Fetcher
from assets.webhooks import webhooks
from marketing_api.operations import goals as operations
from marketing_api.records.goals import Goal
from warehouse import tables


@source_asset(tables.GOALS, after=[webhooks])
def goals(fetch: Fetcher) -> Batches:
    """Every goal. Only the listing by domain names a goal's domain: it is fetched for domains that webhooks name or a setting adds."""
    domain_ids = sorted({*fetch.warehouse.domain_ids(fetch.account), *fetch.settings.goal_domains})
    listing = fetch.once(operations.LISTS) + fetch.all(operations.LISTBYDOMAIN, ({"domainid": domain_id} for domain_id in domain_ids))
    changed = fetch.new_or_changed(listing, Goal)
    yield listing + fetch.all(operations.SHOW, ({"id": row.goal_id} for row in changed))
