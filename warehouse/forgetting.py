"""Takes people who asked to be forgotten out of calls, responses and texts: what is personal goes, addresses
and ids become pseudonyms.

Nobody's address is kept for that: people are recognised by keyed fingerprints of whole addresses and ids. An
entry of a response that is about a forgotten person keeps its place, its dates and its counts, so that totals
stay right; texts of others lose whole occurrences of their address, id and phone number, and nothing else.

One mechanism in three parts. Who: the list (`warehouse.archive.suppression`) as `Forgotten`. What becomes of
a record: of a response `Forgotten.exchange`, of a value in a row about them `Forgotten.becomes`, of any other
text `Forgotten.text`. Who applies that: the archive to what comes, and place by place `upkeep.erasing` to
what is there, with one function a kind of file, which without `apply` proves what it does with it
(`warehouse.archive.rewriting`, `warehouse.erasure`, `write_back.forgetting`)."""

import hashlib
import mmap
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice, starmap
from pathlib import Path
from typing import Any, Self

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices

from marketing_api.address import normal_form
from marketing_api.envelope import Envelope, decode, read_envelope
from marketing_api.exchange import Exchange
from marketing_api.operation import Call, Operation
from marketing_api.operations import AREAS
from marketing_api.records.contacts import GETCOUPON
from marketing_api.records.fields import is_personal
from warehouse.mentions import (
    Mention,
    Unescaped,
    addresses,
    contact_ids,
    digits_of,
    likely_address,
    likely_id,
    likely_number,
    may_name,
    telephone_numbers,
)

#: Nobody can have an address there (RFC 2606).
DOMAIN = "forgotten.invalid"
Buffer = bytes | mmap.mmap

#: Stands for a telephone number, in JSON as in words.
_NO_NUMBER = "0"
#: A text is searched in parts of so many bytes, and as many more before and behind as a name may take that is
#: escaped.
_PART, _OVERLAP = 1 << 18, 4096
#: Names of a pattern at most: of more people everything is looked at.
_MOST_LIKELY = 24
_ID = re.compile(rb'"(?:[iI][dD]|[cC]ontact_?[iI][dD])"\s*:\s*"?(\d{1,18})')
IDS = ("id", "contactid", "contact_id")
_NUMBER = re.compile(r"(?<![\w.-])\d{1,18}(?![\w.])")
_LINK = re.compile(r"((?:[a-z][a-z0-9+.-]*:)?//)(?:[^/@?#]*@)?([^?#]*)", re.IGNORECASE)
#: Operations whose `id` is that of a contact, in parameters and entries; what an entry has beside it;
#: parameters that are about nobody.
OF_CONTACTS = {each.name for each in AREAS["contacts"] if each is not GETCOUPON}
_OF_CONTACT = {"email", "registration_date", "registered_at", "timeline"}
_OF_NOBODY = {"listid", "sourceid", "campaignid", "include", "limit", "page", "status"}
#: What holds an entry's parts, and what its records are made of under other names.
_STRUCTURE = {
    *(
        "response",
        "header",
        "errorcode",
        "data",
        "items",
        "timeline",
        "utm",
        "automated",
        "count",
        "total",
        "clicks",
        "details",
        "email",
    ),
    *(
        "key",
        "label",
        "date",
        "time",
        "datetime",
        "timestamp",
        "source",
        "medium",
        "campaign",
        "term",
        "content",
        "registration_date",
    ),
    *IDS,
}
#: Details of a timeline's entry that say when and how often, and those that name what was sent.
_COUNTED, _TITLES = {"send-date", "open-date", "click-date", "links-clicked"}, {"subject", "message"}


