"""The account itself."""

from __future__ import annotations

from collections.abc import Iterator

from assets.ask import Ask, Part
from assets.extract import source_asset
from marketing_api.operations import account
from warehouse import tables


@source_asset(tables.BUSINESS)
def business(ask: Ask) -> Iterator[Part]:
    """The business behind the key: its names, package and time zone."""
    yield ask.once(account.ME)
