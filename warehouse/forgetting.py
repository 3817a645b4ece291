"""Takes people who asked to be forgotten out of calls, responses and texts: what is personal goes, addresses and ids become pseudonyms.

Nobody's address is kept for that: people are recognised by keyed fingerprints. An entry of a response that is about a forgotten person
keeps its place, its dates and its counts, so that totals stay right. Not here: where the fingerprints are kept (`warehouse.archive.suppression`),
what else holds personal data (`warehouse.erasure`).
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Self
from urllib.parse import unquote

import msgspec
from pydantic import AliasChoices

from marketing_api.envelope import collection, decode, part, parts_or_none, read_envelope
from marketing_api.operation import Operation
from marketing_api.operations import contacts
from marketing_api.records.fields import is_personal

#: Nobody can have an address there (RFC 2606).
DOMAIN = "forgotten.invalid"
_AT = re.compile(r"@|%40|%2540|\\u0040", re.IGNORECASE)
#: What may stand before and behind it, and where within that an address may begin or end.
_LOCAL, _DOMAIN = re.compile(r'[^\s"<>,;:|(){}\[\]@]{1,320}\Z'), re.compile(r"[\w.-]{1,255}")
_BEGINS, _ENDS = re.compile(r"\A|[^\w.+\\-](?:(?<=%)[0-9a-f]{2})?", re.IGNORECASE), re.compile(r"(?<=[\w-])(?=\.|\Z)")
_PLAIN = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ID = re.compile(r'"(?:id|contact_?id)"\s*:\s*"?(\d{1,18})', re.IGNORECASE)
_LINK = re.compile(r"((?:[a-z][a-z0-9+.-]*:)?//)(?:[^/@?#]*@)?([^?#]*)", re.IGNORECASE)
#: Operations whose `id` is that of a contact, in parameters and entries; what an entry has beside it.
_OF_CONTACTS = {each.name for each in vars(contacts).values() if isinstance(each, Operation) and each is not contacts.GETCOUPON}
_OF_CONTACT = {"email", "registration_date", "registered_at", "timeline"}
#: What holds an entry's parts, and what its records are made of under other names.
_STRUCTURE = {
    *("response", "data", "items", "timeline", "utm", "automated", "count", "total", "details", "email", "id", "contactid", "contact_id"),
    *("key", "label", "date", "time", "datetime", "timestamp", "source", "medium", "campaign", "term", "content", "registration_date"),
}
#: Details of a timeline's entry that say when and how often, and those that name what was sent.
_COUNTED, _TITLES = {"send-date", "open-date", "click-date", "links-clicked"}, {"subject", "message"}


@dataclass(frozen=True)
class Forgotten:
    """Who is forgotten, by fingerprints made with `key`. `titles`: subjects of campaigns in lower case, which are about nobody."""

    key: bytes = field(repr=False)
    fingerprints: Collection[str] = frozenset()
    titles: Collection[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.fingerprints)

    def fingerprint(self, *parts: str) -> str:
        """32 hex digits."""
        return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), key=self.key, digest_size=16).hexdigest()

    def of_address(self, address: str) -> str:
        return self.fingerprint("address", address.strip().lower())

    def of_contact(self, account: str, contact_id: int | str) -> str:
        return self.fingerprint("contact", account, str(contact_id))

    def including(self, addresses: Iterable[str], contacts: Iterable[tuple[str, int]]) -> Self:
        """With these people, contacts as (account, id)."""
        added = {*map(self.of_address, addresses), *(self.of_contact(account, contact_id) for account, contact_id in contacts)}
        return replace(self, fingerprints=frozenset(self.fingerprints) | added)

    def is_address(self, text: str) -> bool:
        return self.of_address(text) in self.fingerprints

    def is_contact(self, account: str, contact_id: int | str) -> bool:
        return self.of_contact(account, contact_id) in self.fingerprints

    def address(self, address: str) -> str:
        """The pseudonym of an address; of a pseudonym itself."""
        return address if address.endswith(f"@{DOMAIN}") else f"{self.of_address(address)[:16]}@{DOMAIN}"

    def contact(self, account: str, contact_id: int | str) -> int:
        """The pseudonym of a contact: a negative number; of a pseudonym itself."""
        return int(contact_id) if int(contact_id) < 0 else -int(self.of_contact(account, contact_id)[:12], 16) - 1

    def named(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where forgotten addresses stand in the text, also escaped as in links and JSON: (begin, end, pseudonym)."""
        if _PLAIN.fullmatch(text):
            if self.is_address(text):
                yield 0, len(text), self.address(text)
            return
        behind = 0
        for at in _AT.finditer(text):
            local, domain = _LOCAL.search(text, max(behind, at.start() - 320), at.start()), _DOMAIN.match(text, at.end())
            if local and domain and (found := self._within(local[0], at[0], domain[0])):
                begin, end, pseudonym = found
                behind = at.end() + end
                yield local.start() + begin, behind, pseudonym

    def _within(self, local: str, at: str, domain: str) -> tuple[int, int, str] | None:
        begins = [each.end() for each in _BEGINS.finditer(local)]
        ends = [each.start() for each in _ENDS.finditer(domain)]
        for begin in begins:
            for end in reversed(ends):
                for address in _spellings(f"{local[begin:]}{at}{domain[:end]}"):
                    if self.is_address(address):
                        return begin, end, self.address(address)
        return None

    def text(self, text: str) -> str:
        """With pseudonyms in place of forgotten addresses."""
        made, last = "", 0
        for begin, end, pseudonym in self.named(text):
            made, last = f"{made}{text[last:begin]}{pseudonym}", end
        return made + text[last:] if last else text

    def is_about(self, account: str, operation: str, params: Mapping[str, str]) -> bool:
        """Whether a call names a forgotten person."""
        ids = [value for name, value in params.items() if name.lower() in ("id", "contactid", "contact_id")]
        return any(map(self.is_address, params.values())) or (
            operation in _OF_CONTACTS and any(value.isdecimal() and self.is_contact(account, value) for value in ids)
        )

    def params(self, account: str, operation: str, params: Mapping[str, str]) -> dict[str, str]:
        """Those of a call without what they say of forgotten people."""
        if not self.is_about(account, operation, params):
            return {name: self.text(value) if "@" in value else value for name, value in params.items()}
        kept = {}
        for name, value in params.items():
            if self.is_address(value):
                kept[name] = self.address(value)
            elif name.lower() in ("id", "contactid", "contact_id") and value.isdecimal():
                kept[name] = str(self.contact(account, value)) if operation in _OF_CONTACTS else value
            elif name.lower() in ("listid", "sourceid", "campaignid", "include", "limit", "page", "status"):
                kept[name] = value
        return kept

    def body(self, account: str, operation: Operation, params: Mapping[str, str], body: bytes) -> bytes:
        """A response's body without forgotten people; the same object when it has none. One that cannot be read
        and may have some is empty."""
        is_about = self.is_about(account, operation.name, params)
        if not is_about and not self._may_name(account, operation, body):
            return body
        reading = _Reading(self, account, operation)
        try:
            if operation.is_streamed and not is_about:
                return reading.entries(body)
            document = decode(body)
            data = document.get("response", {}).get("data") if isinstance(document, dict) else None
            if is_about and isinstance(data, dict):
                document["response"]["data"] = reading.entry(data)
            return msgspec.json.encode(reading.value(document))
        except (ValueError, msgspec.MsgspecError, RecursionError, AttributeError):
            return b""

    def _may_name(self, account: str, operation: Operation, body: bytes) -> bool:
        text = body.decode("utf-8", "replace")
        if next(self.named(text), None):
            return True
        return operation.name in _OF_CONTACTS and any(self.is_contact(account, each[1]) for each in _ID.finditer(text))

    def entry(self, account: str, operation: Operation, entry: Any) -> Any:
        """A single entry, as it was set aside."""
        return _Reading(self, account, operation).value(entry)


