"""Columns are found by what a person says, their names, then usual spellings that leave no doubt."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.write_back.planner import rows_of
from write_back.input.columns import (
    SPELLINGS,
    Picked,
    fold_name,
    pick_columns,
)
from write_back.input.rows import InputError
from write_back.item import Options
from write_back.kinds import ACTIVITIES, CONTACTS, KINDS, TAGS, Kind

FIELDS = ("First Name", "Home-Phone", "City", "9100", "9101", "9102")


def picked(kind: Kind, *titles: str, fields: tuple[str, ...] = FIELDS, **options: object) -> Picked:
    """Each cell is the title of its column."""
    return pick_columns(rows_of({title: title for title in titles}), kind.columns, Options(**options), fields)  # type: ignore[arg-type]


def shape(found: Picked) -> dict[str, str]:
    return {name: str(cells[0]) for columns in (found.cells, found.fields) for name, cells in columns.items()}


@pytest.mark.parametrize(
    "title", ["E-Mail", "Email Address", "Mail", "e_mail", "E-Mail-Adresse", "EMAIL ADDRESS:", "e–mail"]
)
def test_an_address_is_recognized_however_its_column_is_called(title: str) -> None:
    found = picked(CONTACTS, title, "List")
    assert shape(found) == {"email": title, "list": "List"}
    assert found.renamed == (() if title == "e_mail" else (("email", title),))


@pytest.mark.parametrize(
    ("kind", "titles", "columns"),
    [
        (TAGS, ["Contact-ID", "Tag(s)"], ["contact_id", "tag"]),
        (ACTIVITIES, ["Contact ID", "Beschreibung", "Datum"], ["contact_id", "description", "datetime"]),
        (CONTACTS, ["mail", "Liste", "Home-Phone", "9102"], ["email", "list", "Home-Phone", "9102"]),
    ],
)
def test_usual_spellings_mean_our_columns(kind: Kind, titles: list[str], columns: list[str]) -> None:
    assert shape(picked(kind, *titles)) == dict(zip(columns, titles, strict=True))


@pytest.mark.parametrize(
    ("titles", "option"),
    [
        (["email", "Label"], "--map OURS=Label"),
        (["email", "tag", "two words"], "--map 'OURS=two words'"),
    ],
)
def test_an_unknown_column_comes_with_the_option_that_names_it(titles: list[str], option: str) -> None:
    with pytest.raises(InputError, match=f"say which it is with {re.escape(option)}, or"):
        picked(TAGS, *titles)


@pytest.mark.parametrize("title", ["C#", "State", "Name", "Phone 2", "Date"])
def test_what_is_only_like_a_field_stays_unknown(title: str) -> None:
    with pytest.raises(InputError, match="unknown column"):
        picked(CONTACTS, "email", "list", title, fields=("C", "Phone", "Full name"))


@pytest.mark.parametrize(
    ("titles", "fields", "said"),
    [
        (
            ["E-Mail", "Mail", "list"],
            (),
            "the columns “E-Mail” and “Mail” may both be “email”: leave one out with --ignore",
        ),
        (
            ["email", "E-Mail", "list"],
            (),
            "the columns “email” and “E-Mail” may both be “email”: leave one out with --ignore",
        ),
    ],
)
def test_a_doubt_is_an_error_that_names_both(titles: list[str], fields: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        picked(CONTACTS, *titles, fields=fields)


def test_what_a_person_says_goes_before_guesses() -> None:
    assert shape(picked(CONTACTS, "E-Mail", "Mail", "list", ignore=("Mail",))) == {
        "email": "E-Mail",
        "list": "list",
    }
    found = picked(CONTACTS, "Who", "list", "Town", mapping={"email": "Who", "City": "town"})
    assert shape(found) == {"email": "Who", "list": "list", "City": "Town"}
    assert found.renamed == (("email", "Who"), ("City", "Town"))


@pytest.mark.parametrize("chosen", ["City", "city"])
def test_an_exact_title_goes_before_one_of_another_case(chosen: str) -> None:
    (left,) = {"City", "city"} - {chosen}
    found = picked(CONTACTS, "email", "list", "City", "city", ignore=(chosen,))
    assert shape(found) == {"email": "email", "list": "list", left: left}


_WORDS = [word for family in SPELLINGS.values() for word in family]
_NAMES = st.sampled_from([*_WORDS, *SPELLINGS, *FIELDS]) | st.text("ab- _", min_size=1, max_size=3)
_TITLES = st.builds(
    lambda name, change: str(change(name)).strip(),
    _NAMES,
    st.sampled_from([str, str.upper, str.title, "{}:".format]),
)
_FILES = st.sampled_from(list(KINDS.values())).flatmap(
    lambda kind: st.tuples(
        st.just(kind),
        st.tuples(*(st.sampled_from([group[0], *SPELLINGS[group[0]]]) for group in kind.columns.needs)),
        st.lists(_TITLES.filter(bool), max_size=3),
    )
)


@given(_FILES, st.lists(_NAMES, max_size=5, unique=True))
def test_a_guess_maps_no_header_to_two_columns_and_no_two_headers_to_one(
    file: tuple[Kind, tuple[str, ...], list[str]], fields: list[str]
) -> None:
    kind, needed, more = file
    titles = list(dict.fromkeys([*needed, *more]))
    try:
        found = picked(kind, *titles, fields=tuple(fields))
    except InputError:
        return
    taken = [str(cells[0]) for columns in (found.cells, found.fields) for cells in columns.values()]
    assert sorted(taken) == sorted(titles), "each column of the input is used, and once"
    exact = {fold_name(name) for names in kind.columns.names.values() for name in names}
    exact |= {fold_name(name) for name in fields if kind.columns.takes_fields}
    for ours, theirs in found.renamed:
        assert fold_name(theirs) not in exact, "an exact name is no guess"
        assert ours in kind.columns.names or ours in fields
    assert found == picked(kind, *titles, fields=tuple(fields)), "the same header is always understood alike"
