"""The one place that knows how a response is written. It opens a body as far as needed; each part
stays undecoded until it is used.

Belongs here: the format (suffix, media type, decoder), the encoding (`to_utf8`, UNDECODED), and
where things are in a body. A body that is not quite valid JSON is mended first (`_mend_json`);
another format would be converted there, too. Not here: what an error means (`validation`), what
rows a payload holds (`parsing`). A body in a file is mapped, not read: a listing of a million
contacts is never in memory as a whole."""

import codecs
import contextlib
import json
import math
import mmap
import re
import sys
from collections import defaultdict
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
#: Replaces bytes that are not UTF-8. Unicode reserves this character, so no text of the service
#: holds it.
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
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            body = memoryview(mapped)
    if bytes(body[:3]) == _BOM:
        return body[3:]
    return body


def to_utf8(body: Body, content_type: str) -> Body:
    """The body in UTF-8: unchanged if it is, else decoded by the charset that the response
    declares. If neither fits, it stays unchanged, and UNDECODED marks the unreadable bytes."""
    declared = Message()
    declared["Content-Type"] = content_type
    try:
        charset = codecs.lookup(declared.get_content_charset("utf-8")).name
        if _CHARSET.fullmatch(charset) is None or _is_utf8(body):
            return body
        if isinstance(body, bytes):
            return body.decode(charset).encode()
        return _recode_file(body, charset)
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
    """Whether all of the body is UTF-8. Memory stays flat."""
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
    """JSON → Python. A number out of range becomes its text, bytes that are not UTF-8 become
    UNDECODED. Raises ValueError for what is no JSON."""
    try:
        return _decode(raw)
    except _UNREADABLE:
        text = bytes(memoryview(raw)).decode("utf-8", "undecoded")
        return _decode_leniently(text)


def decode_members(members: Mapping[str, msgspec.Raw] | None) -> dict[str, Any]:
    """The members of an object as Python values; none of None."""
    return {name: decode(raw) for name, raw in (members or {}).items()}


def _decode_leniently(text: str, **options: Any) -> Any:
    """By the rules of Python's own decoder. A number that it cannot hold stays text, and
    readers of numbers refuse it."""

    def read_whole(digits: str) -> int | str:
        if len(digits) < sys.int_info.default_max_str_digits:
            return int(digits)
        return digits

    def read_finite(digits: str) -> float | str:
        number = float(digits)
        if math.isfinite(number):
            return number
        return digits

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
    """Half a surrogate pair becomes the replacement character; other escapes stay."""
    inner = escape[1]
    is_surrogate = inner[:2] in (b"ud", b"uD")
    if is_surrogate and len(inner) == 5:
        return b"\\ufffd"
    return escape[0]


