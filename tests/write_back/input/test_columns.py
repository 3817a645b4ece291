"""Columns are found by what a person says, then by their names, then by usual spellings, where these leave no
doubt."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.write_back.planner import rows_of
from write_back.input.columns import (
    FIELD_FAMILIES,
    SPELLINGS,
    Picked,
    fold_name,
    has_needed,
    pick_columns,
    without_repeated,
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
        (
            CONTACTS,
            ["mail", "Liste", "Vorname", "HOME_PHONE", "town", "9102"],
            ["email", "list", "First Name", "Home-Phone", "City", "9102"],
        ),
        (CONTACTS, ["email", "list", "Given name", "9100"], ["email", "list", "First Name", "9100"]),
    ],
)
def test_usual_spellings_mean_our_columns_and_the_custom_field_of_their_family(
    kind: Kind, titles: list[str], columns: list[str]
) -> None:
    assert shape(picked(kind, *titles)) == dict(zip(columns, titles, strict=True))


@pytest.mark.parametrize(
    ("titles", "option"),
    [
        (["email", "Label"], "--map tag=Label"),
        (["Customer", "tag"], "--map email=Customer"),
        (["email", "tag", "actoin"], "--map action=actoin"),
        (["email", "tag", "two words"], "--map 'contact_id=two words'"),
    ],
)
def test_an_unknown_column_comes_with_the_option_that_names_it(titles: list[str], option: str) -> None:
    with pytest.raises(InputError, match=f"name a column with {re.escape(option)}[,;]"):
        picked(TAGS, *titles)


@pytest.mark.parametrize(
    ("titles", "mapping", "is_enough"),
    [
        (["E-Mail", "Tag(s)"], {}, True),
        (["Contact-ID", "tag", "more"], {}, True),
        (["email", "more"], {}, False),
        (["Kunde", "tag"], {}, False),
        (["KUNDE", "tag"], {"email": "Kunde"}, True),
        ([], {}, False),
    ],
)
def test_a_header_is_enough_with_every_column_that_is_needed(
    titles: list[str], mapping: dict[str, str], is_enough: bool
) -> None:
    assert has_needed(titles, TAGS.columns, mapping) is is_enough


def test_rows_of_a_join_that_are_the_same_are_one() -> None:
    rows = rows_of(
        *(
            {"email": email, "tag": "vip", "id": number}
            for number, email in enumerate(["a@b.co", "c@d.co", "a@b.co"])
        )
    )
    assert without_repeated(rows, ()) is rows
    alone = without_repeated(rows, ["ID"])
    assert (alone.cells["email"], alone.numbers) == (["a@b.co", "c@d.co"], [2, 3])
    assert alone.warnings == ("1 row of the query left out, the same as another one",)


@pytest.mark.parametrize("title", ["C#", "State", "Name", "Phone 2", "Date"])
def test_what_no_family_has_stays_unknown(title: str) -> None:
    with pytest.raises(InputError, match="unknown column"):
        picked(CONTACTS, "email", "list", title, fields=("C", "Phone", "Full name"))


@pytest.mark.parametrize(
    ("titles", "fields", "said"),
    [
        (
            ["E-Mail", "Mail", "list"],
            (),
            "the columns “E-Mail” and “Mail” may both be “email”: say which it is, like --map email=E-Mail",
        ),
        (
            ["email", "E-Mail", "list"],
            (),
            "the columns “email” and “E-Mail” may both be “email”: say which it is, like --map email=email, or "
            "leave one out with --ignore",
        ),
        (
            ["email", "list", "Stadt", "Ort"],
            ("City",),
            "“Stadt” and “Ort” may both be “City”: say which it is, like --map City=Stadt",
        ),
        (
            ["email", "list", "given name"],
            ("First name", "Vorname"),
            "“given name” may be “Vorname” or “First name”: say which it is, like",
        ),
        (
            ["Email-Address", "list"],
            ("Email Address",),
            "may be “email” or “Email Address”: say which it is, like --map email=Email-Address",
        ),
        (
            ["Email Address", "list"],
            ("Email Address",),
            "custom field here: if it is meant, write --map 'email=Email Address'",
        ),
    ],
)
def test_a_doubt_is_an_error_that_names_both_and_what_to_write(
    titles: list[str], fields: tuple[str, ...], said: str
) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        picked(CONTACTS, *titles, fields=fields)


def test_what_a_person_says_goes_before_guesses() -> None:
    found = picked(CONTACTS, "E-Mail", "Mail", "list", mapping={"email": "Mail"})
    assert shape(found) == {"email": "Mail", "list": "list"}
    assert found.warnings == ("column “E-Mail” is left out, since --map takes “Mail” in its place",)
    assert found.renamed == (("email", "Mail"),)
    assert shape(picked(CONTACTS, "E-Mail", "Mail", "list", ignore=("Mail",))) == {
        "email": "E-Mail",
        "list": "list",
    }
    both = picked(
        CONTACTS,
        "email",
        "list",
        "given name",
        fields=("First name", "Vorname"),
        mapping={"Vorname": "given name"},
    )
    assert shape(both) == {"email": "email", "list": "list", "Vorname": "given name"}


_WORDS = [word for family in (*SPELLINGS.values(), *FIELD_FAMILIES) for word in family]
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
@example((CONTACTS, ("E-Mail", "list"), ["Vorname"]), ["First name"])
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


def test_a_header_that_is_one_cell_is_said() -> None:
    with pytest.raises(InputError, match="the header is one cell, “email,tag”: put each column into a cell"):
        picked(TAGS, "email,tag")
