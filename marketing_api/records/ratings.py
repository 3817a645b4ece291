"""The number inside an online review's rating, "a serialized structure" of which no sample exists (api-observed row 32).

The back end is PHP, so a plain number, PHP-serialized text and JSON are tried. Not here: any other field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import phpserialize

_NUMBER = re.compile(r"\s*-?\d{1,15}(\.\d{1,15})?\s*", re.ASCII)
#: PHP's serialized forms: `i:5;` `d:4.5;` `s:1:"5";` `a:1:{…}` `O:8:"stdClass":1:{…}` `b:1;` `N;`.
_PHP = re.compile(r"\s*([idbsaO]:|N;)", re.ASCII)
#: A number that PHP does not write so, but its reader here takes: `i:1_000;`.
_NO_PHP = re.compile(r"(?:^|[;{])\s*(?:i:(?!-?\d{1,19};)|d:(?!-?\d{1,20}(?:\.\d{1,25})?(?:E[+-]?\d{1,3})?;))", re.ASCII)
#: Longer text is no rating; it is kept raw and not looked into.
_LONGEST = 10_000


def read_rating(value: Any) -> float | None:
    """The number in `value` when there is exactly one, wherever it stands in the structure; else None. Never raises."""
    try:
        numbers = list(_numbers(_structure(value)))
    except RecursionError:
        return None
    return numbers[0] if len(numbers) == 1 else None


def _structure(value: Any) -> Any:
    if not isinstance(value, str) or len(value) > _LONGEST:
        return None if isinstance(value, str) else value
    if _NUMBER.fullmatch(value):
        return value
    try:
        if _PHP.match(value):
            if _NO_PHP.search(value):
                return None
            return phpserialize.loads(value.strip().encode(), object_hook=phpserialize.phpobject, decode_strings=True)
        return json.loads(value)
    except Exception:  # whatever a stranger's text makes of a parser, it is no rating
        return None


def _numbers(value: Any) -> Iterator[float]:
    """Every number among the values (not the names) of a structure; texts count when they are nothing but a number."""
    if isinstance(value, phpserialize.phpobject):
        value = value.__php_vars__
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if abs(value) < 1e15:
            yield float(value)
    elif isinstance(value, str) and _NUMBER.fullmatch(value):
        yield float(value)
