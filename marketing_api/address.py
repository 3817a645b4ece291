"""The one normal form of an e-mail address: two spellings have the same one exactly when they are the same
person's.

Whoever joins, counts, plans, recognises or forgets by an address compares normal forms; tables keep it in a
column of its own beside the address as the service shows it. Not here: how addresses stand in texts
(`warehouse.forgetting`)."""

import unicodedata

#: Characters that show nothing although their category says letter, mark or symbol.
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0" + "".join(map(chr, range(0xFE00, 0xFE10)))
)


def normal_form(address: str) -> str:
    """Compared without regard to case, canonical spelling of characters, and what is invisible at the ends;
    empty when nothing is left.

    Canonical caseless matching of Unicode (chapter 3.13, D145): `ΝΙΚΟΣ` is `νικος`, a precomposed é one of
    two characters. Compatibility forms stay apart, since two mailboxes may differ by them."""
    if address.isascii():  # as nearly all are
        if address.isprintable():
            return address.strip(" ").lower()
        return trimmed(address).lower()
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", address).casefold())
    return trimmed(unicodedata.normalize("NFC", folded))


def trimmed(text: str) -> str:
    """Without what is invisible at the ends, which is no part of an address."""
    begin, end = 0, len(text)
    while begin < end and _is_invisible(text[begin]):
        begin += 1
    while begin < end and _is_invisible(text[end - 1]):
        end -= 1
    return text[begin:end]


def _is_invisible(character: str) -> bool:
    """White space, control and format characters, and fillers."""
    return unicodedata.category(character) in ("Zs", "Zl", "Zp", "Cc", "Cf") or character in _INVISIBLE
