"""The account itself."""

from collections.abc import Iterator

from assets.extract import source_asset
from assets.fetch import Fetcher
from assets.result import Batch
from marketing_api.operations import account
from warehouse import tables


@source_asset(tables.BUSINESS)
def business(fetch: Fetcher) -> Iterator[Batch]:
    """The business behind the key: its names, package and time zone."""
    yield fetch.once(account.ME)
