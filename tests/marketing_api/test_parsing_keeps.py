"""What another server says in other forms is read, set aside with a reason, or refused: nothing vanishes."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from marketing_api import parsing, validation
from marketing_api.errors import MarketingApiError
from marketing_api.operations import ALL
from tests.marketing_api.responses import DAY, ZONE, enveloped, of_body
from tests.marketing_api.samples import SAMPLES

Place = tuple[Any, ...]


def collections(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where lists and objects stand in a payload, the payload itself apart."""
    if isinstance(value, dict | list) and value:
        if place:
            yield place
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from collections(part, (*place, name))


def at(value: Any, place: Place) -> Any:
    for name in place:
        value = value[name]
    return value


def changed(sample: Any, place: Place, part: Any, name: Any = None) -> Any:
    """The sample with another part in that place, or the same one under another name."""
    found = copy.deepcopy(sample)
    around = at(found, place[:-1])
    if name is None:
        around[place[-1]] = part
    else:
        pairs = [(name if known == place[-1] else known, item) for known, item in around.items()]
        around.clear()
        around.update(pairs)
    return found


def forms(sample: Any, place: Place) -> Iterator[tuple[str, Any]]:
    """The sample with one of its collections in other forms."""
    part = at(sample, place)
    for wrapper in ("data", "items", "result"):
        yield f"in {wrapper}", changed(sample, place, {wrapper: part})
    yield "in a list", changed(sample, place, [part])
    if isinstance(part, dict):
        yield "as a list of its values", changed(sample, place, list(part.values()))
    else:
        yield (
            "keyed by number",
            changed(sample, place, {str(number): entry for number, entry in enumerate(part, 1)}),
        )
        if len(part) == 1:
            yield "its only entry", changed(sample, place, part[0])
    if isinstance(place[-1], str):
        yield "upper case", changed(sample, place, part, place[-1].upper())
        yield "title case", changed(sample, place, part, place[-1].title())


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)
    elif isinstance(value, str) and len(value) > 3:
        yield json.dumps(value)[1:-1]


def told(name: str, body: Any) -> str | None:
    """Everything that reading brings to light, as one text; None when the answer is refused."""
    response = of_body(ALL[name], enveloped(body), **SAMPLES[name][1])
    try:
        validation.check_response(response.call, 200, {}, response.envelope)
    except MarketingApiError:
        return None
    found: list[Any] = []
    for rows in parsing.parse_rows(response, ZONE, DAY):
        found += [dict(record) | {"extra": record.extra} for record in rows.records] + [
            entry.raw for entry in rows.rejected + rows.flawed
        ]
    return json.dumps(found, default=str)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_collection_in_another_form_is_told_or_refused(name: str) -> None:
    sample, _ = SAMPLES[name]
    plain = told(name, sample) or ""
    for place in collections(sample):
        wanted = [text for text in texts(at(sample, place)) if text in plain]
        for form, body in forms(sample, place):
            found = told(name, body)
            lost = [] if found is None else [text for text in wanted if text not in found]
            assert not lost, f"{place} {form}: lost {lost}"


@pytest.mark.parametrize(
    ("name", "body", "records"),
    [
        (
            "emailmarketing/getcontacts",
            {"contacts": {"count": 1, "items": {"id": "5", "email": "a@example.com"}}},
            1,
        ),
        (
            "emailmarketing/getlists",
            {"lists": {"count": "1", "items": {"id": 5, "name": "News", "fields": ""}}},
            1,
        ),
        ("emailmarketing/getlist", {"list": {"id": 5, "fields": [{"12": "City"}, {"13": "Phone"}]}}, 3),
        ("emailmarketing/getlist", {"list": {"id": 5, "fields": [{"ID": 12, "Label": "City"}]}}, 2),
        ("emailmarketing/getcoupon", {"coupons": {"id": "7", "couponcode": "A"}}, 1),
        (
            "emailmarketing/getcontacttimeline",
            {"timeline": {"Data": [{"key": "k"}]}, "UTM": {"1": {"link": "l"}}, "automated": ""},
            2,
        ),
    ],
)
def test_forms_that_can_be_read_are_read(name: str, body: Any, records: int) -> None:
    response = of_body(ALL[name], enveloped(body), **SAMPLES[name][1])
    validation.check_response(response.call, 200, {}, response.envelope)
    rows = list(parsing.parse_rows(response, ZONE, DAY))
    assert (sum(len(one.records) for one in rows), [one.rejected for one in rows if one.rejected]) == (
        records,
        [],
    )