@dataclass(frozen=True)
class Forgotten:
    """Who is forgotten, by fingerprints made with `key`. `titles`: subjects of campaigns in lower case, which
    are about nobody.

    For as long as people are being taken out, more is known of them: their telephone `numbers` (digits), the
    `accounts` of their contacts, and `likely`, a pattern (RE2) of what may name them; None where everything
    has to be looked at."""

    key: bytes = field(repr=False)
    fingerprints: frozenset[str] = field(default=frozenset(), repr=False)
    titles: Collection[str] = field(default=frozenset(), repr=False)
    numbers: frozenset[str] = field(default=frozenset(), repr=False)
    accounts: frozenset[str] = frozenset()
    likely: str | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return bool(self.fingerprints)

    def including(
        self, addresses: Iterable[str], contacts: Iterable[tuple[str, int]], numbers: Iterable[str] = ()
    ) -> Self:
        """With these people, contacts as (account, id)."""
        names, ids, digits = list(addresses), list(contacts), frozenset(numbers)
        added = [*map(self.of_address, names), *starmap(self.of_contact, ids)]
        likely = None
        if len(names) + len(ids) + len(digits) <= _MOST_LIKELY:
            patterns = {*map(likely_address, names), *map(likely_number, digits)}
            patterns.update(likely_id(contact_id) for _, contact_id in ids)
            likely = "|".join(sorted(patterns.union(filter(None, [self.likely])))) or None
        return replace(
            self,
            fingerprints=self.fingerprints.union(added),
            numbers=self.numbers | digits,
            accounts=self.accounts.union(account for account, _ in ids),
            likely=likely,
        )

    def fingerprint(self, *parts: str) -> str:
        """32 hex digits."""
        return hashlib.blake2b(
            "\0".join(parts).encode("utf-8", "replace"), key=self.key, digest_size=16
        ).hexdigest()

    def of_address(self, address: str) -> str:
        return self.fingerprint("address", normal_form(address))

    def of_contact(self, account: str, contact_id: int | str) -> str:
        return self.fingerprint("contact", account, str(contact_id))

    def is_address(self, value: Any) -> bool:
        return isinstance(value, str) and "@" in value and self.of_address(value) in self.fingerprints

    def is_contact(self, account: str, contact_id: int | str) -> bool:
        return self.of_contact(account, contact_id) in self.fingerprints

    def is_named(self, account: str, text: str, *, is_id: bool) -> bool:
        """Whether a cell of a table is a forgotten person's address or telephone number, or, where it `is_id`
        of a contact, theirs."""
        is_number = self.numbers and digits_of(text).removeprefix("00") in self.numbers
        if self.is_address(text) or is_number:
            return True
        return is_id and text.isdecimal() and self.is_contact(account, text)

    def is_title(self, value: Any) -> bool:
        return isinstance(value, str) and value.strip().lower() in self.titles

    def address(self, address: str) -> str:
        """The pseudonym of an address; of a pseudonym itself."""
        return address if is_pseudonym(address) else f"{self.of_address(address)[:16]}@{DOMAIN}"

    def contact(self, account: str, contact_id: int | str) -> int:
        """The pseudonym of a contact: a negative number; of a pseudonym itself."""
        number = int(contact_id)
        return number if number < 0 else -int(self.of_contact(account, contact_id)[:12], 16) - 1

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
        return any(
            self.is_named(account, value, is_id=is_id and name.lower() in IDS)
            for name, value in params.items()
        )

    def becomes(self, rule: str, account: str | None, value: Any) -> str | None:
        """What becomes of a value in a row about them, by one of `RULES`; nothing of nothing."""
        return None if value is None else RULES[rule](self, account, str(value))

    def params(
        self, account: str, operation: str, params: Mapping[str, str], *, is_about: bool = False
    ) -> dict[str, str]:
        """Those of a call without what they say of forgotten people; `is_about`: of whom it is known that the
        call is about them."""
        if not is_about and not self.is_about(account, operation, params):
            return {name: self.text(value, account) for name, value in params.items()}
        kept = {}
        for name, value in params.items():
            is_id = name.lower() in IDS and value.isdecimal()
            if self.is_address(value):
                kept[name] = self.address(value)
            elif is_id and operation in OF_CONTACTS:
                kept[name] = str(self.contact(account, value))
            elif is_id or name.lower() in _OF_NOBODY:
                kept[name] = value
        return kept

    def body(self, account: str, operation: Operation, params: Mapping[str, str], body: bytes) -> bytes:
        """A response's body without forgotten people; the same object when it has none.

        One that cannot be read and names somebody is empty.
        """
        pieces = _Reading(self, account, operation).without(params, body)
        return body if pieces is None else b"".join(pieces)

    def _file(self, account: str, call: Call, path: Path) -> bool:
        """The same for a body in a file, which is written anew in its place when it names somebody; whether
        it was. Memory stays flat."""
        if path.stat().st_size == 0:
            return False
        with path.open("rb") as file:
            body = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if (pieces := _Reading(self, account, call.operation).without(call.params, body)) is None:
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
            is_changed = self._file(account, call, body)
        else:
            body = self.body(account, call.operation, call.params, body)
            is_changed = body is not exchange.body
        is_about = is_changed and "phone" in call.params
        params = self.params(account, call.operation.name, call.params, is_about=is_about)
        error = exchange.error and self.text(exchange.error, account)
        if not is_changed and params == call.params and error == exchange.error:
            return exchange
        return replace(exchange, call=Call(call.operation, params), error=error, body=body, opened=None)

    def found(self, text: Buffer, account: str | None = None) -> Iterator[tuple[int, int, str]]:
        """Where whole addresses, ids and telephone numbers of theirs stand, however they are escaped: (begin,
        end, what stands for it), in order, none in another. What removes and what proves it both go by
        this."""
        behind = 0
        for begin in range(0, len(text), _PART):
            start, stop = max(0, begin - _OVERLAP), begin + _PART
            raw = bytes(text[start : stop + _OVERLAP])
            if not self._may_be_in(raw):
                continue
            meant = Unescaped(raw)
            accounts = [account] if account else sorted(self.accounts)
            for mention, instead in sorted(self._mentions(meant.text, accounts)):
                first, last = start + meant.place(mention.begin), start + meant.place(mention.end)
                if behind <= first < stop:
                    yield first, last, instead
                    behind = last

    def _may_be_in(self, raw: bytes) -> bool:
        if self.likely is not None and len(raw) > _OVERLAP:
            return bool(pc.match_substring_regex(pa.scalar(raw, pa.binary()), self.likely).as_py())
        return bool(self.numbers) or may_name(raw)

    def _mentions(self, text: str, accounts: Sequence[str]) -> Iterator[tuple[Mention, str]]:
        """In a text that is unescaped."""
        for possible in addresses(text):
            yield from ((each, self.address(each.text)) for each in possible if self.is_address(each.text))
        for each in contact_ids(text):
            theirs = (account for account in accounts if self.is_contact(account, each.text))
            yield from ((each, str(self.contact(account, each.text))) for account in islice(theirs, 1))
        yield from ((each, _NO_NUMBER) for each in telephone_numbers(text, self.numbers))


