"""From responses to marts and a hashed copy, a person is one row however the address is spelled."""

import duckdb
import pytest

from marketing_api.address import normal_form
from marketing_api.operations import account, campaigns, contacts, lists
from marketing_api.redaction import Secret
from tests.spellings import SPELLINGS
from tests.warehouse.answering import Home
from warehouse import tables
from warehouse.masking import Masking
from warehouse.models import build_models
from warehouse.policies import PersonalData
from warehouse.publish import publish_copy, published_path

_COUNT = 2 * len(SPELLINGS)


def fill(home: Home) -> None:
    """Everybody is on two lists, in two spellings, with a coupon and a click; so is a near namesake."""
    home.load([home.answer(account.ME, {"business": {"id": 7, "businessName": "Corner"}})], tables.BUSINESS)
    both = [{"id": 1, "name": "News"}, {"id": 2, "name": "Shop"}]
    home.load(
        [home.answer(lists.GETLISTS, {"lists": {"count": 2, "items": both}})],
        tables.LISTS,
        tables.LIST_FIELDS,
    )
    for list_id in (1, 2):
        spellings = [spelling for found in SPELLINGS for spelling in (found[list_id - 1], found[2])]
        items = [
            {"id": 100 * list_id + number, "email": each, "status": "1"}
            for number, each in enumerate(spellings)
        ]
        home.load(
            [home.answer(contacts.GETCONTACTS, {"contacts": {"items": items}}, 1, listid=list_id)],
            tables.CONTACTS,
        )
    pairs = [pair for shown, given, other in SPELLINGS for pair in ((given, shown), (other, other))]
    responses = [
        home.answer(contacts.GETCOUPON, {"coupons": [{"id": number, "email": shown}]}, 2, email=given)
        for number, (given, shown) in enumerate(pairs)
    ]
    home.load(responses, tables.COUPONS)
    clickers = [{"email": spelling.strip(), "clicks": 1} for found in SPELLINGS for spelling in found]
    statistics = {"campaign": {"stats": {"open": "99 (9%)"}, "clicks": [{"url": "u", "clickers": clickers}]}}
    filled = (tables.CAMPAIGN_STATS, tables.CAMPAIGN_LINKS, tables.CAMPAIGN_CLICKERS)
    home.load([home.answer(campaigns.STATS, statistics, 3, id=1, type="standard")], *filled)
    listed = {"campaigns": {"count": 1, "items": [{"id": 1, "subject": "Hi", "status": "sent"}]}}
    home.load([home.answer(campaigns.CAMPAIGNS, listed, 3, filter="all")], tables.CAMPAIGNS)


@pytest.mark.slow
def test_a_person_is_one_row_of_the_marts_and_has_one_hash(home: Home) -> None:
    fill(home)
    assert not build_models(home.path / "warehouse.duckdb").failure_summary
    people = home.rows("marts.contact_engagement", "email, contact_count, list_count, coupon_count")
    assert {row["email"] for row in people} == {normal_form(each) for found in SPELLINGS for each in found}
    assert [tuple(row.values())[1:] for row in people] == [(2, 2, 1)] * _COUNT
    assert home.values("marts.coupon_funnel", "address_count") == [_COUNT]
    assert home.values("marts.campaign_performance", "clicker_count") == [_COUNT]
    assert home.values("marts.list_performance", "address_count") == [_COUNT, _COUNT]

    publish_copy(home.path, Masking(PersonalData.HASH, Secret("k" * 20)))
    with duckdb.connect(str(published_path(home.path)), read_only=True) as connection:
        hashes = (
            "select count(distinct email), count(distinct email_normalized), bool_and(email = "
            "email_normalized) from source.contacts"
        )
        assert connection.sql(hashes).fetchall() == [(_COUNT, _COUNT, True)]
        joined = (
            "select count(*) from source.coupons as c join marts.contact_engagement as e on c.email = e.email"
        )
        assert connection.sql(joined).fetchall() == [(_COUNT,)]
