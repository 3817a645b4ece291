"""Removes what must not be seen: the key, and control characters in texts from outside.

Not here: addresses of people (`address`), HTML (the report escapes it), cells of a spreadsheet
(write-back defuses them), which columns are personal (`records`)."""

import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Self

_HIDDEN = b"***"


class Secret:
    """A text that shows as `***` wherever it is printed, logged or formatted."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "***"

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")


class Redactor:
    """Replaces every occurrence of a secret in bytes by `***`, in the spellings of text, JSON and
    addresses."""

    def __init__(self, secret: Secret) -> None:
        text = secret.reveal()
        spellings = {
            text,
            json.dumps(text)[1:-1],
            urllib.parse.quote(text, safe=""),
            urllib.parse.quote_plus(text),
        }
        encoded = [spelling.encode() for spelling in spellings if spelling]
        self._spellings = sorted(encoded, key=len, reverse=True)
        any_spelling = b"|".join(map(re.escape, self._spellings))
        self._pattern = re.compile(any_spelling)
        self._overlap = max(map(len, self._spellings), default=1) - 1

    def redact(self, data: bytes) -> bytes:
        if not self._spellings or not any(spelling in data for spelling in self._spellings):
            return data
        return self._pattern.sub(_HIDDEN, data)

    def redact_stream(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks without the secret, even if it lies across two of them. Only one chunk is in
        memory."""
        pending = b""
        for chunk in chunks:
            clean = self.redact(pending + chunk)
            cut = max(0, len(clean) - self._overlap)
            pending = clean[cut:]
            if cut:
                yield clean[:cut]
        if pending:
            yield pending


#: Characters that move a cursor, hide or reverse text, or end a line invisibly. Tabs and line feeds
#: stay.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def plain(text: object) -> str:
    """The text with � in place of every character that a terminal obeys instead of showing it."""
    return _CONTROLS.sub("\ufffd", str(text).replace("\r\n", "\n"))


def in_log(text: str) -> str:
    """The same as one entry of a log: further lines are indented, so that none looks like another
    entry."""
    return plain(text).replace("\n", "\n    ")


def markdown_block(lines: Iterable[str]) -> str:
    """Lines in a block of code that none of them can end."""
    inner = "\n".join(map(plain, lines))
    longest = max(re.findall("`+", inner), key=len, default="``")
    fence = max(longest + "`", "```")
    return f"{fence}\n{inner}\n{fence}"
