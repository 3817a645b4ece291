"""Keeping people's addresses out of messages and logs. Not here: the key (`secret`), which columns are personal (`records`)."""

from __future__ import annotations

import re

MASK = "•••"
#: What may be an e-mail address, and whether it is, also as it stands in a link. Two steps: one pattern for both would be quadratic.
_WORD = re.compile(r"[^\s\"'<>()=&?,;:|]+")
_ADDRESS = re.compile(r".(?:@|%40).", re.DOTALL)


def without_addresses(text: str, mask: str = MASK) -> str:
    """The text with `mask` in place of every e-mail address."""
    return _WORD.sub(lambda word: mask if _ADDRESS.search(word[0]) else word[0], text)
