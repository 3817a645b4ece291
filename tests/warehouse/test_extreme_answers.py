"""The most that JSON can say, in every place of every answer: judged by the tree, or staged."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marketing_api import parsing, validation
from marketing_api.envelope import read_envelope
from marketing_api.errors import MarketingApiError
from marketing_api.exchange import Response
from marketing_api.operations import ALL
from marketing_api.rate_limit import read_rate_report
from tests.depth import DEEP
from tests.marketing_api.responses import DAY, ZONE, enveloped, of_body
from tests.marketing_api.samples import SAMPLES
from warehouse.loads.staging import stage_responses
from warehouse.tables import TABLES

#: What stands for the place until the text is made: no library writes what is to stand there.
_PLACE = "\u2603 here \u2603"


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


EXTREMES = {
    "no finite number": "1e999",
    "a tiny number": "1e-999999",
    "a long number": "9" * 4_299,
    "a number too long for Python": "9" * 5_000,
    "a negative number too long for Python": "-" + "9" * 5_000,
    "a long fraction": "0." + "1" * 5_000,
    "65 bits": str(2**64),
    "minus 64 bits": str(-(2**63) - 1),
    "a number of zeros": "0e999999999",
    "half a pair": r'"\ud800"',
    "the other half": r'"a\udfff1"',
    "a zero byte": r'"\u0000"',
    "the year 0": '"0000-01-01 00:00"',
    "the year 10000": '"01/01/10000 00:00"',
    "the first day": '"01/01/0001 00:00"',
    "the last day": '"12/31/9999 23:59"',
    "a far zone": '"2015-01-01T00:00:00+99:59"',
    "a late second": '"253402300800"',
    "an entity too long for Python": f'"&#{"9" * 5_000};"',
    "an exponent": '"1e999999999"',
    "many digits in a text": f'"{"9" * 5_000}"',
    "digits of another script": '"\u0661\u0662"',
    "a deep list": _nested(300),
    "a deeper list": _nested(900),
    "a list beyond all depth": _nested(100_000),
    "a deep object": '{"a":' * 700 + "1" + "}" * 700,
    "a serialized depth": json.dumps("a:1:{i:0;" * 900),
    "JSON in a text, deep": json.dumps(_nested(5_000)),
    "a name too long": '{"' + "n" * 100_000 + '": 1}',
    "an empty name": '{"": {"": ""}}',
    "a name of half a pair": r'{"\ud800": 1, "\u0000": 2}',
    "a name twice": '{"id": 1, "id": [], "ID": 2}',
    "many members": "{" + ",".join(f'"{number}":0' for number in range(3_000)) + "}",
    "no number": "NaN",
    "minus infinity": "-Infinity",
}


def _placed(value: Any, names: bool = True) -> Iterator[Any]:
    """The value with the place in each of its parts, one after the other, and in the place of each name."""
    yield _PLACE
    for name, part in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        for inner in _placed(part):
            yield (
                {**value, name: inner}
                if isinstance(value, dict)
                else [*value[:name], inner, *value[name + 1 :]]
            )


def _answers(name: str) -> Iterator[tuple[str, Response]]:
    """Each extreme in every fourth place, unless there is time for all."""
    sample, params = SAMPLES[name]
    step = 1 if DEEP else 4
    for number, placed in enumerate(_placed(sample)):
        body = enveloped(placed)
        for extreme, text in list(EXTREMES.items())[number % step :: step]:
            yield (
                extreme,
                of_body(ALL[name], body.replace(json.dumps(_PLACE).encode(), text.encode()), **params),
            )


@pytest.mark.deep
@pytest.mark.parametrize("name", SAMPLES)
def test_an_extreme_value_costs_no_more_than_its_entry(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The net in `parse_rows` is for what nobody thought of: here it must not be needed."""
    caplog.set_level(logging.ERROR)
    tables = [table for table in TABLES.values() if table.record in ALL[name].records]
    for extreme, answer in _answers(name):
        try:
            envelope = read_envelope(answer.body)
            read_rate_report(envelope, {})
            validation.check_response(answer.call, 200, {}, envelope)
        except MarketingApiError:
            continue
        parsing.item_keys(answer)
        parsing.service_count(answer)
        parsing.timeline_extent(answer)
        list(parsing.parse_rows(answer, ZONE, DAY))
        stage_responses([answer], tables, ZONE, parsing.parse_rows, tmp_path.joinpath)
        assert not caplog.records, f"{extreme}: {caplog.records[0].exc_text}"
