"""The one place that knows how a response is written: opening its body as far as needed, each part
still undecoded until somebody wants it.

Belongs here: the format (suffix, media type, decoder), the encoding (`to_utf8`, UNDECODED), and
where things are in a body. What is no JSON by the letter is first made JSON (`_mend_json`), and
so would be another format. Not here: what an error means (`validation`), what rows a payload holds
(`parsing`). A body in a file is mapped, not read: a listing of a million contacts never is in
memory as a whole."""

import codecs
import contextlib
import json
import math
import mmap
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from marketing_api.operation import Operation

#: A small body is held in memory; one over the client's spool limit is in a file (plain JSON)
#: that its owner removes.
Body = bytes | Path
Buffer = bytes | memoryview | msgspec.Raw
Parts = dict[str, msgspec.Raw]

SUFFIX = ".json"
MEDIA_TYPE = "application/json"

_decode = msgspec.json.Decoder().decode
_decode_parts = msgspec.json.Decoder(Parts).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_UNREADABLE = (ValueError, msgspec.MsgspecError, RecursionError)
_BOM = b"\xef\xbb\xbf"
#: Takes the place of bytes that are not UTF-8. Unicode reserves it, so no text of the service holds
#: it.
UNDECODED = "\ufdd0"
codecs.register_error("undecoded", lambda error: (UNDECODED, error.end))  # type: ignore[attr-defined]
_PIECE = 1 << 20  # bytes of a huge body that are decoded at a time
#: Charsets that a response may declare instead of UTF-8, by Python's names: each byte is a
#: character, and ASCII stays ASCII, so that the key was recognized in them.
_CHARSET = re.compile(r"iso8859-\d+|cp125\d|koi8-[ru]")
_MENDABLE = 16 << 20  # bytes of a body that may be in memory as a whole, ten times over


def _map_bytes(body: Body | memoryview) -> bytes | memoryview:
    """The bytes of a body without a byte-order mark; those of a file are mapped."""
    if isinstance(body, Path):
        with body.open("rb") as file:
            if body.stat().st_size == 0:
                return b""
            body = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return body[3:] if bytes(body[:3]) == _BOM else body


def to_utf8(body: Body, content_type: str) -> Body:
    """The body in UTF-8: unchanged where it is, else decoded by the charset that the response
    declares. Where neither fits, it stays as it is and UNDECODED marks the bytes that nobody can
    read."""
    declared = Message()
    declared["Content-Type"] = content_type
    try:
        charset = codecs.lookup(declared.get_content_charset("utf-8")).name
        if _CHARSET.fullmatch(charset) is None or _is_utf8(body):
            return body
        return (
            body.decode(charset).encode()
            if isinstance(body, bytes)
            else _recode_file(body, charset)
        )
    except (LookupError, ValueError):  # an unknown charset, or not the one of the body
        return body


def _recode_file(path: Path, charset: str) -> Path:
    """The file in UTF-8, under its name; unchanged when an error is raised."""
    recoded = path.with_name(f"{path.name}.utf8")
    try:
        with (
            path.open(encoding=charset, newline="") as source,
            recoded.open("w", encoding="utf-8", newline="") as file,
        ):
            while piece := source.read(_PIECE):
                file.write(piece)
        return recoded.replace(path)
    finally:
        recoded.unlink(missing_ok=True)


def _is_utf8(body: Body | memoryview) -> bool:
    """With flat memory."""
    view = _map_bytes(body)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for place in range(0, len(view), _PIECE):
            decoder.decode(bytes(view[place : place + _PIECE]))
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def decode(raw: Buffer) -> Any:
    """JSON → Python. A number out of range is its text, bytes that are not UTF-8 are UNDECODED;
    ValueError for what is no JSON."""
    try:
        return _decode(raw)
    except _UNREADABLE:
        return _decode_leniently(bytes(memoryview(raw)).decode("utf-8", "undecoded"))


def decode_members(members: Mapping[str, msgspec.Raw] | None) -> dict[str, Any]:
    """The members of an object as Python values; none of None."""
    return {name: decode(raw) for name, raw in (members or {}).items()}


def _decode_leniently(text: str, **options: Any) -> Any:
    """By the rules of Python's own decoder; a number that it cannot hold stays as its digits, to be
    set aside by readers of numbers."""

    def read_whole(digits: str) -> int | str:
        return int(digits) if len(digits) < sys.int_info.default_max_str_digits else digits

    def read_finite(digits: str) -> float | str:
        return number if math.isfinite(number := float(digits)) else digits

    try:
        return json.loads(text, parse_float=read_finite, parse_int=read_whole, **options)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def split_object(raw: Buffer) -> Parts:
    """The members of a JSON object, undecoded; ValueError when it is none."""
    try:
        return _decode_parts(raw)
    except _UNREADABLE:
        raise ValueError("not a whole JSON object") from None


