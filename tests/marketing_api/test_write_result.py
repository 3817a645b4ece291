"""Sentences of an `ok` answer: which say that the write happened, and which that it did not (observations 3, 5 and 7)."""

import datetime as dt
import json
from typing import Any

import pytest

from marketing_api import validation
from marketing_api.envelope import read_envelope
from marketing_api.errors import Refused
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import ALL, contacts
from marketing_api.write_result import new_id, says_absent

TAG = contacts.ADDTAG.bind(email="ann@example.com", tagname="vip")
UNTAG = contacts.REMOVETAG.bind(email="ann@example.com", id=7, tagname="vip")
SYNC = contacts.SYNCCONTACT.bind(email="ann@example.com", listid="3", status="Active")
ADD = ALL["emailmarketing/addcontact"].bind(email="ann@example.com", listid="3", status="Active")
NOTE = contacts.ADDACTIVITY.bind(id=7, description="Called: no answer", datetime="2026-01-05 12:00:00")
MOVE = contacts.MOVECONTACT.bind(id=7, listid=3, sourceid=4)
DELETE = contacts.DELETECONTACT.bind(id=7, listid=3)
CALLS = [TAG, UNTAG, SYNC, NOTE, MOVE, DELETE, ADD]


def told(data: Any, *, header: str = "ok") -> bytes:
    return json.dumps(
        {"response": {"header": {"status": header, "dataType": "array"}, "data": data}}
    ).encode()


def is_refused(call: Call, data: Any, status: int = 200) -> bool:
    try:
        validation.check_response(call, status, {}, read_envelope(told(data)))
    except Refused:
        return True
    return False


@pytest.mark.parametrize("call", CALLS, ids=lambda one: one.operation.name)
@pytest.mark.parametrize(
    "sentence",
    [
        "The contact doesn't exist",
        "The contact doesn’t exist.",
        "The contact doesn&#039;t exist!",
        "<p>Contact does not exist</p>",
        "Contact not found",
        "The contact was not found",
        "The contact could not be found",
        "CONTACT CANNOT BE FOUND",
        "No such contact",
        "No contact with this email",
        "No contacts matched",
        "There is no contact with that id",
        "Unknown contact",
        "Invalid contact id",
        "The id is not valid",
        "We couldn't process your request",
        "Your request could not be completed",
        "Something went wrong",
        "An error occurred",
        "Failed",
        "Request failed: internal problem",
        "Unable to save",
        "Permission denied",
        "You are not allowed to do this",
        "You don't have permission",
        "The value is too long",
        "The limit was reached",
        "The contact is blacklisted",
        "Email address is required",
        "Please provide a valid email",
        "The contact was not added",
        "Not processed",
        "0 contacts updated",
        "Nothing was updated",
        "Unsuccessful",
        "Sorry, try again later",
    ],
)
def test_words_of_refusal_are_a_refusal(call: Call, sentence: str) -> None:
    assert is_refused(call, {"item": sentence})


@pytest.mark.parametrize("call", CALLS, ids=lambda one: one.operation.name)
@pytest.mark.parametrize(
    "sentence",
    [
        "The tag was added successfully",
        "The contact has been added",
        "The contact was updated.",
        "The contact has been queued",
        "Contact queued; it may not appear immediately",
        "Your request is not yet processed",
        "Your request has been received. Please do not send it again.",
        "Success",
        "Success!",
        "OK",
        "Done",
        "1 contact updated",
        "10 contacts updated",
        "Completed without errors",
        "Completed. Errors: 0",
        "Updated 1, failed: 0",
        "The activity \"not found\" was added",
        "Removed from 1 list(s)",
        "Moved",
        "",
        "true",
    ],
)  # fmt: skip
def test_words_of_success_are_a_success(call: Call, sentence: str) -> None:
    assert not is_refused(call, {"item": sentence})


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (TAG, "The contact already has this tag"),
        (TAG, "The tag could not be added: the contact already has it"),
        (TAG, "Tag already exists"),
        (UNTAG, "The tag was already removed"),
        (UNTAG, "The contact does not have this tag"),
        (UNTAG, "The tag was not found"),
        (UNTAG, "The contact isn't tagged"),
        (SYNC, "The contact already exists and was updated"),
        (SYNC, "Nothing to update"),
        (SYNC, "The contact is up to date"),
        (SYNC, "The contact was not changed"),
        (NOTE, "The activity already exists"),
        (NOTE, "Duplicate activity"),
        (MOVE, "The contact is already in the list"),
        (DELETE, "The contact was already deleted"),
    ],
)
def test_what_is_as_intended_already_is_no_refusal(call: Call, sentence: str) -> None:
    assert not is_refused(call, {"item": sentence})


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (ADD, "The contact already exists"),  # and its values were not taken in
        (SYNC, "The contact could not be updated: it already exists in another account"),
        (TAG, "The contact doesn't exist; it was already deleted"),
        (UNTAG, "The contact doesn't exist"),
    ],
)
def test_already_does_not_excuse_everything(call: Call, sentence: str) -> None:
    assert is_refused(call, {"item": sentence})


