from __future__ import annotations

import pytest

from marketing_api.exchange import prepare
from marketing_api.operations import contacts, reputation

BASE = "https://service.example/1"


@pytest.mark.parametrize("base", [BASE, f"{BASE}/"])
def test_parameters_of_a_read_go_into_the_query(base: str) -> None:
    prepared = prepare(contacts.GETCONTACTS.bind(listid=5, limit=1000), base)
    assert (prepared.method, prepared.url) == ("GET", f"{BASE}/emailmarketing/getcontacts.json")
    assert (prepared.query, prepared.form) == ([("listid", "5"), ("limit", "1000")], [])


def test_parameters_of_a_write_go_into_the_form() -> None:
    prepared = prepare(contacts.EDITCONTACT.bind(id=1, fields={"12": "London"}), BASE)
    assert (prepared.method, prepared.query) == ("POST", [])
    assert prepared.form == [("id", "1"), ("fields[12]", "London")]


def test_the_one_delete_by_get_sends_a_query() -> None:
    prepared = prepare(reputation.DELETEFEEDBACK.bind(id=7), BASE)
    assert (prepared.method, prepared.query) == ("GET", [("id", "7")])


def test_repr_of_a_request_shows_no_values() -> None:
    prepared = prepare(contacts.GETCOUPON.bind(email="ann@example.com"), BASE)
    assert "ann" not in repr(prepared)
    assert "email" in repr(prepared)
