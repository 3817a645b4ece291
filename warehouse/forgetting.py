"""Takes people who asked to be forgotten out of calls, responses and texts: what is personal goes, addresses and ids become pseudonyms.

Nobody's address is kept for that: people are recognised by keyed fingerprints. An entry of a response that is about a forgotten person
keeps its place, its dates and its counts, so that totals stay right. Not here: where the fingerprints are kept
(`warehouse.archive.suppression`), what is archived already (`warehouse.archive.rewriting`), tables and other files (`warehouse.erasure`).
"""

import hashlib
import mmap
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices

from marketing_api.envelope import Envelope, collection, decode, part, parts_or_none, read_envelope
from marketing_api.exchange import Exchange
from marketing_api.operation import Call, Operation
from marketing_api.operations import AREAS
from marketing_api.records.contacts import GETCOUPON
from marketing_api.records.fields import is_personal

#: Nobody can have an address there (RFC 2606).
DOMAIN = "forgotten.invalid"
Buffer = bytes | mmap.mmap

#: Texts are read character by character where an address is not just in quotes: each may be escaped, as in links and JSON, also several
#: times (`%40`, `%2540`, `\\u0040`).
_PERCENT = rb"%(?:25)*"
#: Text in JSON in JSON in JSON in JSON has 15 of them; without a limit a row of them would be walked from each of its places.
_SLASH = rb"(?:\\{1,16}+|(?:%(?:25)*+5[cC]){1,16}+){1,2}+"
_IN_JSON = re.compile(rb"%s(?:u([0-9A-Fa-f]{4})|[^u%%\\])" % _SLASH, re.DOTALL)
_CHARACTER = re.compile(
    rb"%s(?:u[0-9A-Fa-f]{4}|[^u%%\\])|%s[c-fC-F][0-9A-Fa-f](?:%s[89abAB][0-9A-Fa-f])*" % (_SLASH, _PERCENT, _PERCENT)
    + rb"|%s[0-7][0-9A-Fa-f]|[\xc0-\xff][\x80-\xbf]*|." % _PERCENT,
    re.DOTALL,
)
_AT, _BARE_AT = re.compile(rb"@|%%(?:25)*+40|%su0040" % _SLASH), re.compile(b"@")
_PLAIN = re.compile(rb"[\w.+-]+@[\w-]+(?:\.[\w-]+)*")
#: What an address does not go across, what one may begin behind unless it is part of it, and what its domain is made of.
_SEPARATOR, _INNER, _OF_DOMAIN = re.compile(r'[\s"<>,;:(){}\[\]|@]'), re.compile(r"[\w.+-]"), re.compile(r"[\w.-]")
_LONGEST, _MOST_BEGINS = 320, 24
#: A large body is searched by these bytes, and as many more before and behind as a name may take that is escaped.
_REGION, _OVERLAP = 1 << 18, 4096
_ID = re.compile(rb'"(?:[iI][dD]|[cC]ontact_?[iI][dD])"\s*:\s*"?(\d{1,18})')
_IDS = ("id", "contactid", "contact_id")
LINK = re.compile(r"((?:[a-z][a-z0-9+.-]*:)?//)(?:[^/@?#]*@)?([^?#]*)", re.IGNORECASE)
#: Operations whose `id` is that of a contact, in parameters and entries; what an entry has beside it; parameters that are about nobody.
OF_CONTACTS = {each.name for each in AREAS["contacts"] if each is not GETCOUPON}
_OF_CONTACT = {"email", "registration_date", "registered_at", "timeline"}
_OF_NOBODY = {"listid", "sourceid", "campaignid", "include", "limit", "page", "status"}
#: What holds an entry's parts, and what its records are made of under other names.
_STRUCTURE = {
    *("response", "header", "errorcode", "data", "items", "timeline", "utm", "automated", "count", "total", "clicks", "details", "email"),
    *("key", "label", "date", "time", "datetime", "timestamp", "source", "medium", "campaign", "term", "content", "registration_date"),
    *_IDS,
}
#: Details of a timeline's entry that say when and how often, and those that name what was sent.
_COUNTED, _TITLES = {"send-date", "open-date", "click-date", "links-clicked"}, {"subject", "message"}