def _spellings(text: str) -> Iterable[str]:
    """What an address may be that is escaped: as in links, once or twice, as in JSON."""
    yield text
    if "%" in text:
        yield (once := unquote(text))
        yield unquote(once)
    if "\\" in text:
        try:
            yield str(msgspec.json.decode(f'"{text}"'))
        except msgspec.DecodeError:
            yield text.replace("\\", "")


@cache
def _kept_names(operation: Operation) -> frozenset[str]:
    """Names, in lower case, that an entry about a forgotten person keeps: of fields that are not personal."""
    names, personal = set(_STRUCTURE), set[str]()
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

    def entries(self, body: bytes) -> bytes:
        """Of a listing that may be huge: only entries that name somebody are decoded."""
        payload = read_envelope(body).payload(self.operation)
        wrapper = parts_or_none(payload)
        items = part(wrapper, "items") if wrapper is not None else payload
        for raw in [] if items is None else collection(items):
            before = bytes(memoryview(raw))
            if self.forgotten._may_name(self.account, self.operation, before):
                body = body.replace(before, msgspec.json.encode(self.value(decode(before))))
        left = self.forgotten.named(body.decode("utf-8", "replace"))
        return body if next(left, None) is None else msgspec.json.encode(self.value(decode(body)))

    def value(self, value: Any) -> Any:
        """Whatever is about nobody in particular, with the entries and addresses in it."""
        if isinstance(value, dict):
            return self.entry(value) if self._is_of_forgotten(value) else {name: self.value(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.value(each) for each in value]
        return self.forgotten.text(value) if isinstance(value, str) else value

    def _is_of_forgotten(self, entry: Mapping[str, Any]) -> bool:
        if any(isinstance(value, str) and "@" in value and self.forgotten.is_address(value) for value in entry.values()):
            return True
        if self.operation.name not in _OF_CONTACTS or not _OF_CONTACT.intersection(map(str.lower, entry)):
            return False
        return any(name.lower() in ("id", "contactid", "contact_id") and self._is_contact(value) for name, value in entry.items())

    def _is_contact(self, value: Any) -> bool:
        return str(value).strip().isdecimal() and self.forgotten.is_contact(self.account, str(value).strip())

    def entry(self, entry: Any) -> Any:
        """What is about a forgotten person: names that are known and not personal stay, with what they hold."""
        if isinstance(entry, list):
            return [self.entry(each) for each in entry]
        if isinstance(entry, dict):
            return {name: self._member(name.lower(), each) for name, each in entry.items() if self._stays(name, each)}
        if isinstance(entry, str):
            link = _LINK.match(entry)
            return self.forgotten.text("".join(link.groups()) if link else entry)
        return entry

    def _stays(self, name: str, value: Any) -> bool:
        """A number names an entry of many, or a custom field, whose value is no object."""
        return name.lower() in _kept_names(self.operation) or (name.isdecimal() and isinstance(value, dict))

    def _member(self, name: str, value: Any) -> Any:
        if name == "email" and isinstance(value, str) and "@" in value:
            return self.forgotten.address(value)
        if name in ("id", "contactid", "contact_id") and self._is_contact(value):
            return self.forgotten.contact(self.account, str(value).strip())
        return details(value, self.forgotten) if name == "details" else self.entry(value)


def details(value: Any, forgotten: Forgotten) -> Any:
    """Of a timeline entry's details (`[{key, label, value}]`, or an object that is numbered) those that tell when, how often, and what
    was sent to many."""
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if _stays(each, forgotten)}
    return [each for each in value if _stays(each, forgotten)] if isinstance(value, list) else None


def _stays(detail: Any, forgotten: Forgotten) -> bool:
    if not isinstance(detail, dict):
        return False
    key, text = str(detail.get("key", "")).lower(), str(detail.get("value", "")).strip().lower()
    return key in _COUNTED or (key in _TITLES and text in forgotten.titles)
