"""A listing shows each contact as it is shown singly, in any style, size and moment; pages lose nothing."""

import datetime as dt
import json
from itertools import product
from zoneinfo import ZoneInfo

import pytest

from marketing_api.sandbox.seeded_account import list_id
from tests.marketing_api.sandbox.asking import DAY, NOW, asking


@pytest.mark.parametrize(
    ("contacts", "days"),
    [*product((100, 700), (-600, 0, 75)), pytest.param(20_000, 75, marks=pytest.mark.slow)],
)
def test_listing_equals_the_contacts_one_by_one(contacts: int, days: int) -> None:
    ask = asking(contacts=contacts, timezone="America/New_York", now=NOW)
    world, now = ask.app.world, NOW + days * DAY
    world.fixed = now
    for number in range(5):
        listed = ask.contacts(list_id(number))[:2000]
        for item in listed[:: max(1, len(listed) // 60)]:
            assert item == ask.data("emailmarketing/getcontact", id=item["id"])["contact"]
        assert len(ask.contacts(list_id(number))) == len(world.subscribers.on_list(list_id(number), now))


@pytest.mark.parametrize(
    "style",
    [
        {},
        {"contact-fields": "label"},
        {"contact-fields": "nested"},
        {"contact-fields": "off"},
        {"ids": "number"},
    ],
)
def test_listing_equals_the_single_contact_in_every_style(style: dict[str, str]) -> None:
    ask = asking(contacts=150, switches=style)
    for item in ask.contacts(list_id(1)):
        assert item == ask.data("emailmarketing/getcontact", id=item["id"])["contact"]


@pytest.mark.parametrize("limit", [1, 7, 50, 1000])
def test_pages_join_to_the_whole_listing(limit: int) -> None:
    ask = asking(contacts=400)
    whole = ask.contacts(list_id(0))
    ask.data("emailmarketing/deletecontact", id=whole[20]["id"], listid=list_id(0))
    ask.data("emailmarketing/movecontact", id=whole[30]["id"], listid=list_id(1), sourceid=list_id(0))
    ask.data("emailmarketing/addcontact", listid=list_id(0), status="Active", email="late@example.com")
    whole = ask.contacts(list_id(0))
    ask.switch("contact-paging", "honoured")
    pages = []
    for page in range(1, 1000):
        answer = ask.data("emailmarketing/getcontacts", listid=list_id(0), limit=limit, page=page)["contacts"]
        assert answer["count"] == (len(whole) if answer["items"] else 0)
        if not answer["items"]:
            break
        pages += answer["items"]
    assert pages == whole


def test_written_contacts_leave_the_others_as_they_were() -> None:
    ask = asking(contacts=2000)
    before = {item["id"]: item for item in ask.contacts(list_id(0))}
    some = list(before)[::40]
    for one in some:
        ask.data("emailmarketing/editcontact", id=one, fields={"9103": "Elsewhere"})
    after = {item["id"]: item for item in ask.contacts(list_id(0))}
    assert before.keys() == after.keys()
    assert {one for one in after if after[one]["9103"] == "Elsewhere"} == set(some)
    assert all(before[one] == after[one] for one in before if one not in set(some))


def test_items_keyed_by_number_hold_the_same_contacts() -> None:
    ask = asking(contacts=1500)
    whole = ask.contacts(list_id(0))
    ask.switch("items", "numbered")
    items = ask.data("emailmarketing/getcontacts", listid=list_id(0))["contacts"]["items"]
    assert list(items) == [str(place) for place in range(1, len(whole) + 1)]
    assert list(items.values()) == whole


def test_names_beyond_ascii_survive() -> None:
    names = {item["9100"] for item in asking(contacts=1000).contacts(list_id(0))}
    assert any(not name.isascii() for name in names)
    assert json.dumps(sorted(names))


def test_local_times_are_in_the_zone_of_the_account() -> None:
    ask = asking(timezone="America/New_York")
    zone = ZoneInfo("America/New_York")
    for item in ask.contacts(list_id(0))[::5]:
        entry = ask.data("emailmarketing/getcontacttimeline", id=item["id"])["timeline"]["data"][-1]
        local = dt.datetime.fromtimestamp(entry["timestamp"], zone)
        assert entry["key"] == "list-subscription"
        assert item["registration_date"] == local.strftime("%m/%d/%Y %H:%M")
        assert entry["datetime"] == local.strftime("%Y-%m-%d %I:%M %p")
