"""The account itself."""

from assets.extract import source_asset
from assets.fetch import Batches, Fetcher
from marketing_api.operations import account
from warehouse import tables


@source_asset(tables.BUSINESS)
def business(fetch: Fetcher) -> Batches:
    """The business behind the key: its names, package and time zone."""
    yield fetch.once(account.ME)
