"""People who work with the account."""

from assets.extract import source_asset
from assets.fetch import Batches, Fetcher
from marketing_api.operations import users as operations
from warehouse import tables


@source_asset(tables.USERS)
def users(fetch: Fetcher) -> Batches:
    """Users of the business and, for an agency, of its sub-accounts."""
    yield fetch.once(operations.LISTS)


@source_asset(tables.MANAGERS)
def managers(fetch: Fetcher) -> Batches:
    """Managers of the account."""
    yield fetch.once(operations.MANAGERS)


@source_asset(tables.USER_GROUPS)
def user_groups(fetch: Fetcher) -> Batches:
    """Groups that give users their permissions."""
    yield fetch.once(operations.GROUPS)
