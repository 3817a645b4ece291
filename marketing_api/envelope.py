"""Opening a response's body as far as needed: envelope, header, payload, each still undecoded until somebody
wants it.

Belongs here: where things stand in a body, and decoding JSON. Not here: what an error means (`validation`),
what rows a payload holds (`parsing`). A body in a file is mapped, not read: a listing of a million contacts
never is in memory as a whole."""

import contextlib
import json
import math
import mmap
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from marketing_api.exchange import Body
from marketing_api.operation import Operation

Buffer = bytes | memoryview | msgspec.Raw
Parts = dict[str, msgspec.Raw]

_decode = msgspec.json.Decoder().decode
_decode_parts = msgspec.json.Decoder(Parts).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_BOM = b"\xef\xbb\xbf"
_MENDABLE = 16 << 20  # bytes of a body that may stand in memory as a whole, ten times over


def view(body: Body | memoryview | None) -> bytes | memoryview:
    """The bytes of a body without a byte-order mark; those of a file are mapped."""
    if body is None:
        return b""
    if isinstance(body, Path):
        with body.open("rb") as file:
            if body.stat().st_size == 0:
                return b""
            body = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return body[3:] if bytes(body[:3]) == _BOM else body


def decode(raw: Buffer) -> Any:
    """JSON → Python. A number out of range is its text, bytes that are no UTF-8 cost their character;
    ValueError for what is no JSON."""
    try:
        return _decode(raw)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return _leniently(bytes(memoryview(raw)).decode("utf-8", "replace"))


def _leniently(text: str, **options: Any) -> Any:
    """By the rules of Python's own decoder; a number that it cannot hold stays as its digits, to be set aside
    by whoever needs a number."""

    def whole(digits: str) -> int | str:
        return int(digits) if len(digits) < sys.int_info.default_max_str_digits else digits

    def finite(digits: str) -> float | str:
        return number if math.isfinite(number := float(digits)) else digits

    try:
        return json.loads(text, parse_float=finite, parse_int=whole, **options)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parts(raw: Buffer) -> Parts:
    """The members of a JSON object, undecoded; ValueError when it is none."""
    try:
        return _decode_parts(raw)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        raise ValueError("not a whole JSON object") from None


#: Every escape in turn, so that an escaped backslash before `ud800` is not taken for one.
_ESCAPE = re.compile(
    rb"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)",
    re.DOTALL,
)


def _mended(body: bytes | memoryview) -> bytes:
    """The body as JSON by the letter: one cut emoji, control character or NaN must not cost a whole listing.

    ValueError when it is none by anybody's rules. Of a huge body only halves of surrogate pairs are mended,
    with flat memory."""
    if len(body) > _MENDABLE:
        return _ESCAPE.sub(
            lambda escape: (
                b"\\ufffd" if escape[1][:2] in (b"ud", b"uD") and len(escape[1]) == 5 else escape[0]
            ),
            body,
        )
    text = bytes(body).decode(json.detect_encoding(bytes(body[:4])), "replace")
    whole = _leniently(text, strict=False, parse_constant=lambda word: None, object_pairs_hook=_Members)
    return (
        json.dumps(whole, ensure_ascii=False)
        .encode("utf-16", "surrogatepass")
        .decode("utf-16", "replace")
        .encode()
    )


