"""E-mail addresses: their one normal form, and how they are masked in a text.

Two spellings have the same normal form exactly when they are the same person's. Joins, counts,
plans and erasures compare normal forms; tables keep them in a column beside the address as the
service spells it. Logs, messages, Dagster's events and masked copies mask addresses with
`mask_addresses`, so that all agree on what an address is. Not here: whose address it is
(`warehouse.forgetting`)."""

import re
import unicodedata

#: Characters that show nothing although their category says letter, mark or symbol.
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0" + "".join(map(chr, range(0xFE00, 0xFE10)))
)
_INVISIBLE_CATEGORIES = ("Zs", "Zl", "Zp", "Cc", "Cf")


def normal_form(address: str) -> str:
    """The address with case folded, characters in their canonical spelling, and invisible
    characters at the ends removed; empty when nothing is left.

    Canonical caseless matching of Unicode (chapter 3.13, D145): `ΝΙΚΟΣ` equals `νικος`, and a
    precomposed é equals one of two characters. Compatibility forms stay different, since two
    mailboxes may differ by them."""
    if address.isascii():  # nearly all are
        if address.isprintable():
            return address.strip(" ").lower()
        return trim_invisible(address).lower()
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", address).casefold())
    return trim_invisible(unicodedata.normalize("NFC", folded))


def trim_invisible(text: str) -> str:
    """The text without invisible characters at its ends, which are no part of an address."""
    begin = 0
    end = len(text)
    while begin < end and _is_invisible(text[begin]):
        begin += 1
    while begin < end and _is_invisible(text[end - 1]):
        end -= 1
    return text[begin:end]


def _is_invisible(character: str) -> bool:
    """White space, control and format characters, and fillers."""
    category = unicodedata.category(character)
    return category in _INVISIBLE_CATEGORIES or character in _INVISIBLE


MASK = "•••"
#: An @: plain, full-width, or escaped as in links (even several times), JSON and web pages.
_PERCENT = "%(?:25)*"
_AMPERSAND = f"(?:&|{_PERCENT}26)(?:amp;)*"
_SEMICOLON = f"(?:;|{_PERCENT}3b)"
_AT = (
    rf"(?:[@\uff20]|{_PERCENT}40|(?:[\\%]|{_PERCENT}5c)u(?:0040|ff20)"
    rf"|{_AMPERSAND}(?:(?:\#|{_PERCENT}23)(?:0{{0,5}}64|x0{{0,5}}40)|commat){_SEMICOLON})"
)
#: A word that may be an address. Other escaped characters, quoted names before the @, and
#: apostrophes within a name are part of it.
_WORD = re.compile(
    rf"(?:{_AT}|&(?:amp;)*\#?\w{{1,8}};|(?P<quote>[\"'])(?=\w)[^\"']{{1,64}}(?<=[\w\\])(?P=quote)(?={_AT})"
    rf"|(?<=\w)['’](?=\w)|[^\s\"'<>()=&?,;:|])+",
    re.IGNORECASE,
)
#: Separate from the pattern of words, since one pattern for both would take quadratic time.
_ADDRESS = re.compile(f".{_AT}.", re.IGNORECASE | re.DOTALL)


def mask_addresses(text: str, mask: str = MASK) -> str:
    """The text with `mask` in place of every e-mail address, however it is escaped.

    mask_addresses("GET /me.json?email=ann%2540example.com")  # "GET /me.json?email=•••"

    Text that touches an address without a blank, such as a path, is masked with it."""

    def mask_word(word: re.Match[str]) -> str:
        if _ADDRESS.search(word[0]):
            return mask
        return word[0]

    return _WORD.sub(mask_word, text)
