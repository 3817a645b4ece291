"""Reading any JSON never fails as a whole, and one entry's fault does not touch the others."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api import parsing, validation
from marketing_api.envelope import read_envelope
from marketing_api.errors import MarketingApiError
from marketing_api.operations import ALL
from marketing_api.rate_limit import read_rate_report
from tests.marketing_api.responses import DAY, ZONE, enveloped, of_body
from tests.marketing_api.samples import SAMPLES

_NAMES = ["id", "items", "data", "count", "channel", "date", "utm", "timestamp", "details", "users"]
NAMES = st.sampled_from([*_NAMES, "fields", "stats", "1", "errorCode"])
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=20)
_ODD = ["N/A", "-", "1", "11 (366.67%)", "a@example.com(2 clicks)", "01/02/2015 10:30", "0000-00-00"]
VALUES = st.recursive(
    SCALARS | st.sampled_from(_ODD),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=10,
)


@st.composite
def spoilt(draw: st.DrawFn, value: Any, depth: int = 0) -> Any:
    """The value with anything in the place of one of its parts, or with the part missing."""
    if not isinstance(value, dict | list) or not value or (depth and draw(st.integers(0, 3)) == 0):
        return draw(VALUES)
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
    chosen = draw(st.integers(0, len(pairs) - 1))
    kept = [pair for index, pair in enumerate(pairs) if index != chosen]
    if not depth or draw(st.integers(0, 9)):
        name, part = pairs[chosen]
        kept.insert(chosen, (name, draw(spoilt(part, depth + 1))))
    return dict(kept) if isinstance(value, dict) else [part for _, part in kept]


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
def test_reading_a_spoilt_answer_never_raises(name: str, data: st.DataObject) -> None:
    sample, params = SAMPLES[name]
    read_any(name, enveloped(data.draw(spoilt(sample))), params)


def read_any(name: str, body: bytes, params: dict[str, Any]) -> None:
    """Refuses the answer with a declared error, or reads it to its end."""
    response = of_body(ALL[name], body, **params)
    try:
        validation.check_response(response.call, 200, {}, read_envelope(body))
    except MarketingApiError:
        return
    for rows in parsing.parse_rows(response, ZONE, DAY):
        assert rows.records or rows.rejected or rows.missing
        assert rows.record in response.call.operation.records
    parsing.service_count(response)
    parsing.item_keys(response)


#: JSON that Python would not write, or no JSON at all.
RAWS = st.sampled_from(
    [
        *(b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"0." + b"1" * 400, b"01", b"+1", b".5", b"'a'"),
        *(b'"\\ud83d"', b'"\\x41"', b'"a\nb"', b'"\\u0000"', b"undefined", b"/*c*/1", b"1,", b"nul"),
        b"\xff\xfe",
        *(b"[" * 3000 + b"]" * 3000, b'{"id":' * 1500 + b"1" + b"}" * 1500, b"[" * 60_000),
        *(b'{"id":1,"id":[],"ID":null}', b'{"' + b"n" * 1_000_000 + b'":1}', b""),
    ]
)


@pytest.mark.parametrize("name", SAMPLES)
@given(raw=RAWS, start=st.floats(0, 1), length=st.integers(0, 40), is_cut=st.booleans())
def test_an_answer_with_damaged_bytes_is_read_or_refused(
    name: str, raw: bytes, start: float, length: int, is_cut: bool
) -> None:
    sample, params = SAMPLES[name]
    body = enveloped(sample)
    at = int(start * len(body))
    read_any(name, body[:at] + raw + (b"" if is_cut else body[at + length :]), params)


@given(
    body=st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()),
    status=st.sampled_from([200, 401, 404, 429, 500]),
)
def test_any_body_is_judged_by_an_error_of_the_tree_or_accepted(body: bytes, status: int) -> None:
    call = ALL["emailmarketing/getcontacts"].bind(listid=1)
    read_rate_report(read_envelope(body), {})
    try:
        validation.check_response(call, status, {}, read_envelope(body))
    except MarketingApiError:
        return
    assert b"contacts" in body
