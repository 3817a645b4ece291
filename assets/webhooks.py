"""On-site behavioural webhooks."""

from __future__ import annotations

from collections.abc import Iterator

from assets.ask import Ask, Part
from assets.extract import source_asset
from marketing_api.operations import webhooks as operations
from marketing_api.records.webhooks import Webhook
from warehouse import tables


@source_asset(tables.WEBHOOKS)
def webhooks(ask: Ask) -> Iterator[Part]:
    """Every webhook; the single fetch is asked only for new or changed ones."""
    listing = ask.once(operations.LISTS)
    changed = ask.new_or_changed(listing, Webhook)
    yield listing + ask.all(operations.SHOW, ({"id": row.webhook_id} for row in changed))