@dataclass(frozen=True)
class Forgotten:
    """Who is forgotten, by fingerprints made with `key`. `titles`: subjects of campaigns in lower case, which are about nobody. `likely`: a
    pattern (RE2) of what may name those who were included by name; None where everything has to be looked at."""

    key: bytes = field(repr=False)
    fingerprints: frozenset[str] = field(default=frozenset(), repr=False)
    titles: Collection[str] = field(default=frozenset(), repr=False)
    likely: str | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return bool(self.fingerprints)

    def including(self, addresses: Iterable[str], contacts: Iterable[tuple[str, int]]) -> Self:
        """With these people, contacts as (account, id)."""
        names, ids = list(addresses), list(contacts)
        added = {*map(self.of_address, names), *(self.of_contact(account, contact_id) for account, contact_id in ids)}
        likely = {*filter(None, [self.likely]), *map(_likely, names), *(rf'(?i)id"\s*:\s*"?{contact_id}\b' for _, contact_id in ids)}
        return replace(self, fingerprints=self.fingerprints | added, likely="|".join(sorted(likely)) or None)

    def fingerprint(self, *parts: str) -> str:
        """32 hex digits."""
        return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), key=self.key, digest_size=16).hexdigest()

    def of_address(self, address: str) -> str:
        return self.fingerprint("address", address.strip().lower())

    def of_contact(self, account: str, contact_id: int | str) -> str:
        return self.fingerprint("contact", account, str(contact_id))

    def is_address(self, value: Any) -> bool:
        return isinstance(value, str) and "@" in value and self.of_address(value) in self.fingerprints

    def is_contact(self, account: str, contact_id: int | str) -> bool:
        return self.of_contact(account, contact_id) in self.fingerprints

    def is_named(self, account: str, text: str, *, is_id: bool) -> bool:
        """Whether a cell of a table is a forgotten person's address, or, where it `is_id` of a contact, theirs."""
        return self.is_address(text) or (is_id and text.isdecimal() and self.is_contact(account, text))

    def is_title(self, value: Any) -> bool:
        return isinstance(value, str) and value.strip().lower() in self.titles

    def address(self, address: str) -> str:
        """The pseudonym of an address; of a pseudonym itself."""
        return address if is_pseudonym(address) else f"{self.of_address(address)[:16]}@{DOMAIN}"

    def contact(self, account: str, contact_id: int | str) -> int:
        """The pseudonym of a contact: a negative number; of a pseudonym itself."""
        return int(contact_id) if int(contact_id) < 0 else -int(self.of_contact(account, contact_id)[:12], 16) - 1

    def text(self, text: str) -> str:
        """With pseudonyms in place of forgotten addresses, also of those that are escaped as in links and JSON."""
        if "@" not in text and "40" not in text:
            return text
        raw, pieces, last = text.encode("utf-8", "surrogatepass"), list[bytes](), 0
        for begin, end, pseudonym in self.named(raw):
            pieces += raw[last:begin], pseudonym.encode()
            last = end
        return b"".join([*pieces, raw[last:]]).decode("utf-8", "surrogatepass") if pieces else text

    def is_about(self, account: str, operation: str, params: Mapping[str, str]) -> bool:
        """Whether a call names a forgotten person."""
        is_id = operation in OF_CONTACTS
        return any(self.is_named(account, value, is_id=is_id and name.lower() in _IDS) for name, value in params.items())

    def params(self, account: str, operation: str, params: Mapping[str, str], *, is_about: bool = False) -> dict[str, str]:
        """Those of a call without what they say of forgotten people; `is_about`: of whom it is known that the call is about them."""
        if not is_about and not self.is_about(account, operation, params):
            return {name: self.text(value) for name, value in params.items()}
        kept = {}
        for name, value in params.items():
            if self.is_address(value):
                kept[name] = self.address(value)
            elif name.lower() in _IDS and value.isdecimal():
                kept[name] = str(self.contact(account, value)) if operation in OF_CONTACTS else value
            elif name.lower() in _OF_NOBODY:
                kept[name] = value
        return kept

    def body(self, account: str, operation: Operation, params: Mapping[str, str], body: bytes) -> bytes:
        """A response's body without forgotten people; the same object when it has none.

        One that cannot be read and names somebody is empty.
        """
        pieces = self._pieces(account, operation, params, body)
        return body if pieces is None else b"".join(pieces)

    def file(self, account: str, operation: Operation, params: Mapping[str, str], path: Path) -> bool:
        """The same for a body in a file, which is written anew in its place when it names somebody; whether it was. Memory stays flat."""
        if path.stat().st_size == 0:
            return False
        with path.open("rb") as file:
            body = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if (pieces := self._pieces(account, operation, params, body)) is None:
            return False
        after = path.with_name(f"{path.name}.kept")
        with after.open("wb") as file:
            file.writelines(pieces)
        after.replace(path)
        return True

    def exchange(self, exchange: Exchange) -> Exchange:
        """As it may be kept: the same object when it names nobody. A body in a file is written anew there."""
        account, call, body = exchange.account, exchange.call, exchange.body
        if isinstance(body, Path):
            is_changed = self.file(account, call.operation, call.params, body)
        else:
            body = self.body(account, call.operation, call.params, body)
            is_changed = body is not exchange.body
        params = self.params(account, call.operation.name, call.params, is_about=is_changed and "phone" in call.params)
        error = exchange.error and self.text(exchange.error)
        is_same = not is_changed and params == call.params and error == exchange.error
        return exchange if is_same else replace(exchange, call=Call(call.operation, params), error=error, body=body)

    def entry(self, account: str, operation: Operation, entry: Any) -> Any:
        """A single entry, as it was set aside."""
        return _Reading(self, account, operation).value(entry)

    def _pieces(self, account: str, operation: Operation, params: Mapping[str, str], body: Buffer) -> Sequence[bytes | memoryview] | None:
        """What the body is put together of; None when it stays as it is."""
        reading, is_about = _Reading(self, account, operation), self.is_about(account, operation.name, params)
        is_wide = b"\0" in bytes(body[:16])  # UTF-16
        if not (places := reading.places(body)) and not is_about and not is_wide:
            return None
        try:
            envelope = read_envelope(memoryview(body))
            if isinstance(envelope.text, bytes):  # mended
                body, places = envelope.text, reading.places(envelope.text)
            if operation.is_streamed and not is_about and (pieces := reading.pieces(body, places, envelope)) is not None:
                return pieces if len(pieces) > 1 else None
            document = decode(envelope.text)
            after = reading.entry(document) if is_about else reading.value(document)
            return None if after == document else [msgspec.json.encode(after)]
        except (ValueError, msgspec.MsgspecError, RecursionError):
            return []

    def regions(self, body: Buffer) -> Iterator[tuple[int, int]]:
        """Where in a large body somebody may be named, as far as that is known: begin and end."""
        if self.likely is None or len(body) <= _REGION:
            yield 0, len(body)
            return
        for begin in range(0, len(body), _REGION):
            part = body[max(0, begin - _OVERLAP) : begin + _REGION + _OVERLAP]
            if pc.match_substring_regex(pa.scalar(part, pa.binary()), self.likely).as_py():
                yield begin, begin + _REGION

    def named(self, text: Buffer) -> Iterator[tuple[int, int, str]]:
        """Where forgotten addresses stand: (begin, end, pseudonym), in order, none in another."""
        behind, is_escaped = 0, any(text.find(each) >= 0 for each in (b"%40", b"2540", b"u0040"))
        pattern = _AT if is_escaped else _BARE_AT
        for at in (each for region in self.regions(text) for each in pattern.finditer(text, *region)):
            for begin, end, address in _addresses(text, at, behind):
                if self.is_address(address):
                    yield begin, end, self.address(address)
                    behind = end
                    break


