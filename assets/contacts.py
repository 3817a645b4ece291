"""Contacts, their timelines and their coupons: one request per contact, in the order that the plan gives."""

from __future__ import annotations

from collections.abc import Iterator

from assets import plan
from assets.ask import Ask, Part
from assets.extract import source_asset
from assets.lists import lists
from marketing_api.operations import contacts as operations
from warehouse import tables


@source_asset(tables.CONTACTS, after=[lists])
def contacts(ask: Ask) -> Iterator[Part]:
    """The members of every list; those of a list that is gone are marked as deleted."""
    list_ids = ask.known.list_ids()
    yield from ask.listings(operations.GETCONTACTS, ({"listid": list_id} for list_id in list_ids))
    yield from (ask.nothing_left(list_id=list_id) for list_id in ask.known.vanished_list_ids())


@source_asset(tables.TIMELINE_EVENTS, tables.TIMELINE_VISITS, tables.TIMELINE_AUTOMATIONS, after=[contacts])
def timelines(ask: Ask) -> Iterator[Part]:
    """What happened with each contact: messages sent and opened, visits, automations. Old entries are never removed."""
    contact_ids = plan.timelines(ask.known)
    yield from ask.each(operations.TIMELINE, ({"id": contact_id, "include": "utm,automated"} for contact_id in contact_ids))


@source_asset(tables.COUPONS, after=[contacts])
def coupons(ask: Ask) -> Iterator[Part]:
    """Coupons by e-mail address; an address in several lists is asked once."""
    yield from ask.each(operations.GETCOUPON, ({"email": email} for email in plan.coupons(ask.known)))
