"""Takes people who asked to be forgotten out of calls, responses and texts: what is personal goes, addresses and ids become pseudonyms.

Nobody's address is kept for that: people are recognised by keyed fingerprints of whole addresses and ids. An entry of a response that is
about a forgotten person keeps its place, its dates and its counts, so that totals stay right; texts of others lose whole occurrences of
their address, id and phone number, and nothing else (`Forgotten.found`). Not here: where the fingerprints are kept
(`warehouse.archive.suppression`), what is archived already (`warehouse.archive.rewriting`), tables (`warehouse.erasure`).
"""

import hashlib
import html
import mmap
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices

from marketing_api.address import normal_form
from marketing_api.envelope import Envelope, collection, decode, part, parts_or_none, read_envelope
from marketing_api.exchange import Exchange
from marketing_api.operation import Call, Operation
from marketing_api.operations import AREAS
from marketing_api.records.contacts import GETCOUPON
from marketing_api.records.fields import is_personal

#: Nobody can have an address there (RFC 2606).
DOMAIN = "forgotten.invalid"
Buffer = bytes | mmap.mmap

#: Texts are read character by character where an address is not just in quotes: each may be escaped as in links, JSON and pages, also
#: several times (`%40`, `%2540`, `\\u0040`, `&#64;`, `&amp;#64;`).
_PERCENT = rb"%(?:25)*"
#: Text in JSON in JSON in JSON in JSON has 15 of them; without a limit a row of them would be walked from each of its places.
_SLASH = rb"(?:\\{1,16}+|(?:%(?:25)*+5[cC]){1,16}+){1,2}+"
_ENTITY = rb"&(?:amp;){0,4}+(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});"
_IN_JSON = re.compile(rb"%s(?:u([0-9A-Fa-f]{4})|[^u%%\\])" % _SLASH, re.DOTALL)
_CHARACTER = re.compile(
    rb"%s(?:u[0-9A-Fa-f]{4}|[^u%%\\])|%s[c-fC-F][0-9A-Fa-f](?:%s[89abAB][0-9A-Fa-f])*" % (_SLASH, _PERCENT, _PERCENT)
    + rb"|%s[0-7][0-9A-Fa-f]|%s|[\xc0-\xff][\x80-\xbf]*|." % (_PERCENT, _ENTITY),
    re.DOTALL,
)
_AT = re.compile(rb"@|%%(?:25)*+40|%su0040|&(?:amp;){0,4}+(?:#0{0,4}64|#[xX]0{0,4}40|commat);" % _SLASH)
_BARE_AT = re.compile(b"@")
_PLAIN = re.compile(rb"[\w.+-]+@[\w-]+(?:\.[\w-]+)*")
#: What names somebody by an address, or by a contact's id, has one of these.
MAY_NAME = ("@", "40", "64", "commat", "ontact", "ONTACT")
#: What an address does not go across, and what is part of it wherever it stands: letters with their marks, digits, and these. An
#: apostrophe is part of one behind a letter (`o'ann@`) and a quote elsewhere.
_SEPARATOR, _INNER, _APOSTROPHE = re.compile(r'[\s"<>,;:(){}\[\]|@]'), re.compile(r"[\w.+-]"), "'’"
_LONGEST, _MOST_BEGINS = 320, 24
#: A contact's id in a text: behind the word, whatever separates the two; a telephone number: groups of digits with what may separate them.
_GAP = rb"(?:[\s\"'\\=:(\[.#-]|%(?:25)*(?:2[02789bBcC]|3[aAdD]|5[bBcC])|&quot;|&#\d\d;)"
_CONTACT = re.compile(rb"contact(?:[ _-]?id)?%s{1,12}+(\d{1,18})(?![\d\w])" % _GAP, re.IGNORECASE)
#: What may stand between two digits of a telephone number, and digits that one has at least and at most.
_BETWEEN = rb"(?:[ ()./+-]|\xc2\xa0|\\u00(?:2[0bBdD]|a0)|%(?:25)*(?:20|2[89bBdDeEfF])|&nbsp;|&#(?:32|43|45|160);){0,4}+"
LEAST_DIGITS, MOST_DIGITS = 7, 15
#: Stands for a number, in JSON as in words; bytes around one that are looked at.
_NO_NUMBER, _NEAR = "0", 24
#: A large body is searched by these bytes, and as many more before and behind as a name may take that is escaped.
_REGION, _OVERLAP = 1 << 18, 4096
#: What may stand between the digits, in a pattern that looks for where one may be (RE2).
_SPREAD = r"(?:[^0-9A-Za-z]|(?:25)*2[0bBdDeEfF89]|u00..|nbsp;|32;|43;|45;|160;){0,4}"
#: Names that are looked for letter by letter, and of one pattern at most; of more people everything is looked at.
_FEW = 8
_MOST_LIKELY = 200
#: Letters that capital letters and ligatures become, which may be a single character where somebody wrote them.
_FOLDED = re.compile(r"((?:[a-z0-9]?[^\x00-\x7f])+[a-z0-9]?|[^a-z0-9]+|ss|ff[il]?|f[il]|st)")
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
    """Who is forgotten, by fingerprints made with `key`. `titles`: subjects of campaigns in lower case, which are about nobody.

    For as long as people are being taken out, more is known of them: their telephone `numbers` (digits), the `accounts` of their contacts,
    and `likely`, a pattern (RE2) of what may name them; None where everything has to be looked at.
    """

    key: bytes = field(repr=False)
    fingerprints: frozenset[str] = field(default=frozenset(), repr=False)
    titles: Collection[str] = field(default=frozenset(), repr=False)
    numbers: frozenset[str] = field(default=frozenset(), repr=False)
    accounts: frozenset[str] = frozenset()
    likely: str | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return bool(self.fingerprints)

    def including(self, addresses: Iterable[str], contacts: Iterable[tuple[str, int]], numbers: Iterable[str] = ()) -> Self:
        """With these people, contacts as (account, id)."""
        names, ids, digits = list(addresses), list(contacts), frozenset(numbers)
        added = {*map(self.of_address, names), *(self.of_contact(account, contact_id) for account, contact_id in ids)}
        accounts = self.accounts | {account for account, _ in ids}
        more = replace(self, fingerprints=self.fingerprints | added, numbers=self.numbers | digits, accounts=accounts)
        if len(names) + len(ids) + len(digits) > _MOST_LIKELY:
            return replace(more, likely=None)
        named = map(_likely if len(names) <= _FEW else _plain_part, names)
        by_id = [rf'(?i)(?:id"\s*:\s*"?|contact.{{1,80}}?)(?:{"|".join(sorted({str(each) for _, each in ids}))})\b'] if ids else []
        likely = {*filter(None, [self.likely]), *named, *by_id, *([_tree(digits, _SPREAD)] if digits else [])}
        return replace(more, likely="|".join(sorted(likely)) or None)

    def fingerprint(self, *parts: str) -> str:
        """32 hex digits."""
        return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), key=self.key, digest_size=16).hexdigest()

    def of_address(self, address: str) -> str:
        return self.fingerprint("address", normal_form(address))

    def of_contact(self, account: str, contact_id: int | str) -> str:
        return self.fingerprint("contact", account, str(contact_id))

    def is_address(self, value: Any) -> bool:
        return isinstance(value, str) and "@" in value and self.of_address(value) in self.fingerprints

    def is_contact(self, account: str, contact_id: int | str) -> bool:
        return self.of_contact(account, contact_id) in self.fingerprints

    def is_named(self, account: str, text: str, *, is_id: bool) -> bool:
        """Whether a cell of a table is a forgotten person's address or telephone number, or, where it `is_id` of a contact, theirs."""
        is_number = bool(self.numbers) and digits_of(text).removeprefix("00") in self.numbers
        return self.is_address(text) or is_number or (is_id and text.isdecimal() and self.is_contact(account, text))

    def is_title(self, value: Any) -> bool:
        return isinstance(value, str) and value.strip().lower() in self.titles

    def address(self, address: str) -> str:
        """The pseudonym of an address; of a pseudonym itself."""
        return address if is_pseudonym(address) else f"{self.of_address(address)[:16]}@{DOMAIN}"

    def contact(self, account: str, contact_id: int | str) -> int:
        """The pseudonym of a contact: a negative number; of a pseudonym itself."""
        return int(contact_id) if int(contact_id) < 0 else -int(self.of_contact(account, contact_id)[:12], 16) - 1

    def text(self, text: str, account: str | None = None) -> str:
        """Without what `found` finds."""
        raw, pieces, last = text.encode("utf-8", "surrogatepass"), list[bytes](), 0
        for begin, end, instead in self.found(raw, account):
            pieces += raw[last:begin], instead.encode()
            last = end
        return b"".join([*pieces, raw[last:]]).decode("utf-8", "surrogatepass") if pieces else text

    def is_about(self, account: str, operation: str, params: Mapping[str, str]) -> bool:
        """Whether a call names a forgotten person."""
        is_id = operation in OF_CONTACTS
        return any(self.is_named(account, value, is_id=is_id and name.lower() in _IDS) for name, value in params.items())

    def params(self, account: str, operation: str, params: Mapping[str, str], *, is_about: bool = False) -> dict[str, str]:
        """Those of a call without what they say of forgotten people; `is_about`: of whom it is known that the call is about them."""
        if not is_about and not self.is_about(account, operation, params):
            return {name: self.text(value, account) for name, value in params.items()}
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
        error = exchange.error and self.text(exchange.error, account)
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
        """Where in a large body somebody may be named, as far as that is known: begin and end, each a little before the last one ends."""
        if self.likely is None or len(body) <= _REGION:
            yield 0, len(body)
            return
        for begin in range(0, len(body), _REGION):
            part = body[max(0, begin - _OVERLAP) : begin + _REGION + _OVERLAP]
            if pc.match_substring_regex(pa.scalar(part, pa.binary()), self.likely).as_py():
                yield max(0, begin - _OVERLAP), begin + _REGION

    def found(self, text: Buffer, account: str | None = None) -> Iterator[tuple[int, int, str]]:
        """Where whole addresses, ids and telephone numbers of theirs stand, however they are escaped: (begin, end, what stands for it), in
        order, none in another. What removes and what proves it both go by this."""
        regions, behind = list(self.regions(text)), 0
        several = [self._addresses_in(text, regions)]
        if self.accounts:
            several.append(self._contacts_in(text, regions, [account] if account else sorted(self.accounts)))
        if self.numbers:
            several.append(self._numbers_in(text, regions))
        for begin, end, instead in sorted(chain(*several)) if len(several) > 1 else several[0]:
            if begin >= behind:
                yield begin, end, instead
                behind = end

    def _addresses_in(self, text: Buffer, regions: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
        behind, is_escaped = 0, any(text.find(each) >= 0 for each in (b"%40", b"2540", b"u0040", b"40;", b"64;", b"commat;"))
        pattern = _AT if is_escaped else _BARE_AT
        for at in (each for region in regions for each in pattern.finditer(text, *region)):
            for begin, end, address in _addresses(text, at, behind):
                if self.is_address(address):
                    yield begin, end, self.address(address)
                    behind = end
                    break

    def _contacts_in(self, text: Buffer, regions: Iterable[tuple[int, int]], accounts: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        for each in (each for region in regions for each in _CONTACT.finditer(text, *region)):
            contact_id = each[1].decode()
            for account in (account for account in accounts if self.is_contact(account, contact_id)):
                yield *each.span(1), str(self.contact(account, contact_id))
                break

    def _numbers_in(self, text: Buffer, regions: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
        for each in (each for region in regions for each in _any_of(self.numbers).finditer(text, *region)):
            begin, end = each.span()
            before, after = _characters(bytes(text[max(0, begin - _NEAR) : begin])), _characters(bytes(text[end : end + _NEAR]))
            if not (before and before[-1][1].isalnum()) and not (after and after[0][1].isalnum()):
                yield begin - (before[-1][0] if before and before[-1][1] == "+" else 0), end, _NO_NUMBER


def _addresses(text: Buffer, at: re.Match[bytes], behind: int) -> Iterable[tuple[int, int, str]]:
    """What may be a whole address around its `@`, the longest first: (begin, end, address)."""
    begin, end = text.rfind(b'"', max(behind, at.start() - _LONGEST), at.start()) + 1, text.find(b'"', at.end(), at.end() + _LONGEST)
    if begin and end > 0 and _PLAIN.fullmatch(whole := bytes(text[begin:end])):  # as nearly all are
        return [(begin, end, whole.decode())]
    domain = list(takewhile(lambda each: each[1] != "+" and _is_inner(each[1]), _characters(bytes(text[at.end() : at.end() + _LONGEST]))))
    while domain and domain[-1][1] in ".-":
        del domain[-1]
    end, name = at.end() + sum(size for size, _ in domain), "".join(char for _, char in domain)
    found, place, local = list[tuple[int, int, str]](), at.start(), ""
    characters = list(takewhile(lambda each: not _SEPARATOR.match(each[1]), reversed(_characters_before(text, at, behind))))
    for number, (size, char) in enumerate(characters):
        next_char = characters[number + 1][1] if number + 1 < len(characters) else ""
        if local and not (_is_inner(char) or (char in _APOSTROPHE and next_char.isalnum())):
            found.append((place, end, _joined(f"{local}@{name}")))
        place, local = place - size, char + local
    return [(place, end, _joined(f"{local}@{name}")), *reversed(found[:_MOST_BEGINS])] if domain and local else []


def _characters_before(text: Buffer, at: re.Match[bytes], behind: int) -> list[tuple[int, str]]:
    return _characters(bytes(text[max(behind, at.start() - _LONGEST) : at.start()]))


def _is_inner(character: str) -> bool:
    return bool(_INNER.match(character)) or unicodedata.category(character[:1] or " ").startswith("M")


def _joined(address: str) -> str:
    """Halves of characters that JSON escapes as two become one."""
    return address if address.isascii() else address.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _characters(raw: bytes) -> list[tuple[int, str]]:
    """The characters of a text as they are meant, each with its size in bytes as it stands there."""
    return [(len(each), _meant(each)) for each in _CHARACTER.findall(raw)]


def _meant(character: bytes) -> str:
    if escape := _IN_JSON.fullmatch(character):
        return chr(int(escape[1], 16)) if escape[1] else " "
    text = character.decode("utf-8", "replace")
    if len(text) > 1 and text[0] == "&":
        return html.unescape(re.sub("&(?:amp;)+", "&", text))[:1]
    return unquote(re.sub("%(?:25)+(?=[0-9A-Fa-f]{2})", "%", text)) if text[0] == "%" else text


def _likely(address: str) -> str:
    """What an address is like however it is escaped: letters and digits stay (in UTF-16 with a zero byte), each other character takes up to
    16 bytes."""
    runs = _FOLDED.split(normal_form(address))
    return "(?is)" + "".join(r"\x00?".join(run) if at % 2 == 0 else f".{{1,{16 * len(run)}}}?" for at, run in enumerate(runs))


def digits_of(text: str) -> str:
    """Those of a telephone number; empty when the text is none."""
    number = text.strip()
    digits = "".join(filter(str.isdecimal, number))
    is_number = LEAST_DIGITS <= len(digits) <= MOST_DIGITS and all(char.isdecimal() or char in " ()./+-\xa0" for char in number)
    return digits if is_number and digits.isascii() else ""


def _plain_part(address: str) -> str:
    """The longest part that no escaping changes: of many people, a pattern of words alone is fast."""
    local, _, domain = normal_form(address).rpartition("@")
    words = [run for part in (local, domain) for run in _FOLDED.split(part)[::2]]
    longest = max(words, key=len)
    return r"(?i)" + r"\x00?".join(longest)


@cache
def _any_of(numbers: frozenset[str]) -> re.Pattern[bytes]:
    return re.compile(_alternatives(numbers))


def _alternatives(numbers: Iterable[str]) -> bytes:
    return b"(?:00)?" + _tree(numbers, _BETWEEN.decode("latin-1")).encode("latin-1")


def _tree(words: Iterable[str], gap: str) -> str:
    """A pattern of all of them, with what may stand between two letters: many alternatives would be tried one by one at each byte."""
    tails: dict[str, set[str]] = {}
    for word in words:
        tails.setdefault(word[:1], set()).add(word[1:])
    parts = "|".join(first + _tail(rest, gap) for first, rest in sorted(tails.items()))
    return f"(?:{parts})" if parts else ""


def _tail(rest: set[str], gap: str) -> str:
    tree = _tree(rest - {""}, gap)
    return (f"(?:{gap}{tree})" + ("?" if "" in rest else "")) if tree else ""


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
        found = [begin for begin, *_ in self.forgotten.found(body, self.account)]
        if self.operation.name in OF_CONTACTS:
            ids = (each for region in self.forgotten.regions(body) for each in _ID.finditer(body, *region))
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
            return (
                self.entry(value) if self._is_of_forgotten(value) else {self._text(name): self.value(each) for name, each in value.items()}
            )
        if isinstance(value, list):
            return [self.value(each) for each in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        return self.forgotten.text(text, self.account)

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
            return self._text("".join(link.groups()) if link else entry)
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