def is_pseudonym(text: str | None, *, is_id: bool = False) -> bool:
    """Whether an address, or a contact's id, is that of somebody who was forgotten."""
    return text is not None and (
        text.endswith(f"@{DOMAIN}") or (is_id and text.startswith("-") and text[1:].isdecimal())
    )


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

    def without(self, params: Mapping[str, str], body: Buffer) -> Sequence[bytes | memoryview] | None:
        """What the body is put together of; None when it stays as it is."""
        is_about = self.forgotten.is_about(self.account, self.operation.name, params)
        places = self.places(body)
        is_wide = b"\0" in bytes(body[:16])  # UTF-16
        if not (places or is_about or is_wide):
            return None
        try:
            return self._read(body, places, is_about=is_about)
        except (ValueError, msgspec.MsgspecError, RecursionError):
            return []

    def _read(
        self, body: Buffer, places: list[int], *, is_about: bool
    ) -> Sequence[bytes | memoryview] | None:
        envelope = read_envelope(memoryview(body))
        if envelope.flaw:
            return []
        if isinstance(envelope.text, bytes):  # mended
            body, places = envelope.text, self.places(envelope.text)
        if self.operation.is_streamed and not is_about:
            pieces = self.pieces(body, places, envelope)
            if pieces is not None:
                return pieces if len(pieces) > 1 else None
        document = decode(envelope.text)
        after = self.entry(document) if is_about else self.value(document)
        return None if after == document else [msgspec.json.encode(after)]

    def places(self, body: Buffer) -> list[int]:
        """Where it may name somebody, in order."""
        found = [begin for begin, *_ in self.forgotten.found(body, self.account)]
        if self.operation.name in OF_CONTACTS:
            found += (each.start() for each in _ID.finditer(body) if self._is_contact(each[1].decode()))
        return sorted(set(found))

    def pieces(self, body: Buffer, places: list[int], envelope: Envelope) -> list[bytes | memoryview] | None:
        """Of a listing that may be huge: only entries that name somebody are decoded. None when somebody is
        named elsewhere."""
        pieces, whole, last, seen = list[bytes | memoryview](), memoryview(body), 0, 0
        for begin, raw in _entries(body, envelope.entries(self.operation)):
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
            if self._is_of_forgotten(value):
                return self.entry(value)
            return {self._text(name): self.value(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.value(each) for each in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        return self.forgotten.text(text, self.account)

    def _is_of_forgotten(self, entry: Mapping[str, Any]) -> bool:
        if any(map(self.forgotten.is_address, entry.values())):
            return True
        is_of_contact = self.operation.name in OF_CONTACTS and _OF_CONTACT.intersection(map(str.lower, entry))
        return bool(is_of_contact) and any(
            name.lower() in IDS and self._is_contact(value) for name, value in entry.items()
        )

    def _is_contact(self, value: Any, *, is_certain: bool = False) -> bool:
        """Whether it is the id of a forgotten contact; `is_certain`: of an entry that is about one."""
        contact_id = str(value).strip()
        is_id = self.operation.name in OF_CONTACTS and contact_id.isdecimal()
        return is_id and (is_certain or self.forgotten.is_contact(self.account, contact_id))

    def entry(self, entry: Any) -> Any:
        """What is about a forgotten person: names that are known and not personal stay, with what they
        hold."""
        if isinstance(entry, list):
            return [self.entry(each) for each in entry]
        if isinstance(entry, dict):
            return {
                name: self._member(name.lower(), each)
                for name, each in entry.items()
                if self._stays(name.lower(), each)
            }
        return self._text(_page(entry)) if isinstance(entry, str) else entry

    def _stays(self, name: str, value: Any) -> bool:
        if name in _kept_names(self.operation) or self.forgotten.is_address(value):
            return True
        is_numbered = name.isdecimal() and isinstance(value, dict)
        return is_numbered or (name == "snippet" and self.forgotten.is_title(value))

    def _member(self, name: str, value: Any) -> Any:
        if name == "email" and isinstance(value, str) and "@" in value:
            return self.forgotten.address(value)
        if name in IDS and self._is_contact(value, is_certain=not self.operation.echo):
            pseudonym = self.forgotten.contact(self.account, str(value).strip())
            # another type would pass for a change of the service
            return str(pseudonym) if isinstance(value, str) else pseudonym
        if name == "header":
            return self.value(value)
        return details(value, self.forgotten) if name == "details" else self.entry(value)


def _entries(body: Buffer, entries: Iterable[msgspec.Raw]) -> Iterator[tuple[int, bytes]]:
    """The entries of a listing, undecoded, each with its place in the body."""
    place = 0
    for raw in entries:
        entry = bytes(memoryview(raw))
        place = body.find(entry, place)
        yield place, entry
        place += len(entry)


def _page(text: str) -> str:
    """Of a link what is asked for, without parameters and whom it is asked for; other texts as they are."""
    link = _LINK.match(text)
    return "".join(link.groups()) if link else text


def details(value: Any, forgotten: Forgotten) -> Any:
    """Of a timeline entry's details (`[{key, label, value}]`, or an object that is numbered) those that tell
    when, how often, and what was sent to many."""
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if _stays(each, forgotten)}
    return [each for each in value if _stays(each, forgotten)] if isinstance(value, list) else None


def _stays(detail: Any, forgotten: Forgotten) -> bool:
    if not isinstance(detail, dict):
        return False
    key = str(detail.get("key", "")).lower()
    return key in _COUNTED or (key in _TITLES and forgotten.is_title(detail.get("value")))


def _contact(forgotten: Forgotten, account: str | None, digits: str) -> str:
    """The pseudonym of a contact of theirs; others as they are written. Without an account that of any."""
    for each in [account] if account else sorted(forgotten.accounts):
        if forgotten.is_contact(each, int(digits)):
            return str(forgotten.contact(each, int(digits)))
    return digits


def _personal(forgotten: Forgotten, account: str | None, text: str) -> str | None:
    """The pseudonym of an address; nothing of others, unless it was sent to many."""
    if forgotten.is_address(text):
        return forgotten.address(text)
    return text if is_pseudonym(text) or forgotten.is_title(text) else None


def _kept(forgotten: Forgotten, account: str | None, text: str) -> str:
    """Of a link the page stays, a key has the contact's pseudonym."""
    text = forgotten.text(_page(text), account)
    return _NUMBER.sub(lambda found: _contact(forgotten, account, found[0]), text)


def _details(forgotten: Forgotten, account: str | None, text: str) -> str | None:
    """Those of a timeline's entry; without any a load has none."""
    with suppress(msgspec.DecodeError):
        if kept := details(msgspec.json.decode(text), forgotten):
            return msgspec.json.encode(kept).decode()
    return None


def _text(forgotten: Forgotten, account: str | None, text: str) -> str:
    return forgotten.text(text, account)


#: What becomes of a value in a row about them, by the names that SQL has for it: `personal` where its column
#: is, `kept` where it is not, `contact` of a contact's id, `details` of those of a timeline's entry, `text`
#: of a text that was sent to many.
RULES: Mapping[str, Callable[[Forgotten, str | None, str], str | None]] = {
    "contact": _contact,
    "details": _details,
    "kept": _kept,
    "personal": _personal,
    "text": _text,
}
