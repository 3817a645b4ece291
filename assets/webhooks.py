"""On-site behavioural webhooks."""

from assets.extract import source_asset
from assets.fetch import Batches, Fetcher
from marketing_api.operations import webhooks as operations
from marketing_api.records.webhooks import Webhook
from warehouse import tables


@source_asset(tables.WEBHOOKS)
def webhooks(fetch: Fetcher) -> Batches:
    """Every webhook; details are fetched only for new or changed ones."""
    listing = fetch.once(operations.LISTS)
    changed = fetch.new_or_changed(listing, Webhook)
    yield listing + fetch.all(operations.SHOW, ({"id": row.webhook_id} for row in changed))