def _addresses(text: Buffer, at: re.Match[bytes], behind: int) -> Iterable[tuple[int, int, str]]:
    """What may be an address around its `@`, the longest first: (begin, end, address)."""
    begin, end = text.rfind(b'"', max(behind, at.start() - _LONGEST), at.start()) + 1, text.find(b'"', at.end(), at.end() + _LONGEST)
    if begin and end > 0 and _PLAIN.fullmatch(whole := bytes(text[begin:end])):  # as nearly all are
        return [(begin, end, whole.decode())]
    behind_at = _characters(bytes(text[at.end() : at.end() + _LONGEST]))
    domain = list(takewhile(lambda each: _OF_DOMAIN.match(each[1]), behind_at))
    while domain and domain[-1][1] in ".-":
        del domain[-1]
    end, name = at.end() + sum(size for size, _ in domain), "".join(char for _, char in domain)
    found, place, local = list[tuple[int, int, str]](), at.start(), ""
    for size, char in reversed(_characters(bytes(text[max(behind, at.start() - _LONGEST) : at.start()]))):
        if _SEPARATOR.match(char):
            break
        if not _INNER.match(char) and local:
            found.append((place, end, f"{local}@{name}"))
        place, local = place - size, char + local
    return [(place, end, f"{local}@{name}"), *reversed(found[:_MOST_BEGINS])] if domain and local else []


