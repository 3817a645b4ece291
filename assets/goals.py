"""Conversion goals."""

from __future__ import annotations

from collections.abc import Iterator

from assets.ask import Ask, Part
from assets.extract import source_asset
from assets.webhooks import webhooks
from marketing_api.operations import goals as operations
from marketing_api.records.goals import Goal
from warehouse import tables


@source_asset(tables.GOALS, after=[webhooks])
def goals(ask: Ask) -> Iterator[Part]:
    """Every goal. Only the listing by domain tells a goal's domain: it is asked for domains that webhooks name or a setting adds."""
    domain_ids = sorted({*ask.known.domain_ids(), *ask.settings.goal_domains})
    listing = ask.once(operations.LISTS) + ask.all(operations.LISTBYDOMAIN, ({"domainid": domain_id} for domain_id in domain_ids))
    changed = ask.new_or_changed(listing, Goal)
    yield listing + ask.all(operations.SHOW, ({"id": row.goal_id} for row in changed))
