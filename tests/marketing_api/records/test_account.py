from typing import Any

import pytest

from marketing_api.operations import account
from marketing_api.records.account import Business
from tests.marketing_api import samples
from tests.marketing_api.responses import read, records


def test_business_is_one_row() -> None:
    (business,) = records(Business, account.ME, samples.BUSINESS)
    assert (business.business_id, business.business_name, business.contact_name) == (77, "Corner Café", "Ada")
    assert (business.phone_number, business.service_name, business.package) == (
        "+1 555 0100",
        "corner",
        "Pro",
    )


def test_lower_case_names_of_the_machine_description_are_read() -> None:
    (business,) = records(
        Business,
        account.ME,
        {"business": {"businessname": "Corner", "contactname": "Ada", "timezone": "Europe/Oslo"}},
    )
    assert (business.business_name, business.contact_name, business.timezone) == (
        "Corner",
        "Ada",
        "Europe/Oslo",
    )
    assert business.business_id is None
    assert business.extra is None


@pytest.mark.parametrize("zone", ["BST", "Europe", "Mars/Olympus"])
def test_a_zone_that_only_one_of_the_readers_knows_is_none(zone: str) -> None:
    business = {"business": {"businessName": "Corner", "timezone": zone}}
    (rows,) = read(account.ME, business)
    assert (rows.records[0].timezone, rows.flawed[0].reason) == (None, "timezone: not a time zone")


@pytest.mark.parametrize(
    ("name", "short"),
    [("serviceName", "corner"), ("harborName", "corner"), ("harborname", "corner"), ("mood", None)],
)
def test_the_short_name_may_stand_under_the_name_of_the_service(name: str, short: str | None) -> None:
    """observation 47."""
    (business,) = records(
        Business, account.ME, {"business": {"businessName": "Corner", "contactName": "Ada", name: "corner"}}
    )
    assert (business.business_name, business.contact_name, business.service_name) == ("Corner", "Ada", short)


def test_no_name_is_taken_for_the_short_one_where_several_could_be() -> None:
    (business,) = records(
        Business,
        account.ME,
        {"business": {"firstName": "Ada", "harborName": "corner", "limits": {"contacts": 5}}},
    )
    assert business.service_name is None
    assert business.extra == {"firstName": "Ada", "harborName": "corner", "limits": {"contacts": 5}}


def test_fields_nobody_announced_are_kept() -> None:
    (business,) = records(
        Business, account.ME, {"business": {"businessName": "Corner", "mood": {"is": ["good"]}}}
    )
    assert business.extra == {"mood": {"is": ["good"]}}


@pytest.mark.parametrize("payload", [{}, []], ids=str)
def test_an_empty_business_tells_nothing(payload: Any) -> None:
    assert [rows.missing for rows in read(account.ME, {"business": payload})] == [
        ["business: missing from the response"]
    ]