def test_words_that_were_sent_do_not_count() -> None:
    tag = contacts.ADDTAG.bind(email="ann@example.com", tagname="contact not found")
    assert not is_refused(tag, {"item": "The tag contact not found was added"})
    assert is_refused(tag, {"item": "The tag contact not found was not added"})


@pytest.mark.parametrize(
    "data",
    [
        {"item": {"errorCode": 1004, "errorMessage": "no"}},
        {"contact": {"errorCode": "1003", "errorMessage": "The contact doesn't exist"}},
        {"contact": [{"errorCode": 1003}]},
        {"item": ["The contact doesn't exist"]},
        {"item": "The contact was added", "errors": ["listid is not valid"]},
        {"success": False},
        {"item": {"status": "error"}},
        {"error": "bad"},
        {"errorMessage": "bad"},
    ],
)
def test_an_error_anywhere_in_the_payload_is_a_refusal(data: Any) -> None:
    assert is_refused(TAG, data)


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        None,
        {"item": None},
        {"id": "12", "item": ""},
        {"success": True, "errors": []},
        {"item": {"errorCode": 0}},
    ],
)
def test_an_answer_without_words_is_a_success(data: Any) -> None:
    assert not is_refused(TAG, data)


@pytest.mark.parametrize("made", [0, "0", 0.0, " 00 "])
def test_id_0_is_no_success(made: Any) -> None:
    """observation 45. Where a write makes nothing, an id says nothing."""
    post = ALL["socialmedia/addpost"].bind(message="Hello", channel="facebook", channelid=1)
    assert is_refused(ADD, {"id": made, "item": "The contact was added"})
    assert is_refused(SYNC, {"ID": made})
    assert is_refused(post, {"post_id": made})
    assert not is_refused(TAG, {"id": made, "item": "The tag was added"})
    assert not is_refused(SYNC, {"id": 10, "item": "The contact was synced"})


@pytest.mark.parametrize("member", ["item", "error"])
def test_a_contact_that_exists_is_refused_by_its_words(member: str) -> None:
    with pytest.raises(Refused, match="said: The contact already exists"):
        validation.check_response(
            ADD, 200, {}, read_envelope(told({"id": "0", member: "The contact already exists"}))
        )


@pytest.mark.parametrize("status", [200, 400, 404, 500])
def test_an_ok_envelope_counts_whatever_the_http_status_says(status: int) -> None:
    assert not is_refused(TAG, {"item": "The tag was added"}, status)
    assert is_refused(TAG, {"item": "The contact doesn't exist"}, status)


def test_the_refusal_shows_the_words_without_addresses() -> None:
    with pytest.raises(Refused, match="The contact … doesn't exist") as caught:
        validation.check_response(
            TAG, 200, {}, read_envelope(told({"item": "The contact ann@example.com doesn't exist"}))
        )
    assert "ann@" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"id": "12", "item": "x"}, 12),
        ({"post_id": 7}, 7),
        ({"item": "x"}, None),
        ({"id": True}, None),
        ({"id": "0"}, None),
    ],
)
def test_the_new_id_is_read_where_the_answer_has_one(data: Any, named: int | None) -> None:
    response = Response(1, "main", TAG, dt.datetime.now(dt.UTC), told(data))
    assert new_id(response) == named


@pytest.mark.parametrize(
    ("text", "is_absent"),
    [
        ("The contact in the source list doesn't exist", True),
        ("The contact is not in this list", True),
        ("The contact is not in the source list", True),
        ("no longer a member", True),
        ("The contact was deleted successfully", False),
        ("over the rate limit", False),
        ("the list is invalid", False),
    ],
)
def test_words_for_not_there_are_told_from_others(text: str, is_absent: bool) -> None:
    assert says_absent(text) is is_absent


def test_every_write_declares_what_its_answer_has() -> None:
    assert all("item" in one.result for one in ALL.values() if not one.is_read)
