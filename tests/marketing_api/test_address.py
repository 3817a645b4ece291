import re
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.address import MASK, mask_addresses, normal_form
from marketing_api.errors import InvalidCall
from marketing_api.operations import contacts

INVISIBLE = st.text("\t\n\r \u00a0\u200b\u200d\u2028\ufeff\u00ad\u3000\u034f\u2800\x00\ufe0f", max_size=3)
#: Printable, and not changed by anything that an address's two spellings may differ by.
LETTERS = st.characters(
    categories=["Ll", "Lu", "Lo", "Nd", "Mn"], exclude_characters="\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"
)
ADDRESSES = st.builds(
    "{}@{}.example".format, st.text(LETTERS, min_size=1, max_size=8), st.text(LETTERS, min_size=1, max_size=8)
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann@Example.com", "ann@example.com"),
        ("ann@example.com\t", "ann@example.com"),
        ("\ufeffann@example.com\u200b", "ann@example.com"),
        ("\u00a0ann@example.com\r\n", "ann@example.com"),
        ("ΝΙΚΟΣ@πόλη.example", "νικος@πόλη.example"),
        ("νικοσ@πόλη.example", "νικος@πόλη.example"),
        ("rene\u0301@example.com", "RENÉ@example.com"),
        ("İ@example.com", "i\u0307@example.com"),
    ],
)
def test_spellings_of_one_address_have_one_normal_form(one, other):
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ann@example.com", "joann@example.com"),
        ("ann.b@example.com", "annb@example.com"),
        ("ann+news@example.com", "ann@example.com"),
        ("an n@example.com", "ann@example.com"),
        ("ı@example.com", "i@example.com"),
        ("\uff41@example.com", "a@example.com"),  # full width
        ("rené@example.com", "rene@example.com"),
        ("а@example.com", "a@example.com"),  # the first is Cyrillic
    ],
)
def test_different_people_never_share_one(one, other):
    assert normal_form(one) != normal_form(other)


@given(ADDRESSES, INVISIBLE, INVISIBLE)
def test_case_canonical_form_and_what_is_invisible_around_do_not_matter(address, before, behind):
    normal = normal_form(address)
    spellings = [unicodedata.normalize(form, address) for form in ("NFC", "NFD")]
    spellings += [
        each for each in (address.swapcase(), address.upper()) if each.casefold() == address.casefold()
    ]
    assert {normal_form(f"{before}{each}{behind}") for each in spellings} == {normal}


@given(ADDRESSES, INVISIBLE, INVISIBLE)
def test_an_address_is_sent_without_what_is_invisible_around_it(address, before, behind):
    def sent(spelled):
        with suppress(InvalidCall):
            return contacts.GETCOUPON.bind(email=spelled).params["email"]

    assert sent(before + address + behind) == sent(address)
    assert (sent(address) is None) == (sent(normal_form(address)) is None)


@given(st.text(max_size=30))
def test_the_normal_form_of_a_normal_form_is_itself(text):
    assert normal_form(normal_form(text)) == normal_form(text)


@given(ADDRESSES, ADDRESSES)
def test_addresses_that_differ_in_more_than_that_stay_apart(one, other):
    def caseless(text):
        return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())

    assert (normal_form(one) == normal_form(other)) == (caseless(one) == caseless(other))


@given(st.text(st.characters(max_codepoint=127), max_size=20))
def test_the_quick_way_of_ascii_is_the_same(text):
    folded = text.lower()
    while folded and (folded[0] == " " or not folded[0].isprintable()):
        folded = folded[1:]
    while folded and (folded[-1] == " " or not folded[-1].isprintable()):
        folded = folded[:-1]
    assert normal_form(text) == folded


