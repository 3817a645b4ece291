from typing import Any

import phpserialize
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.records.reputation import read_rating


@pytest.mark.parametrize(
    ("value", "rating"),
    [
        ("4.5", 4.5),
        (4, 4.0),
        ("i:5;", 5.0),
        ("d:3.5;", 3.5),
        ('s:3:"4.5";', 4.5),
        ('a:1:{s:6:"rating";s:1:"4";}', 4.0),
        ('a:2:{s:5:"value";i:4;s:4:"name";s:5:"Té! ";}', 4.0),
        ('O:8:"stdClass":1:{s:5:"stars";i:2;}', 2.0),
        ('{"value": 4, "text": "good"}', 4.0),
        ('[{"stars": "3"}]', 3.0),
        ({"stars": 3}, 3.0),
        ('a:2:{s:5:"value";i:4;s:3:"max";i:5;}', None),
        ("[4, 5]", None),
        ("b:1;", None),
        ("true", None),
        ("4/5", None),
        ("N/A", None),
        ("", None),
        (None, None),
        ("a:1:{i:0", None),
        ("nan", None),
        ("1" * 400, None),
        ("[" * 5000, None),
    ],
)
def test_rating_is_the_number_when_there_is_exactly_one(value: Any, rating: float | None) -> None:
    assert read_rating(value) == rating


@given(st.text() | st.from_regex(r'[aOsidbN]:[0-9]{0,9}[:;]["{]?.*', fullmatch=True))
def test_no_text_breaks_the_reader(text: str) -> None:
    rating = read_rating(text)
    assert rating is None or isinstance(rating, float)


@given(
    st.dictionaries(
        st.text(st.characters(codec="ascii", categories=["L"]), min_size=1),
        st.none() | st.booleans(),
        max_size=3,
    ),
    st.floats(0, 5),
)
def test_one_number_among_others_is_found(others: dict[str, Any], stars: float) -> None:
    text = phpserialize.dumps({**others, "the stars": round(stars, 2)}).decode()
    assert read_rating(text) == round(stars, 2)
