"""Which assets are read along with the chosen ones."""

import pytest

from assets.sources import SOURCE_ASSETS, one_request, with_needed
from marketing_api import operations
from marketing_api.errors import InvalidCall
from warehouse import tables


@pytest.mark.parametrize(
    ("chosen", "read", "expected"),
    [
        ("timelines", "", "business lists contacts timelines"),
        ("timelines", "business lists contacts", "timelines"),
        ("timelines coupons", "business lists", "contacts timelines coupons"),
        ("contacts lists", "lists", "business lists contacts"),
        ("campaign_stats", "business", "campaigns campaign_stats"),
        ("users", "", "business users"),
    ],
)
def test_what_an_asset_comes_after_is_read_with_it_when_it_never_was(
    chosen: str, read: str, expected: str
) -> None:
    found = with_needed(
        [SOURCE_ASSETS[name] for name in chosen.split()], lambda asset: asset.name in read.split()
    )
    assert {asset.name for asset in found} == set(expected.split())


def test_a_table_of_a_paged_operation_needs_an_asset_that_reads_its_pages() -> None:
    """One request would take the first page for the whole listing, and mark all other rows as deleted."""
    with pytest.raises(InvalidCall, match="getcontacts has pages: declare an asset"):
        one_request(operations.contacts.GETCONTACTS, tables.CONTACTS, listid=1)


def test_an_asset_is_declared_behind_those_that_it_comes_after() -> None:
    names = list(SOURCE_ASSETS)
    for asset in SOURCE_ASSETS.values():
        assert all(names.index(before.name) < names.index(asset.name) for before in asset.after)
