"""Contact lists and audiences."""

from assets.extract import source_asset
from assets.fetch import Batches, Fetcher
from marketing_api.operations import lists as operations
from marketing_api.records.lists import ContactList
from warehouse import tables


@source_asset(tables.LISTS, tables.LIST_FIELDS)
def lists(fetch: Fetcher) -> Batches:
    """Every list with its settings and custom fields; details are fetched only for new or changed ones."""
    listing = fetch.pages(operations.GETLISTS)
    changed = fetch.new_or_changed(listing, ContactList)
    yield listing + fetch.all(operations.GETLIST, ({"id": row.list_id} for row in changed))


@source_asset(tables.AUDIENCES)
def audiences(fetch: Fetcher) -> Batches:
    """Saved audiences that campaigns can be sent to."""
    yield fetch.once(operations.GETAUDIENCES)
