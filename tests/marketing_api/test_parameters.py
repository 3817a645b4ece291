"""Binding values to an operation's parameters: what is sent, and what is refused before a request."""

import datetime as dt
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.errors import InvalidCall
from marketing_api.operation import Kind, Operation, Parameter
from marketing_api.operations import ALL, campaigns, contacts, reputation, social


def test_values_are_sent_in_their_wire_form_and_declared_order() -> None:
    days = {"to": "12/31/2026", "from_": dt.date(2026, 1, 31)}
    call = social.CALENDAR.bind(page=2, **days, includeposted=True, channels=["Facebook", "twitter"])
    assert list(call.params.items()) == [
        ("channels", "facebook,twitter"),
        ("from", "2026-01-31"),
        ("to", "2026-12-31"),
        ("includeposted", "true"),
        ("page", "2"),
    ]


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (dt.datetime(2026, 1, 31, 14, 5), "2026-01-31 14:05:00"),
        ("2026-01-31T14:05:09", "2026-01-31 14:05:09"),
        ("01/31/2026 14:05", "2026-01-31 14:05:00"),
        ("2026-01-31 02:05 PM", "2026-01-31 14:05:00"),
        ("2026-01-31", "2026-01-31 00:00:00"),
    ],
)
def test_date_times_are_sent_in_one_form(value: Any, sent: str) -> None:
    assert contacts.ADDACTIVITY.bind(id=1, description="Called", datetime=value).params["datetime"] == sent


def test_fields_are_sent_one_by_one_however_they_are_given() -> None:
    as_map = contacts.EDITCONTACT.bind(id=1, fields={"12": "London", 13: 4})
    typed = contacts.EDITCONTACT.bind(id=1, **{"fields[12]": "London", "fields[13]": "4"})
    assert as_map.params == typed.params == {"id": "1", "fields[12]": "London", "fields[13]": "4"}


def test_required_parameter_with_a_default_is_sent_all_the_same() -> None:
    assert campaigns.CAMPAIGNS.bind().params == {"filter": "all"}
    assert campaigns.CAMPAIGNS.bind(filter="Sent").params == {"filter": "sent"}


def test_none_means_not_given() -> None:
    assert reputation.DIRECT.bind(filter=None).params == {}


NOTE, GOAL = {"id": 1, "datetime": "2026-01-31"}, {"domainid": 1, "name": "x", "type": "url"}
DAYS = {"from_": "2026-01-01", "to": "2026-01-02"}


@pytest.mark.parametrize(
    ("operation", "values", "parameter", "hint"),
    [
        (contacts.GETCONTACTS, {}, "listid", "listid is required"),
        (contacts.GETCONTACTS, {"listid": " "}, "listid", "an id is needed"),
        (contacts.GETCONTACTS, {"listId": 1, "lmit": 2}, "lmit", "did you mean limit"),
        (contacts.GETCONTACTS, {"listid": 1, "limit": "many"}, "limit", "a number is needed"),
        (contacts.TIMELINE, {"id": 1, "include": "utm,visits"}, "include", "allowed: utm, automated"),
        (contacts.GETCOUPON, {"email": "nobody"}, "email", "an e-mail address is needed"),
        (contacts.EDITCONTACT, {"id": 1, "fields": "London"}, "fields", "takes a map"),
        (contacts.EDITCONTACT, {"id": 1, "fields": {"7": "\ud83d"}}, "fields", "half a character"),
        (contacts.ADDACTIVITY, {**NOTE, "description": "wav\udc4b"}, "description", "half a character"),
        (reputation.STATS, {"from_": "31.01.2026", "to": "2026-01-31"}, "from", "a date is needed"),
        (reputation.STATS, {"from_": "2026-01-01"}, "to", "to is required"),
        (campaigns.GETCAMPAIGN, {"id": 1}, "type", "one of standard, automated"),
        (ALL["account/getsubaccountautologin"], {"id": 1, "expire": 3601}, "expire", "at most 3600"),
        (ALL["goal/add"], {**GOAL, "destination_url": "corner"}, "destination_url", "a link is needed"),
        (social.CALENDAR, {**DAYS, "includeposted": "maybe"}, "includeposted", "true or false"),
    ],
)
def test_a_wrong_call_names_the_parameter_and_what_is_allowed(
    operation: Operation, values: dict[str, Any], parameter: str, hint: str
) -> None:
    with pytest.raises(InvalidCall, match=hint) as refused:
        operation.bind(**values)
    assert refused.value.parameter == parameter


