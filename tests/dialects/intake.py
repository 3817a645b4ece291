"""Requests as public clients of the interface write them, into those that the product's sandbox understands:
multipart forms, numbered lists, other names and other spellings of moments (observations 9 to 13, 33, 37, 42,
46 and 53)."""

import datetime as dt
import email.parser
import email.policy
import re
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from marketing_api.sandbox.responses import Request
from marketing_api.sandbox.seed import Moments
from tests.dialects.switches import Switches

_FORM = "application/x-www-form-urlencoded"
#: `9100:Ann,9103:Rome`, the form of a public plugin description; a comma may stand within a value.
_FIELD = re.compile(r"(?:^|,)\s*(\d+):")
#: Days that stand for an open end of the calendar, and the years that a clock can tell.
_OPEN_ENDS = {"from": "1971-01-01", "to": "2999-12-31"}


def translated(request: Request, moments: Moments, switches: Switches) -> Request:
    """Its parameters under the names and in the forms of the specification; broken JSON stays as it is."""
    area, _, rest = request.path.removeprefix("/1/").partition("/")
    name = rest.lower().partition("/")[0].removesuffix(".json").rstrip("/")
    query = _merged(urllib.parse.parse_qsl(request.query, keep_blank_values=True))
    kind = request.content_type.partition(";")[0].strip().lower()
    try:
        body = _merged(_pairs(kind, request)) if request.body else {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return request
    has_words = switches.is_on("calendar-words")
    changed = [_specified(name, one, moments, has_words) for one in (query, body)]
    encoded = [urllib.parse.urlencode(one) for one in changed]
    return Request(request.verb, f"/1/{area}/{name}", encoded[0], _FORM, encoded[1].encode())


def _pairs(kind: str, request: Request) -> Iterable[tuple[str, str]]:
    if kind == "multipart/form-data":
        return _multipart(request.content_type, request.body)
    if kind == "application/json" or request.body.lstrip()[:1] == b"{":
        content = msgspec.json.decode(request.body)
        every = content.items() if isinstance(content, dict) else ()
        return [pair for name, value in every for pair in _flat(name, value)]
    return urllib.parse.parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True)


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else (("", item) for item in value):
            yield from _flat(f"{name}[{key}]", item)
    elif value is not None:
        yield name, ("true" if value else "false") if isinstance(value, bool) else str(value)


def _multipart(content_type: str, body: bytes) -> Iterator[tuple[str, str]]:
    head = f"content-type: {content_type}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            is_file = part.get_filename() is not None
            picture = f"https://images.example.com/{len(content)}.jpg"
            yield name, picture if is_file else content.decode("utf-8", "replace")


def _merged(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """`tagname[]` and `tagname[0]` repeat, as does `fields[12][]`; `fields[12]` keeps its key."""
    found: dict[str, str] = {}
    for name, value in pairs:
        head, *keys = name.strip().replace("]", "").split("[")
        folded = head.strip().lower()
        place = f"{folded}[{keys[0]}]" if keys and keys[0] and folded in ("fields", "field") else folded
        repeats = len(keys) > 1 or (bool(keys) and place == folded)
        found[place] = f"{found[place]},{value}" if repeats and place in found else value
    return found


def _specified(name: str, given: dict[str, str], moments: Moments, has_words: bool) -> dict[str, str]:
    if text := given.pop("fields", ""):
        _, *pairs = _FIELD.split(text)
        given |= {f"fields[{key}]": value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}
    if name.endswith("campaign") and "recipients" in given:
        given["lists"] = given.pop("recipients")
    if name == "calendar" and has_words:
        given |= {end: _day(given[end], far) for end, far in _OPEN_ENDS.items() if end in given}
    if name.endswith("post") and given.get("channel") == "linkedin_company":
        given["channel"] = "linkedin"
    if given.get("scheduleddate", "").isdecimal():
        local = dt.datetime.fromtimestamp(int(given["scheduleddate"]), moments.zone)
        given |= {
            "scheduleddate": f"{local:%m/%d/%Y}",
            "scheduledhours": f"{local:%H:%M}",
            "scheduledampm": "",
        }
    return given


def _day(text: str, end: str) -> str:
    """A day out of a day with a time, a far year or the word `none`."""
    word = text.strip().partition("T")[0].partition(" ")[0]
    year = re.search(r"\d{4}", word)
    return end if word.lower() == "none" or (year and not 1971 <= int(year[0]) <= 2999) else word