def _characters(raw: bytes) -> list[tuple[int, str]]:
    """The characters of a text as they are meant, each with its size in bytes as it stands there."""
    return [(len(each), _meant(each)) for each in _CHARACTER.findall(raw)]


def _meant(character: bytes) -> str:
    if escape := _IN_JSON.fullmatch(character):
        return chr(int(escape[1], 16)) if escape[1] else " "
    text = character.decode("utf-8", "replace")
    return unquote(re.sub("%(?:25)+(?=[0-9A-Fa-f]{2})", "%", text)) if text[0] == "%" else text


def _likely(address: str) -> str:
    """What an address is like however it is escaped: letters and digits stay (in UTF-16 with a zero byte), each other character takes up to
    16 bytes."""
    runs = re.split("([^a-z0-9]+)", address.strip().lower())
    return "(?is)" + "".join(r"\x00?".join(run) if at % 2 == 0 else f".{{1,{16 * len(run)}}}?" for at, run in enumerate(runs))


def is_pseudonym(text: str | None, *, is_id: bool = False) -> bool:
    """Whether an address, or a contact's id, is that of somebody who was forgotten."""
    return text is not None and (text.endswith(f"@{DOMAIN}") or (is_id and text.startswith("-") and text[1:].isdecimal()))


@cache
def _kept_names(operation: Operation) -> frozenset[str]:
    """Names, in lower case, that an entry about a forgotten person keeps: of fields that are not personal."""
    names, personal = {*_STRUCTURE, operation.at, *operation.members}, set[str]()
    for record in operation.records:
        for name, info in record.model_fields.items():
            wire = info.validation_alias.choices if isinstance(info.validation_alias, AliasChoices) else ()
            (personal if is_personal(info) else names).update(str(each).lower() for each in (name, *wire))
    return frozenset(names - (personal - {"details", "email"}))


