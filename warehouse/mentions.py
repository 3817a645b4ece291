"""Where a text may name somebody: whole addresses, ids of contacts and telephone numbers, however they are
escaped.

A text is unescaped once, each character with its place, and searched as it is meant. Not here: whose they are
(`warehouse.forgetting`)."""

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from marketing_api.address import normal_form

#: Each may be escaped as in links, JSON and pages, also several times: `%40`, `%2540`, `\\u0040`, `&#64;`,
#: `&amp;#64;`.
_PERCENT = rb"%(?:25)*"
#: Text in JSON in JSON in JSON in JSON has 15 of them; without a limit a row of them would be walked from
#: each of its places.
_SLASH = rb"(?:\\{1,16}+|(?:%(?:25)*+5[cC]){1,16}+){1,2}+"
_IN_JSON = rb"%s(?:u[0-9A-Fa-f]{4}|[^u%%\\\x80-\xff])" % _SLASH
_IN_LINK = rb"%s(?:[c-fC-F][0-9A-Fa-f](?:%s[89abAB][0-9A-Fa-f])*|[0-7][0-9A-Fa-f])" % (_PERCENT, _PERCENT)
_ENTITY = rb"&(?:amp;){0,4}+(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});"
_ESCAPED = re.compile(rb"(?=[\\%%&])(?:%s|%s|%s)" % (_IN_JSON, _IN_LINK, _ENTITY), re.DOTALL)
_BACKSLASH = re.compile(r"\\|%(?:25)*5[cC]")
#: What names somebody by an address, or by a contact's id, has one of these.
MAY_NAME = ("@", "40", "64", "commat", "ontact", "ONTACT")
_MAY_NAME = re.compile("|".join(MAY_NAME).encode())
#: An address goes across none of these; letters with their marks, digits and the inner ones are part of it
#: wherever they stand. An apostrophe is part of one behind a letter (`o'ann@`) and a quote elsewhere.
_SEPARATOR, _INNER, _APOSTROPHE = re.compile(r'[\s"<>,;:(){}\[\]|@]'), re.compile(r"[\w.+-]"), "'’"
_PLAIN = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*")
_LONGEST, _MOST_BEGINS = 320, 24
_CONTACT = re.compile(r"contact(?:[ _-]?id)?[\s\"'\\=:(\[.#-]{1,12}+(\d{1,18})(?!\w)", re.IGNORECASE)
#: Digits that a telephone number has at least and at most, and what may stand between two groups of them.
LEAST_DIGITS, MOST_DIGITS = 7, 15
_GROUP, _BETWEEN = re.compile(r"\+?([0-9]+)"), re.compile(r"[ ()./+\xa0-]{1,4}")
#: The same in a pattern of RE2 for texts that are still escaped.
_SPREAD = r"(?:[^0-9A-Za-z]|(?:25)*2[0bBdDeEfF89]|u00..|nbsp;|32;|43;|45;|160;){0,4}"
#: Letters that capital letters and ligatures become, which may be a single character where somebody wrote
#: them.
_FOLDED = re.compile(r"((?:[a-z0-9]?[^\x00-\x7f])+[a-z0-9]?|[^a-z0-9]+|ss|ff[il]?|f[il]|st)")


class Mention(NamedTuple):
    """What a text may say of somebody, and where: `text` is the address, the id or the digits."""

    begin: int
    end: int
    text: str


class Unescaped:
    """A text as it is meant."""

    def __init__(self, raw: bytes) -> None:
        pieces, self._begins, self._places, length, last = list[str](), [0], [0], 0, 0
        for escaped in _ESCAPED.finditer(raw):
            plain = _decoded(raw[last : escaped.start()])
            pieces += plain, _meant(escaped[0])
            last, length = escaped.end(), length + len(plain) + 1
            self._begins += length - 1, length
            self._places += escaped.span()
        self.text = "".join([*pieces, _decoded(raw[last:])])

    def place(self, index: int) -> int:
        """Where the character stands in the text as it was given, in bytes."""
        at = bisect_right(self._begins, index) - 1
        return self._places[at] + len(self.text[self._begins[at] : index].encode("utf-8", "surrogateescape"))


def _decoded(plain: bytes) -> str:
    return plain.decode("utf-8", "surrogateescape")