#: Every escape in turn, so that an escaped backslash before `ud800` is not taken for one.
_ESCAPE = re.compile(
    rb"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)",
    re.DOTALL,
)


def _without_half(escape: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if escape[1][:2] in (b"ud", b"uD") and len(escape[1]) == 5 else escape[0]


def _mend_json(body: bytes | memoryview) -> bytes:
    """The body as JSON by the letter: one cut emoji, control character or NaN must not cost a whole
    listing.

    ValueError when it is none by anybody's rules. Of a huge body only halves of surrogate pairs are
    mended, with flat memory."""
    if len(body) > _MENDABLE:
        return _ESCAPE.sub(_without_half, body)
    text = bytes(body).decode(json.detect_encoding(bytes(body[:4])), "undecoded")
    whole = _decode_leniently(
        text, strict=False, parse_constant=lambda word: None, object_pairs_hook=_Members
    )
    written = json.dumps(whole, ensure_ascii=False)
    return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class _Members(dict[str, Any]):
    """An object that is written again as it came, with the members that it has twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs
        # it may be the name of a collection, or the key of a row
        if any(UNDECODED in name for name in self):
            raise ValueError("a damaged name of a member")

    def items(self) -> Any:
        return self._pairs


def split_if_object(raw: Buffer | None) -> Parts | None:
    return split_object(raw) if raw is not None and first_letter(raw) == b"{" else None


#: What stands between the values of an object.
_BETWEEN = re.compile(rb'[\s{,]*("(?:[^"\\]|\\.)*")\s*:\s*', re.DOTALL)


def _find_repeated(raw: Buffer, members: Parts) -> str:
    """A member that the object `raw` has more than once, of which decoding kept the last as one of
    `members`; "" when none.

    Only the names are read: the values are stepped over, with flat memory.
    """
    text = memoryview(raw)
    place = 0
    seen = list[tuple[str, str]]()
    while found := _BETWEEN.match(text, place):
        name: str = decode(found[1])
        value = memoryview(members.get(name, b""))
        place = found.end() + len(value)
        if name not in members or not _are_equal(text[found.end() : place], value):
            return name
        seen.append((name, first_letter(value).decode()))
    return _find_ambiguous(seen)


def _are_equal(one: memoryview, other: memoryview) -> bool:
    """Piece by piece: views compare each byte by itself, and copies of all of it would not be
    flat."""
    pieces = (slice(at, at + 65_536) for at in range(0, max(len(one), len(other)), 65_536))
    return all(bytes(one[piece]) == bytes(other[piece]) for piece in pieces)


def _find_ambiguous(members: Iterable[tuple[str, Any]]) -> str:
    """A member that stands there again under a name that differs in nothing but case: in nothing at
    all, or a collection, or a count."""
    seen: dict[str, list[tuple[str, Any]]] = {}
    for name, value in members:
        seen.setdefault(name.lower(), []).append((name, value))
    for folded, same in seen.items():
        is_telling = folded in ("count", "total") or any(
            value in ("[", "{", "n", None) for _, value in same
        )
        if len(same) > 1 and (is_telling or len(dict(same)) < len(same)):
            return same[0][0]
    return ""


def _find_repeated_within(raw: Buffer) -> str:
    """The same of everything in it; objects and lists are not kept."""
    found: list[str] = []

    def note_members(pairs: list[tuple[str, Any]]) -> str:
        if len({name.lower() for name, _ in pairs}) < len(pairs):
            found.append(
                _find_ambiguous(
                    (name, "[" if isinstance(value, list) else value) for name, value in pairs
                )
            )
        return "{"

    with contextlib.suppress(RecursionError):  # as deep as it can be decoded
        json.loads(
            bytes(memoryview(raw)).decode("utf-8", "replace"),
            object_pairs_hook=note_members,
            parse_int=str,
        )
    return next(filter(None, found), "")


def first_letter(raw: Buffer) -> bytes:
    """Of a value: `{`, `[`, `"`, `n` of null, or of a number or truth value."""
    return bytes(memoryview(raw)[:1])


def split_collection(raw: Buffer | None) -> list[msgspec.Raw]:
    """The entries of a list or of an object keyed by number, undecoded; none of null (observation
    16) or of what is missing.

    An object with an id of its own is the only entry.
    """
    if raw is None:
        return []
    if first_letter(raw) == b"[":
        return _decode_list(raw)
    members = split_if_object(raw)
    if members is not None:
        is_entry = "id" in members and first_letter(members["id"]) not in (b"[", b"{", b"n")
    else:
        members = {}
        is_entry = decode(raw) not in (None, "")
    return [msgspec.Raw(bytes(memoryview(raw)))] if is_entry else list(members.values())


def find_member(of: Mapping[str, msgspec.Raw] | None, name: str) -> msgspec.Raw | None:
    """A member by name, case aside."""
    if of is None or name in of:
        return None if of is None else of[name]
    return next((raw for key, raw in of.items() if key.lower() == name.lower()), None)


@dataclass(frozen=True)
class Envelope:
    """`{response: {header, data}}`; of a payload that came bare (samples do), `data` is the body
    itself.

    `flaw` says what the body is where it is no whole JSON object; then nothing else is there.
    `text` is the body, mended where need was."""

    top: Parts
    text: bytes | memoryview = b""
    flaw: str = ""
    response: Parts | None = None
    header: Parts | None = None
    status: str = ""  # `ok`, `error` or "" without a header
    data: msgspec.Raw | None = None
    members: Parts | None = None  # of `data`, undecoded; None when it is no object
    _opened: dict[str, Parts | None] = field(default_factory=dict)

    @cached_property
    def has_undecoded(self) -> bool:
        """Whether anything in the body could not be decoded."""
        if len(self.text) > _MENDABLE:
            return not _is_utf8(memoryview(self.text))
        return UNDECODED.encode() in bytes(self.text)

    @property
    def is_bare(self) -> bool:
        return self.response is None and self.header is None

    @property
    def document(self) -> Any:
        """`data` as Python values; what is there in its place where there is none."""
        return decode_members(self.response or self.top) if self.data is None else decode(self.data)

    @property
    def levels(self) -> dict[str, Parts]:
        """What stands around the payload, by the beginning of its members' paths."""
        around = {
            "": self.top,
            "response.": self.response,
            "header.": self.header,
            "data.": self.members,
        }
        return {place: members or {} for place, members in around.items()}

    def find_repeated(self, operation: Operation) -> str:
        """A member that any part of the response has twice, case aside, of which decoding kept one;
        "" when none.

        The entries of a streamed listing are not looked into: they stand alone.
        """
        if not operation.is_streamed:
            return _find_repeated_within(self.text)
        listing = self.find_payload(operation)
        wrapper = self.open_member(operation.at)
        items = find_member(wrapper, "items")
        levels: list[tuple[Buffer | None, Parts | None]] = [
            (self.text, self.top),
            (find_member(self.top, "response"), self.response),
            (self.data, self.members),
            (listing, wrapper),
            (items, split_if_object(items)),
        ]
        found = (
            _find_repeated(raw, members) for raw, members in levels if raw is not None and members
        )
        return next(filter(None, found), "")

    def open_member(self, name: str) -> Parts | None:
        """The members of a member of `data`, undecoded; None when it is no object. Opened once: it
        may be huge."""
        if name not in self._opened:
            self._opened[name] = split_if_object(find_member(self.members, name))
        return self._opened[name]

    def find_payload(self, operation: Operation) -> msgspec.Raw | None:
        """The member of `data` that the operation declares; None when it is missing."""
        return find_member(self.members, operation.at)

    def list_entries(self, operation: Operation) -> list[msgspec.Raw]:
        """Those of a listing, undecoded: of its wrapper's `items`, or of the payload itself."""
        wrapper = self.open_member(operation.at)
        return split_collection(
            self.find_payload(operation) if wrapper is None else find_member(wrapper, "items")
        )

    def decode_payload(self, operation: Operation) -> Any:
        """The payload as Python values: the declared member, or `data` itself. ValueError when it
        is missing."""
        if not operation.at:
            return decode_members(self.members)
        raw = self.find_payload(operation)
        if raw is None:
            raise ValueError(f"no {operation.at} in the response")
        return decode(raw)


def read_envelope(body: Body | memoryview) -> Envelope:
    """The body opened; one with a `flaw` where it is no whole JSON object."""
    text = _map_bytes(body)
    try:
        return _open_envelope(text)
    except ValueError:
        with contextlib.suppress(ValueError):
            return _open_envelope(_mend_json(text))
    return Envelope({}, text, _describe_flaw(text))


def _open_envelope(text: bytes | memoryview) -> Envelope:
    # in a huge one, a name that is no UTF-8 is found out too late to be mended
    if len(text) <= _MENDABLE:
        str(text, "utf-8")
    top = split_object(text)
    response = split_if_object(find_member(top, "response"))
    inner = top if response is None else response
    header = split_if_object(find_member(inner, "header"))
    if response is None and header is None:
        return Envelope(top, text, members=top)
    raw = find_member(header, "status")
    data = find_member(inner, "data")
    status = "" if raw is None else str(decode(raw) or "").strip().lower()
    return Envelope(top, text, "", response, header, status, data, split_if_object(data))


def _describe_flaw(body: bytes | memoryview) -> str:
    start = bytes(body[:200]).lstrip()
    if not start:
        return "no body"
    if start.startswith(b"<"):
        return "HTML or XML"
    return "cut or broken JSON" if start.startswith(b"{") else "something that is no JSON object"
