from __future__ import annotations

from typing import Any

import pytest

from marketing_api.operations import account
from marketing_api.records.account import Business
from tests.marketing_api import samples
from tests.marketing_api.responses import read, records


def test_business_is_one_row() -> None:
    (business,) = records(Business, account.ME, samples.BUSINESS)
    assert (business.business_id, business.business_name, business.contact_name) == (77, "Corner Café", "Ada")
    assert (business.phone_number, business.service_name, business.package) == ("+1 555 0100", "corner", "Pro")


def test_lower_case_names_of_the_machine_description_are_read() -> None:
    (business,) = records(Business, account.ME, {"business": {"businessname": "Corner", "contactname": "Ada", "timezone": "Europe/Oslo"}})
    assert (business.business_name, business.contact_name, business.timezone) == ("Corner", "Ada", "Europe/Oslo")
    assert business.business_id is None
    assert business.extra is None


def test_fields_nobody_announced_are_kept() -> None:
    (business,) = records(Business, account.ME, {"business": {"businessName": "Corner", "mood": {"is": ["good"]}}})
    assert business.extra == {"mood": {"is": ["good"]}}


@pytest.mark.parametrize("payload", [{}, []], ids=str)
def test_an_empty_business_tells_nothing(payload: Any) -> None:
    assert [rows.missing for rows in read(account.ME, {"business": payload})] == [["business: missing from the response"]]