_NAMED = r"\b\w*(?:e_?mail|address)\w*\b"
_OTHERWISE = re.compile(
    rf"(?:lower|upper|trim)\([^()]*(?:\([^()]*)?{_NAMED}"
    rf"|{_NAMED}[\"'\])]*(?: or \"\"\))?(?:\.strip\(\))?\.(?:lower|upper|casefold)\(",
    re.IGNORECASE,
)
#: `sandbox` has the service's own rules; what the others forget by is not a column.
_APART = ("marketing_api/sandbox/", "marketing_api/address.py")


def test_nothing_else_compares_addresses_by_rules_of_its_own():
    root = Path(__file__).parents[2]
    files = [
        path
        for part in (
            "marketing_api",
            "warehouse",
            "assets",
            "home",
            "write_back",
            "upkeep",
            "pipelines",
            "notebooks",
        )
        for path in (root / part).rglob("*")
    ]
    code = [path for path in files if path.suffix in (".py", ".sql", ".yml", ".toml", ".jinja")]
    assert len(code) > 400
    found = [
        f"{name}: {line.strip()}"
        for path in code
        if not (name := path.relative_to(root).as_posix()).startswith(_APART)
        for line in path.read_text(encoding="utf-8").splitlines()
        if _OTHERWISE.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "select lower(trim(email)) as email",
        "where lower(trim(p.email)) = $address",
        "lower(params ->> 'email') in",
        "count(distinct lower(email))",
        "where trim(email) <> ''",
        "key = address.strip().lower()",
        '(one.email or "").lower()',
        'params["email"].strip().lower()',
    ],
)
def test_such_rules_are_noticed(line):
    assert _OTHERWISE.search(line)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("no such contact: ann.lee+x@mail.example.com.", "no such contact: •••"),
        ("GET /me.json?key=1&email=ann%40example.com", "GET /me.json?key=1&email=•••"),
        ("email=ann%2540example.com", "email=•••"),
        ("email=ann%25252540example.com, next", "email=•••, next"),
        ('{"email":"ann@example.com","n":[1]}', '{"email":"•••","n":[1]}'),
        ('{"email": "ann\\u0040example.com"}', '{"email": "•••"}'),
        ("email=ann%5Cu0040example.com", "email=•••"),
        ("<b>ann&#64;example.com</b>", "<b>•••</b>"),
        ("ann&#x0040;example.com", "•••"),
        ("ann&commat;example.com", "•••"),
        ("ann&amp;#64;example.com", "•••"),
        ("email=ann%26%2364%3Bexample.com", "email=•••"),
        ("ann\uff20example.com", "•••"),
        ("νικος@πόλη.example", "•••"),
        ("r%C3%A9mi%40example.com r&#233;mi@example.com", "••• •••"),
        ("'ann@example.com' <o'ann@example.com>", "'•••' <•••>"),
        ('"ann lee"@example.com', "•••"),
        ('{"to": "\\"ann lee\\"@example.com"}', '{"to": "•••"}'),
        ("'ann'@example.com", "•••"),
        ("ann@[192.0.2.1]", "•••"),
        ("mailto:ann@example.com?subject=Hi", "mailto:•••?subject=Hi"),
        ('{"a": "two\\nann@example.com"}', '{"a": "•••"}'),
    ],
)
def test_an_address_is_masked_however_it_is_escaped(text, masked):
    assert mask_addresses(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "two at once",
        "a 40 % share, 64 kB & more; #64",
        "sync @ 5",
        '@dagster.asset in "a":"@home"',
        "https://x.example/?id=640&n=%20",
        "",
    ],
)
def test_what_is_no_address_stays(text):
    assert mask_addresses(text) == text


@given(
    st.text(max_size=9),
    ADDRESSES,
    st.sampled_from(["@", "%40", "%2540", "\\u0040", "&#64;", "&#x40;", "&amp;#64;", "%26commat%3B"]),
)
def test_no_part_of_a_masked_address_is_left(around, address, at):
    local, _, domain = address.partition("@")
    masked = mask_addresses(f"{around} zq{local}{at}{domain}zq {around}")
    assert MASK in masked
    assert "zq" not in masked
