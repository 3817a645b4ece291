"""Contacts, their timelines and their coupons: one request per contact, in the order that the plan gives."""

from dataclasses import replace

from assets.campaigns import campaign_stats
from assets.extract import source_asset
from assets.fetch import Batches, Fetcher
from assets.lists import lists
from assets.result import Batch
from marketing_api.operations import contacts as operations
from warehouse import tables


@source_asset(tables.CONTACTS, after=[lists])
def contacts(fetch: Fetcher) -> Batches:
    """The members of every list; those of a list that is gone are marked as deleted."""
    list_ids = fetch.warehouse.list_ids(fetch.account)
    taken_away = fetch.warehouse.taken_away(fetch.account)
    listings = fetch.listings(operations.GETCONTACTS, ({"listid": list_id} for list_id in list_ids))
    for list_id, batch in zip(list_ids, listings, strict=True):
        yield replace(batch, taken_away=taken_away.get(list_id, 0.0))
    for list_id in fetch.warehouse.vanished_list_ids(fetch.account):
        yield Batch(scope={"list_id": [list_id]}, may_shrink=True)


@source_asset(tables.TIMELINE_EVENTS, tables.TIMELINE_VISITS, tables.TIMELINE_AUTOMATIONS, after=[contacts], informed_by=[campaign_stats])
def timelines(fetch: Fetcher) -> Batches:
    """What happened with each contact: messages sent and opened, visits, automations. Old entries are never removed."""
    yield from fetch.planned(operations.TIMELINE, lambda contact_id: {"id": contact_id, "include": "utm,automated"})


@source_asset(tables.COUPONS, after=[contacts], informed_by=[campaign_stats])
def coupons(fetch: Fetcher) -> Batches:
    """Coupons by e-mail address; an address in several lists is fetched once."""
    yield from fetch.planned(operations.GETCOUPON, lambda email: {"email": email})
