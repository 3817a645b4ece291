"""People whose addresses are of any script, and the ways in which one address may be written."""

import unicodedata

from hypothesis import strategies as st

#: As it stands in one place, in another one, and who is somebody else.
SPELLINGS = [
    ("ann@example.com\t", "Ann@Example.com", "joann@example.com"),
    ("\u00a0bo@example.com", "BO@example.com", "b.o@example.com"),
    ("ΝΙΚΟΣ@example.com", "νικος@example.com", "nikos@example.com"),
    ("straße@example.com", "STRASSE@example.com", "strase@example.com"),
    ("rene\u0301@example.com", "RENÉ@example.com", "rene@example.com"),
    ("İsa@example.com", "i\u0307sa@example.com", "ısa@example.com"),
]

#: Letters that case, canonical form or a position changes in ways of their own, among plain ones.
_LETTERS = "ankoz7ßéÉœςσΣΐİıǰüñяЯﬁ가"
#: What Python, SQL and people take for a blank, or do not see.
_AROUND = st.sampled_from(["", " ", "\t", "\r\n", "\u00a0", "\u3000", "\u200b", "\ufeff"])


def caseless(text: str) -> str:
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())


#: Each of them somebody else.
PEOPLE = st.lists(
    st.builds(
        "{}@{}.example".format,
        st.text(_LETTERS, min_size=1, max_size=4),
        st.text(_LETTERS, min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=4,
    unique_by=caseless,
)


def written(address: str) -> st.SearchStrategy[str]:
    """The same address in another spelling, without anything around it."""
    forms = [
        unicodedata.normalize(form, case)
        for form in ("NFC", "NFD")
        for case in (address, address.upper(), address.swapcase())
    ]
    return st.sampled_from([form for form in forms if caseless(form) == caseless(address)])


def spelled(address: str) -> st.SearchStrategy[str]:
    """The same, with what nobody sees around it."""
    return st.builds("{}{}{}".format, _AROUND, written(address), _AROUND)