def _mend_json(body: bytes | memoryview) -> bytes:
    """The body as valid JSON: one cut emoji, control character or NaN must not cost a whole
    listing.

    Raises ValueError if it can't be mended. In a huge body only halves of surrogate pairs are
    mended, with flat memory."""
    if len(body) > _MENDABLE:
        return _ESCAPE.sub(_without_half, body)
    encoding = json.detect_encoding(bytes(body[:4]))
    text = bytes(body).decode(encoding, "undecoded")
    whole = _decode_leniently(
        text, strict=False, parse_constant=lambda word: None, object_pairs_hook=_Members
    )
    written = json.dumps(whole, ensure_ascii=False)
    return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class _Members(dict[str, Any]):
    """An object that is written again unchanged, with the members that it has twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs
        # The name may be that of a collection, or the key of a row.
        if any(UNDECODED in name for name in self):
            raise ValueError("a damaged name of a member")

    def items(self) -> Any:
        return self._pairs


def split_if_object(raw: Buffer | None) -> Parts | None:
    if raw is not None and first_letter(raw) == b"{":
        return split_object(raw)
    return None


#: The text between two values of an object.
_BETWEEN = re.compile(rb'[\s{,]*("(?:[^"\\]|\\.)*")\s*:\s*', re.DOTALL)


def _find_repeated(raw: Buffer, members: Parts) -> str:
    """A member that the object `raw` has more than once; "" if there is none. `members` is the
    decoded object, which has the last one.

    Only the names are read: the values are skipped, with flat memory.
    """
    text = memoryview(raw)
    place = 0
    seen = list[tuple[str, str]]()
    while found := _BETWEEN.match(text, place):
        name: str = decode(found[1])
        value = memoryview(members.get(name, b""))
        place = found.end() + len(value)
        value_here = text[found.end() : place]
        if name not in members or not _are_equal(value_here, value):
            return name
        seen.append((name, first_letter(value).decode()))
    return _find_ambiguous(seen)


def _are_equal(one: memoryview, other: memoryview) -> bool:
    """Compares copies of pieces: views compare byte by byte, which is slow, and a copy of
    everything would take too much memory."""
    if len(one) != len(other):
        return False
    for at in range(0, len(one), _PIECE):
        piece = slice(at, at + _PIECE)
        if bytes(one[piece]) != bytes(other[piece]):
            return False
    return True


def _find_ambiguous(members: Iterable[tuple[str, Any]]) -> str:
    """A member that is there again under the same name. If the names differ in case, only a
    collection, null or a count is ambiguous."""
    seen: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for name, value in members:
        seen[name.lower()].append((name, value))
    for folded, same in seen.items():
        if len(same) < 2:
            continue
        has_same_name = len(dict(same)) < len(same)
        is_count = folded in ("count", "total")
        if has_same_name or is_count or any(value in _AMBIGUOUS for _, value in same):
            return same[0][0]
    return ""


#: First letters of collections and null, and null itself.
_AMBIGUOUS = ("[", "{", "n", None)


def _find_repeated_within(raw: Buffer) -> str:
    """The same for `raw` and everything in it; objects and lists are not kept."""
    found: list[str] = []

    def note_members(pairs: list[tuple[str, Any]]) -> str:
        names = {name.lower() for name, _ in pairs}
        if len(names) < len(pairs):
            kinds = ((name, "[" if isinstance(value, list) else value) for name, value in pairs)
            found.append(_find_ambiguous(kinds))
        return "{"

    text = bytes(memoryview(raw)).decode("utf-8", "replace")
    with contextlib.suppress(RecursionError):  # as deep as it can be decoded
        json.loads(text, object_pairs_hook=note_members, parse_int=str)
    return next(filter(None, found), "")


def first_letter(raw: Buffer) -> bytes:
    """The first letter of a value: `{`, `[`, `"`, `n` of null, or that of a number or boolean."""
    return bytes(memoryview(raw)[:1])


def split_collection(raw: Buffer | None) -> list[msgspec.Raw]:
    """The entries of a list or of an object keyed by number, undecoded; empty if it is null
    (observation 16) or missing.

    An object with its own id is the only entry."""
    if raw is None:
        return []
    if first_letter(raw) == b"[":
        return _decode_list(raw)
    members = split_if_object(raw)
    if members is not None:
        id_letter = first_letter(members.get("id", b"n"))
        is_entry = id_letter not in (b"[", b"{", b"n")
    else:
        members = {}
        is_entry = decode(raw) not in (None, "")
    if is_entry:
        return [msgspec.Raw(bytes(memoryview(raw)))]
    return list(members.values())


def find_member(of: Mapping[str, msgspec.Raw] | None, name: str) -> msgspec.Raw | None:
    """A member by name, ignoring case."""
    if of is None:
        return None
    if name in of:
        return of[name]
    folded = name.lower()
    return next((raw for key, raw in of.items() if key.lower() == folded), None)


@dataclass(frozen=True)
class Envelope:
    """`{response: {header, data}}`. Some samples show the payload without an envelope; then `data`
    is the body itself.

    `flaw` says what the body is if it is no whole JSON object; then all other fields are empty.
    `text` is the body, mended if necessary."""

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
        """`data` as Python values; without `data`, the object that should hold it."""
        if self.data is None:
            return decode_members(self.response or self.top)
        return decode(self.data)

    @property
    def levels(self) -> dict[str, Parts]:
        """The objects around the payload, by the beginning of their members' paths."""
        around = {
            "": self.top,
            "response.": self.response,
            "header.": self.header,
            "data.": self.members,
        }
        return {place: members or {} for place, members in around.items()}

    def find_repeated(self, operation: Operation) -> str:
        """A member that any part of the response has twice, ignoring case; "" if there is none.
        Decoding would have kept only one of the two.

        The entries of a streamed listing are not checked here: each is checked alone.
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
        for raw, members in levels:
            if raw is not None and members:
                repeated = _find_repeated(raw, members)
                if repeated:
                    return repeated
        return ""

    def open_member(self, name: str) -> Parts | None:
        """The members of a member of `data`, undecoded; None if it is no object. Opened once, since
        it may be huge."""
        if name not in self._opened:
            self._opened[name] = split_if_object(find_member(self.members, name))
        return self._opened[name]

    def find_payload(self, operation: Operation) -> msgspec.Raw | None:
        """The member of `data` that the operation declares; None when it is missing."""
        return find_member(self.members, operation.at)

    def list_entries(self, operation: Operation) -> list[msgspec.Raw]:
        """The entries of a listing, undecoded: in its wrapper's `items`, or in the payload
        itself."""
        wrapper = self.open_member(operation.at)
        if wrapper is None:
            return split_collection(self.find_payload(operation))
        return split_collection(find_member(wrapper, "items"))

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
    """The body opened; if it is no whole JSON object, an envelope with a `flaw`."""
    text = _map_bytes(body)
    try:
        return _open_envelope(text)
    except ValueError:
        with contextlib.suppress(ValueError):
            return _open_envelope(_mend_json(text))
    return Envelope({}, text, _describe_flaw(text))


def _open_envelope(text: bytes | memoryview) -> Envelope:
    # A huge body can't be mended, so its names are not checked here.
    if len(text) <= _MENDABLE:
        str(text, "utf-8")
    top = split_object(text)
    response = split_if_object(find_member(top, "response"))
    inner = top if response is None else response
    header = split_if_object(find_member(inner, "header"))
    if response is None and header is None:
        return Envelope(top, text, members=top)
    raw_status = find_member(header, "status")
    status = ""
    if raw_status is not None:
        status = str(decode(raw_status) or "")
    data = find_member(inner, "data")
    return Envelope(
        top,
        text,
        response=response,
        header=header,
        status=status.strip().lower(),
        data=data,
        members=split_if_object(data),
    )


def _describe_flaw(body: bytes | memoryview) -> str:
    start = bytes(body[:200]).lstrip()
    if not start:
        return "no body"
    if start.startswith(b"<"):
        return "HTML or XML"
    if start.startswith(b"{"):
        return "cut or broken JSON"
    return "not a JSON object"