class _Members(dict[str, Any]):
    """An object that is written again as it came, with the members that it has twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs
        if any("\ufffd" in name for name in self):  # it may be the name of a collection, or the key of a row
            raise ValueError("a damaged name of a member")

    def items(self) -> Any:
        return self._pairs


def parts_or_none(raw: Buffer | None) -> Parts | None:
    return parts(raw) if raw is not None and first_letter(raw) == b"{" else None


#: What stands between the values of an object.
_BETWEEN = re.compile(rb'[\s{,]*("(?:[^"\\]|\\.)*")\s*:\s*', re.DOTALL)


def _repeated(raw: Buffer, members: Parts) -> str:
    """A member that the object `raw` has more than once, of which decoding kept the last as one of `members`;
    "" when none.

    Only the names are read: the values are stepped over, with flat memory.
    """
    text, place, seen = memoryview(raw), 0, list[tuple[str, str]]()
    while found := _BETWEEN.match(text, place):
        name = found[1][1:-1].decode() if b"\\" not in found[1] else decode(found[1])
        value = memoryview(members.get(name, b""))
        place = found.end() + len(value)
        if name not in members or not _is_same(text[found.end() : place], value):
            return str(name)
        seen.append((name, bytes(value[:1]).decode()))
    return _ambiguous(seen)


def _is_same(one: memoryview, other: memoryview) -> bool:
    """Piece by piece: memoryviews are compared one byte at a time."""
    places = range(0, len(other), 1 << 20)
    return len(one) == len(other) and all(
        bytes(one[at : at + (1 << 20)]) == bytes(other[at : at + (1 << 20)]) for at in places
    )


def _ambiguous(members: Iterable[tuple[str, Any]]) -> str:
    """A member that stands there again under a name that differs in nothing but case: in nothing at all, or a
    collection, or a count."""
    seen: dict[str, list[tuple[str, Any]]] = {}
    for name, value in members:
        seen.setdefault(name.lower(), []).append((name, value))
    for folded, same in seen.items():
        is_telling = folded in ("count", "total") or any(value in ("[", "{", "n", None) for _, value in same)
        if len(same) > 1 and (is_telling or len({name for name, _ in same}) < len(same)):
            return same[0][0]
    return ""


def _repeated_within(raw: Buffer) -> str:
    """The same of everything in it; objects and lists are not kept."""
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> str:
        if len({name.lower() for name, _ in pairs}) < len(pairs):
            found.append(
                _ambiguous((name, "[" if isinstance(value, list) else value) for name, value in pairs)
            )
        return "{"

    with contextlib.suppress(RecursionError):  # as deep as it can be decoded
        json.loads(bytes(memoryview(raw)).decode("utf-8", "replace"), object_pairs_hook=look, parse_int=str)
    return next(filter(None, found), "")


def first_letter(raw: Buffer) -> bytes:
    """Of a value: `{`, `[`, `"`, `n` of null, or of a number or truth value."""
    return bytes(memoryview(raw)[:1])


def collection(raw: Buffer) -> list[msgspec.Raw]:
    """The entries of a list or of an object keyed by number, undecoded; none of null (api-observed row 16).

    An object with an id of its own is the only entry.
    """
    if first_letter(raw) == b"{":
        members = parts(raw)
        is_entry = "id" in members and first_letter(members["id"]) not in (b"[", b"{", b"n")
        return [msgspec.Raw(bytes(memoryview(raw)))] if is_entry else list(members.values())
    if first_letter(raw) == b"[":
        return _decode_list(raw)
    return [] if decode(raw) in (None, "") else [msgspec.Raw(bytes(memoryview(raw)))]


def part(of: Mapping[str, msgspec.Raw] | None, name: str) -> msgspec.Raw | None:
    """A member by name, case aside."""
    if of is None or name in of:
        return None if of is None else of[name]
    return next((raw for key, raw in of.items() if key.lower() == name.lower()), None)


@dataclass(frozen=True)
class Envelope:
    """`{response: {header, data}}`; of a payload that came bare (samples do), `data` is the body itself."""

    top: Parts
    response: Parts | None
    status: str  # `ok`, `error` or "" without a header
    data: msgspec.Raw | None
    bare: bool = False
    text: bytes | memoryview = b""
    _opened: dict[str, Parts | None] = field(default_factory=dict)

    def repeated(self, operation: Operation) -> str:
        """A member that any part of the response has twice, case aside, of which decoding kept one; "" when
        none.

        The entries of a streamed listing are not looked into: they stand alone.
        """
        if not operation.is_streamed:
            return _repeated_within(self.text)
        listing, wrapper = self.payload(operation), self.opened(operation.at)
        items = part(wrapper, "items")
        levels: list[tuple[Buffer | None, Parts | None]] = [
            (self.text, self.top),
            (part(self.top, "response"), self.response),
            (self.data, self.members),
            (listing, wrapper),
            (items, parts_or_none(items)),
        ]
        return next(
            (
                name
                for raw, members in levels
                if raw is not None and members and (name := _repeated(raw, members))
            ),
            "",
        )

    @cached_property
    def members(self) -> Parts | None:
        """The members of `data`, undecoded; None when it is no object."""
        return self.top if self.bare else parts_or_none(self.data)

    def opened(self, name: str) -> Parts | None:
        """The members of a member of `data`, undecoded; None when it is no object. Opened once: it may be
        huge."""
        if name not in self._opened:
            self._opened[name] = parts_or_none(part(self.members, name))
        return self._opened[name]

    def payload(self, operation: Operation) -> msgspec.Raw | None:
        """The member of `data` that the operation declares; None when it is missing."""
        return part(self.members, operation.at)

    def decoded(self, operation: Operation) -> Any:
        """The payload as Python values: the declared member, or `data` itself. ValueError when it is
        missing."""
        if not operation.at:
            return {name: decode(raw) for name, raw in (self.members or {}).items()}
        if (raw := self.payload(operation)) is None:
            raise ValueError(f"no {operation.at} in the response")
        return decode(raw)


def read_envelope(body: Body | memoryview | None) -> Envelope:
    """ValueError when the body is no whole JSON object."""
    whole = view(body)
    try:
        if len(whole) <= _MENDABLE:
            str(
                whole, "utf-8"
            )  # in a huge one, the name of a member that is no UTF-8 is found out too late to be mended
        top = parts(whole)
    except ValueError:
        whole = _mended(whole)
        top = parts(whole)
    response = parts_or_none(part(top, "response"))
    inner = response if response is not None else top
    header = parts_or_none(part(inner, "header"))
    if response is None and header is None:
        return Envelope(top, None, "", None, bare=True, text=whole)
    raw = part(header, "status")
    status = "" if raw is None else str(decode(raw) or "").strip().lower()
    return Envelope(top, response, status, part(inner, "data"), text=whole)
