"""The rule of the readers: a text that is neither recognized nor nothing is refused, never taken for what it
may not be.

`spellings` is the oracle; `make attack` runs the same over hundreds of thousands of texts."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketing_api.operations import ALL
from marketing_api.operations import contacts as contact_operations
from marketing_api.records.contacts import Contact
from tests.depth import DEEP, examples
from tests.marketing_api.records.spellings import READERS, check, verdict
from tests.marketing_api.responses import flawed, read, records, rejected


@pytest.mark.deep
@pytest.mark.parametrize("name", READERS)
def test_generated_texts_mean_what_they_are_read_as_or_are_refused(name: str) -> None:
    assert list(check(READERS[name], count=200_000 if DEEP else 2_000, seed=10)) == []


@settings(derandomize=True, max_examples=examples(1_000))
@given(st.sampled_from(list(READERS)), st.text(max_size=40))
def test_any_text_means_what_it_is_read_as_or_is_refused(name: str, text: str) -> None:
    assert verdict(READERS[name], text) is None


@pytest.mark.parametrize("status", [{"a": 1}, [1], True, 1.5, "1,5", "?", "(active)"])
def test_a_status_that_is_neither_code_nor_word_is_set_aside(status: Any) -> None:
    (rows,) = read(
        contact_operations.GETCONTACTS, {"contacts": {"items": [{"id": 1, "status": status}]}}, listid=5
    )
    assert [bad.reason for bad in rows.flawed] == ["status: not a word"]
    assert [dict(record)["status"] for record in rows.records] == [None]


def test_a_code_in_another_form_is_the_code() -> None:
    items = [{"id": 1, "status": 1.0}, {"id": 2, "status": " 01 "}, {"id": 3, "fields": "N/A"}]
    first, second, third = records(
        Contact, contact_operations.GETCONTACTS, {"contacts": {"items": items}}, listid=5
    )
    assert (first.status, first.status_code, second.status) == ("active", 1, "active")
    assert third.custom_fields is None


@pytest.mark.parametrize(
    ("operation", "payload", "reason"),
    [
        ("app/me", {"business": {"businessName": ["Corner"]}}, "businessName: not a text"),
        (
            "emailmarketing/getcontacts",
            {"contacts": {"items": [{"id": 1, "email": {"to": "a@b.example"}}]}},
            "email: not a text",
        ),
        ("emailmarketing/getcontacts", {"contacts": {"items": [{"id": True}]}}, "id: not a number"),
        (
            "emailmarketing/getcontacts",
            {"contacts": {"items": [{"id": 1e18}]}},
            "id: a number too large to be exact",
        ),
        ("emailmarketing/getlist", {"list": {"id": 1, "fields": ["City"]}}, "not an object"),
        (
            "goal/lists",
            {"goals": {"items": [{"id": 1, "links": {"url": "u", "label": "l"}}]}},
            "links: not a list of texts",
        ),
        (
            "goal/lists",
            {"goals": {"items": [{"id": 1, "goal_value": {"value": "80,5"}}]}},
            "value: not a number",
        ),
        (
            "reputation/online",
            {"reviews": {"items": {"Yelp": {"AvgRating": "4,5"}}}},
            "AvgRating: not a number",
        ),
        ("reputation/online", {"reviews": {"items": [{"AvgRating": "4.5"}]}}, "channel: missing"),
        (
            "reputation/stats",
            {"stats": {"SocialMedia": [{"periode": "2013-08-15", "total": 5}]}},
            "network: not a network",
        ),
        (
            "reputation/stats",
            {"stats": {"SocialMedia": [{"periode": "2013-08-15", "3": 5}]}},
            "network: not a network",
        ),
        (
            "reputation/direct",
            {"reviews": {"items": [{"id": 1, "date": "05/16/2013", "time": 1034}]}},
            "reviewed_at: not a date or time",
        ),
        (
            "socialmedia/stats",
            {"stats": {"items": [{"id": 1, "clicks": {"1": 3}}]}},
            "network: not a network",
        ),
        ("socialmedia/channels", {"channels": {"Facebook": {"1": {"id": 7}}}}, "kind: not a word"),
        ("emailmarketing/stats", {"campaign": {"clicks": [{"url": ["u"]}]}}, "url: not a text"),
        (
            "emailmarketing/getcoupon",
            {"coupons": [{"id": 1, "couponredeemed": "maybe"}]},
            "couponredeemed: neither yes nor no",
        ),
    ],
)
def test_a_value_of_another_kind_is_set_aside_with_its_reason(
    operation: str, payload: Any, reason: str
) -> None:
    params = {
        "emailmarketing/getcontacts": {"listid": 5},
        "emailmarketing/getlist": {"id": 1},
        "emailmarketing/stats": {"id": 41, "type": "standard"},
        "emailmarketing/getcoupon": {"email": "a@b.example"},
        "reputation/stats": {"from_": "2013-08-01", "to": "2013-08-31"},
    }
    (bad,) = (rejected if reason in _OF_KEYS else flawed)(
        ALL[operation], payload, **params.get(operation, {})
    )
    assert bad.reason == reason


#: What a record is told apart by, or hangs on: without it there is no record.
_OF_KEYS = (
    "id: not a number",
    "id: a number too large to be exact",
    "not an object",
    "channel: missing",
    "network: not a network",
)
_OF_KEYS += ("kind: not a word", "url: not a text")


def test_a_keyed_detail_keeps_its_names() -> None:
    entry = {"key": "a", "timestamp": 1383582780, "details": {"open-date": {"value": "x"}}}
    (batch,) = [
        records(record, ALL["emailmarketing/getcontacttimeline"], {"timeline": {"data": [entry]}}, id=1)
        for record in _EVENT
    ]
    assert batch[0].details == {"open-date": {"value": "x"}}


_EVENT = ALL["emailmarketing/getcontacttimeline"].records[:1]