@dataclass(frozen=True)
class _Reading:
    """One response being read."""

    forgotten: Forgotten
    account: str
    operation: Operation

    def places(self, body: Buffer) -> list[int]:
        """Where it may name somebody, in order."""
        found = [begin for begin, *_ in self.forgotten.named(body)]
        if self.operation.name in OF_CONTACTS:
            ids = (each for begin, end in self.forgotten.regions(body) for each in _ID.finditer(body, max(0, begin - _OVERLAP), end))
            found += (each.start() for each in ids if self._is_contact(each[1].decode()))
        return sorted(set(found))

    def pieces(self, body: Buffer, places: list[int], envelope: Envelope) -> list[bytes | memoryview] | None:
        """Of a listing that may be huge: only entries that name somebody are decoded. None when somebody is named elsewhere."""
        pieces, whole, last, seen = list[bytes | memoryview](), memoryview(body), 0, 0
        for begin, raw in _entries(body, envelope.payload(self.operation)):
            first, seen = seen, bisect_left(places, begin + len(raw), seen)
            if first == seen:
                continue
            if places[first] < begin:
                return None
            if (entry := self.value(before := decode(raw))) != before:
                pieces += whole[last:begin], msgspec.json.encode(entry)
                last = begin + len(raw)
        return [*pieces, whole[last:]] if seen == len(places) else None

    def value(self, value: Any) -> Any:
        """Whatever is about nobody in particular, with the entries and addresses in it."""
        if isinstance(value, dict):
            text = self.forgotten.text
            return self.entry(value) if self._is_of_forgotten(value) else {text(name): self.value(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.value(each) for each in value]
        return self.forgotten.text(value) if isinstance(value, str) else value

    def _is_of_forgotten(self, entry: Mapping[str, Any]) -> bool:
        if any(map(self.forgotten.is_address, entry.values())):
            return True
        is_of_contact = self.operation.name in OF_CONTACTS and _OF_CONTACT.intersection(map(str.lower, entry))
        return bool(is_of_contact) and any(name.lower() in _IDS and self._is_contact(value) for name, value in entry.items())

    def _is_contact(self, value: Any, *, is_certain: bool = False) -> bool:
        """Whether it is the id of a forgotten contact; `is_certain`: of an entry that is about one."""
        contact_id = str(value).strip()
        is_id = self.operation.name in OF_CONTACTS and contact_id.isdecimal()
        return is_id and (is_certain or self.forgotten.is_contact(self.account, contact_id))

    def entry(self, entry: Any) -> Any:
        """What is about a forgotten person: names that are known and not personal stay, with what they hold."""
        if isinstance(entry, list):
            return [self.entry(each) for each in entry]
        if isinstance(entry, dict):
            return {name: self._member(name.lower(), each) for name, each in entry.items() if self._stays(name.lower(), each)}
        if isinstance(entry, str):
            link = LINK.match(entry)
            return self.forgotten.text("".join(link.groups()) if link else entry)
        return entry

    def _stays(self, name: str, value: Any) -> bool:
        is_known = name in _kept_names(self.operation) or (name.isdecimal() and isinstance(value, dict))
        return is_known or self.forgotten.is_address(value) or (name == "snippet" and self.forgotten.is_title(value))

    def _member(self, name: str, value: Any) -> Any:
        if name == "email" and isinstance(value, str) and "@" in value:
            return self.forgotten.address(value)
        if name in _IDS and self._is_contact(value, is_certain=not self.operation.echo):
            pseudonym = self.forgotten.contact(self.account, str(value).strip())
            return str(pseudonym) if isinstance(value, str) else pseudonym  # another type would pass for a change of the service
        if name == "header":
            return self.value(value)
        return details(value, self.forgotten) if name == "details" else self.entry(value)


def _entries(body: Buffer, payload: msgspec.Raw | None) -> Iterator[tuple[int, bytes]]:
    """The entries of a listing, undecoded, each with its place in the body."""
    wrapper = parts_or_none(payload)
    items = part(wrapper, "items") if wrapper is not None else payload
    place = 0
    for raw in [] if items is None else collection(items):
        entry = bytes(memoryview(raw))
        place = body.find(entry, place)
        yield place, entry
        place += len(entry)


def details(value: Any, forgotten: Forgotten) -> Any:
    """Of a timeline entry's details (`[{key, label, value}]`, or an object that is numbered) those that tell when, how often, and what
    was sent to many."""
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if _stays(each, forgotten)}
    return [each for each in value if _stays(each, forgotten)] if isinstance(value, list) else None


def _stays(detail: Any, forgotten: Forgotten) -> bool:
    if not isinstance(detail, dict):
        return False
    key = str(detail.get("key", "")).lower()
    return key in _COUNTED or (key in _TITLES and forgotten.is_title(detail.get("value")))
