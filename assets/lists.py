"""Contact lists and audiences."""

from __future__ import annotations

from collections.abc import Iterator

from assets.ask import Ask, Part
from assets.extract import source_asset
from marketing_api.operations import lists as operations
from marketing_api.records.lists import ContactList
from warehouse import tables


@source_asset(tables.LISTS, tables.LIST_FIELDS)
def lists(ask: Ask) -> Iterator[Part]:
    """Every list with its settings and custom fields; the single fetch is asked only for new or changed ones."""
    listing = ask.pages(operations.GETLISTS)
    changed = ask.new_or_changed(listing, ContactList)
    yield listing + ask.all(operations.GETLIST, ({"id": row.list_id} for row in changed))


@source_asset(tables.AUDIENCES)
def audiences(ask: Ask) -> Iterator[Part]:
    """Saved audiences that campaigns can be sent to."""
    yield ask.once(operations.GETAUDIENCES)