def test_permissions_are_required_without_a_group() -> None:
    person = {"fullname": "Ada", "username": "ada", "password": "x", "type": "user"}
    with pytest.raises(InvalidCall, match="one of permissions, group"):
        ALL["user/add"].bind(**person)
    assert ALL["user/add"].bind(**person, group=4).params["group"] == "4"
    call = ALL["user/add"].bind(**person, permissions=["notes", "heatmap"])
    assert call.params["permissions"] == "notes,heatmap"


def test_flags_are_sent_as_0_and_1() -> None:
    add = ALL["emailmarketing/addlist"]
    texts = {parameter.name: "x" for parameter in add.parameters if parameter.required}
    call = add.bind(**texts | {"doubleOptin": True, "communications": "0"})
    assert (call.params["doubleOptin"], call.params["communications"]) == ("1", "0")


def test_channel_ids_are_not_restricted() -> None:
    ids = ["17841400000000000", "urn:li:7"]
    call = ALL["socialmedia/addpost"].bind(message="Hello", channel="instagram", channelid=ids)
    assert call.params["channelid"] == "17841400000000000,urn:li:7"


def test_secrets_and_addresses_are_not_in_messages_nor_reprs() -> None:
    call = ALL["user/add"].bind(fullname="Ada", username="ada", password="hunter2", type="user", group=1)
    assert call.public_params["password"] == "***"
    assert "hunter2" not in repr(call)
    assert "Ada" not in repr(call)
    with pytest.raises(InvalidCall) as refused:
        contacts.GETCOUPON.bind(email="ann at example.com")
    assert "ann" not in str(refused.value)


def test_equal_questions_have_equal_keys_whatever_the_order() -> None:
    one = social.CALENDAR.bind(from_="2026-01-01", to="2026-01-02", limit=5)
    other = social.CALENDAR.bind(limit="5", to=dt.date(2026, 1, 2), from_="01/01/2026")
    assert one.key == other.key
    assert one.key != social.CALENDAR.bind(from_="2026-01-01", to="2026-01-02", limit=6).key


NAMES = [
    *sorted({parameter.name for operation in ALL.values() for parameter in operation.parameters}),
    "key",
    "nonsense",
    "fields[1]",
]
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
VALUES |= st.sampled_from(["all", "2026-01-31", "a@example.com", "1,2"])


@given(
    operation=st.sampled_from(list(ALL.values())),
    values=st.dictionaries(
        st.sampled_from(NAMES) | st.text(string.ascii_lowercase, min_size=1, max_size=6), VALUES, max_size=6
    ),
)
def test_bind_never_sends_what_is_not_declared(operation: Operation, values: dict[str, Any]) -> None:
    try:
        call = operation.bind(**values)
    except InvalidCall:
        return
    declared = {parameter.name: parameter for parameter in operation.parameters}
    for name, value in call.params.items():
        parameter = declared[name.partition("[")[0]]
        assert isinstance(value, str)
        if parameter.choices:
            assert set(value.split(",") if parameter.many else [value]) <= set(parameter.choices)
    assert {name for name, parameter in declared.items() if parameter.required} <= call.params.keys()


@given(st.from_regex(r"-?[0-9]{1,12}(\.[0-9]{1,6})?", fullmatch=True))
def test_numbers_arrive_unchanged_in_value(text: str) -> None:
    assert float(Parameter("value", kind=Kind.NUMBER).encode_value(text, "x")["value"]) == float(text)


@given(st.dates(min_value=dt.date(1000, 1, 1)))
def test_dates_may_be_given_in_either_form(day: dt.date) -> None:
    parameter = Parameter("from", kind=Kind.DATE)
    forms = [day, day.isoformat(), f"{day.month:02}/{day.day:02}/{day.year}"]
    assert {parameter.encode_value(form, "x")["from"] for form in forms} == {day.isoformat()}


def test_a_day_stays_a_day_where_a_time_may_follow() -> None:
    parameter = Parameter("at", kind=Kind.DAY_OR_TIME)
    forms = {"2026-12-24": "12/24/2026", "12/24/2026": "12/24/2026", "12/24/2026 09:30": "12/24/2026 09:30"}
    assert {form: parameter.encode_value(form, "x")["at"] for form in forms} == forms
    assert parameter.encode_value(dt.date(2026, 12, 24), "x") == {"at": "12/24/2026"}
    assert parameter.encode_value(dt.datetime(2026, 12, 24, 9, 30), "x") == {"at": "12/24/2026 09:30"}
