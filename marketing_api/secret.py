"""Keeping the key out of everything but the wire: a value that does not print, and its removal from what comes back."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator

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

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")


class Redactor:
    """Replaces every occurrence of a secret in bytes by `***`, in the spellings of text, JSON and addresses."""

    def __init__(self, secret: Secret) -> None:
        text = secret.reveal()
        spellings = {text, json.dumps(text)[1:-1], urllib.parse.quote(text, safe=""), urllib.parse.quote_plus(text)}
        self._spellings = sorted((spelling.encode() for spelling in spellings if spelling), key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._spellings)))
        self._overlap = max(map(len, self._spellings), default=1) - 1

    def redact(self, data: bytes) -> bytes:
        if not self._spellings or not any(spelling in data for spelling in self._spellings):
            return data
        return self._pattern.sub(_HIDDEN, data)

    def stream(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks without the secret, also where it lies across two of them; memory stays that of one chunk."""
        held = b""
        for chunk in chunks:
            clean = self.redact(held + chunk)
            cut = max(0, len(clean) - self._overlap)
            held = clean[cut:]
            if cut:
                yield clean[:cut]
        if held:
            yield held