@lru_cache(4096)
def _meant(escaped: bytes) -> str:
    """One character."""
    text = escaped.decode()
    if text[0] == "&":
        return html.unescape(re.sub("&(?:amp;)+", "&", text))[:1]
    if text[-5:-4] == "u":
        return chr(int(text[-4:], 16))
    if _BACKSLASH.match(text):  # a line break, say
        return " "
    return unquote(re.sub("%(?:25)+", "%", text))[:1]


def may_name(raw: bytes) -> bool:
    """Whether it is worth looking closer for addresses and ids."""
    return _MAY_NAME.search(raw) is not None


def addresses(text: str) -> Iterator[Iterable[Mention]]:
    """For each `@` what may be the whole address around it, the longest first."""
    return (_around(text, found.start()) for found in re.finditer("@", text))


def _around(text: str, at: int) -> Iterable[Mention]:
    begin, end = text.rfind('"', max(0, at - _LONGEST), at) + 1, text.find('"', at, at + _LONGEST)
    if begin and _PLAIN.fullmatch(text, begin, end):  # as nearly all are
        return [Mention(begin, end, text[begin:end])]
    end = at + 1
    while end < min(len(text), at + _LONGEST) and text[end] != "+" and _is_inner(text[end]):
        end += 1
    domain = text[at + 1 : end].rstrip(".-")
    begins = list(_begins(text, at)) if domain else []
    longest_first = [*begins[-1:], *reversed(begins[:-1][:_MOST_BEGINS])]
    end = at + 1 + len(domain)
    return [Mention(begin, end, _joined(text[begin:end])) for begin in longest_first]


def _begins(text: str, at: int) -> Iterator[int]:
    """Where an address may begin, the nearest first: behind what need not be part of it, and where it can go
    no further."""
    for begin in range(at - 1, max(0, at - _LONGEST) - 1, -1):
        before = text[begin - 1] if begin else ""
        if not before or _SEPARATOR.match(before):
            if not _SEPARATOR.match(text[begin]):
                yield begin
            return
        is_part = _is_inner(before) or (before in _APOSTROPHE and text[max(0, begin - 2)].isalnum())
        if not is_part:
            yield begin


def _is_inner(character: str) -> bool:
    return _INNER.match(character) is not None or unicodedata.category(character).startswith("M")


def _joined(address: str) -> str:
    """Halves of characters that JSON escapes as two become one."""
    return address.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def contact_ids(text: str) -> Iterator[Mention]:
    """Numbers of which the text says that they are of contacts."""
    return (Mention(*found.span(1), found[1]) for found in _CONTACT.finditer(text))


def telephone_numbers(text: str, numbers: Collection[str]) -> Iterator[Mention]:
    """Whole numbers of which the digits, without a leading 00, are one of `numbers`."""
    groups = list(_GROUP.finditer(text)) if numbers else []
    for at, first in enumerate(groups):
        digits, last = "", first
        for group in groups[at : at + MOST_DIGITS + 2]:
            is_next = group is first or _BETWEEN.fullmatch(text, last.end(), group.start(1))
            digits, last = digits + group[1], group
            if not is_next or len(digits) > MOST_DIGITS + 2:
                break
            begin, end = first.start(), group.end()
            is_whole = not text[begin - 1 : begin].isalnum() and not text[end : end + 1].isalnum()
            if is_whole and digits.removeprefix("00") in numbers:
                yield Mention(begin, end, digits)


def digits_of(text: str) -> str:
    """Those of a telephone number; empty when the text is none."""
    number = text.strip()
    digits = "".join(filter(str.isdecimal, number))
    is_number = LEAST_DIGITS <= len(digits) <= MOST_DIGITS and all(
        char.isdecimal() or char in " ()./+-\xa0" for char in number
    )
    return digits if is_number and digits.isascii() else ""


def likely_address(address: str) -> str:
    """A pattern of RE2 of an address, however it is escaped: letters and digits stay (in UTF-16 with a zero
    byte), each other character takes up to 16 bytes."""
    runs = _FOLDED.split(normal_form(address))
    return "(?is)" + "".join(
        r"\x00?".join(run) if at % 2 == 0 else f".{{1,{16 * len(run)}}}?" for at, run in enumerate(runs)
    )


def likely_number(digits: str) -> str:
    return _SPREAD.join(digits)


def likely_id(contact_id: int) -> str:
    return rf'(?i)(?:id"\s*:\s*"?|contact.{{1,80}}?){contact_id}\b'
