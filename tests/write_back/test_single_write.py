"""Whether a single write would subscribe a person again, whichever spelling its status has."""

import pytest

from marketing_api.contact_lookup import Directory
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.records.contacts import ADDCONTACT, EDITCONTACT, MOVECONTACT, SYNCCONTACT
from tests.marketing_api.responses import response
from write_back.single_write import find_raised

EMAIL = "ann@example.com"
UNSUBSCRIBED = {"contact": [{"id": "7", "email": EMAIL, "listid": "1", "status": "Unsubscribed"}]}


def fetch_unsubscribed(call: Call) -> Response:
    return response(call.operation, UNSUBSCRIBED, **call.params)


@pytest.mark.parametrize("status", ["Active", "1", "0"])
def test_a_status_that_reaches_the_person_subscribes_again(status: str) -> None:
    for call in (
        ADDCONTACT.bind(email=EMAIL, listid="2", status=status),
        SYNCCONTACT.bind(email=EMAIL, listid="1", status=status),
        EDITCONTACT.bind(id=7, status=status),
    ):
        assert find_raised(call, Directory(fetch_unsubscribed)) == {"unsubscribed"}


@pytest.mark.parametrize(
    "call",
    [
        ADDCONTACT.bind(email=EMAIL, listid="2", status="2"),
        SYNCCONTACT.bind(email=EMAIL, listid="1", status="Disactive"),
        SYNCCONTACT.bind(email=EMAIL, listid="1"),
        EDITCONTACT.bind(id=7, status="3"),
        EDITCONTACT.bind(id=7, email="new@example.com"),
        MOVECONTACT.bind(id=7, listid="2", sourceid="1"),
    ],
    ids=str,
)
def test_a_call_that_keeps_the_person_away_subscribes_nobody(call: Call) -> None:
    assert find_raised(call, Directory(fetch_unsubscribed)) == set()
