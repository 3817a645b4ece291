"""People who work with the account."""

from __future__ import annotations

from collections.abc import Iterator

from assets.ask import Ask, Part
from assets.extract import source_asset
from marketing_api.operations import users as operations
from warehouse import tables


@source_asset(tables.USERS)
def users(ask: Ask) -> Iterator[Part]:
    """Users of the business and, for an agency, of its sub-accounts."""
    yield ask.once(operations.LISTS)


@source_asset(tables.MANAGERS)
def managers(ask: Ask) -> Iterator[Part]:
    """Managers of the account."""
    yield ask.once(operations.MANAGERS)


@source_asset(tables.USER_GROUPS)
def user_groups(ask: Ask) -> Iterator[Part]:
    """Groups that give users their permissions."""
    yield ask.once(operations.GROUPS)
