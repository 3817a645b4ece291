"""The people who asked to be forgotten, and what is archived of responses about them.

People are recognized by keyed fingerprints of their addresses and contact ids; the list is in
`archive/forgotten.json` (`warehouse.archive.suppression`). If an entry of a response is about one
of them, a marker replaces it before the response is archived. The marker keeps the counts of the
response correct, and becomes no row. Not here: deleting stored data (`upkeep.erasing`)."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from marketing_api.address import normal_form
from marketing_api.envelope import Envelope, decode, read_envelope
from marketing_api.exchange import Exchange
from marketing_api.operation import Call, Operation
from marketing_api.operations import AREAS
from marketing_api.records.contacts import (
    ADDRESS_NAMES,
    CONTACT_ID_NAMES,
    CONTACT_OPERATIONS,
)
from marketing_api.records.shapes import FORGOTTEN, is_numbered

#: Separators between the words of a text; no address contains them.
_SEPARATOR = re.compile(r'[\s"<>,;:(){}\[\]|]+')


@dataclass(frozen=True)
class Person:
    """`addresses` in normal form; `contacts` as (account, id)."""

    addresses: tuple[str, ...]
    contacts: tuple[tuple[str, int], ...] = ()


def _may_have_address(text: Any) -> bool:
    return isinstance(text, str) and "@" in text


class _IsForgotten(Exception):
    """Part of a response is about a forgotten person."""


@dataclass(frozen=True)
class Forgotten:
    """Fingerprints of forgotten people, made with `key`."""

    key: bytes = field(repr=False)
    fingerprints: frozenset[str] = field(default=frozenset(), repr=False)

    def __bool__(self) -> bool:
        return bool(self.fingerprints)

    def fingerprints_of(self, person: Person) -> list[str]:
        names = (("address", normal_form(address)) for address in person.addresses)
        ids = (("contact", account, str(contact_id)) for account, contact_id in person.contacts)
        return [self.make_fingerprint(*parts) for parts in chain[tuple[str, ...]](names, ids)]

    def make_fingerprint(self, *parts: str) -> str:
        """32 hex digits."""
        text = "\0".join(parts).encode("utf-8", "replace")
        return hashlib.blake2b(text, key=self.key, digest_size=16).hexdigest()

    def is_address(self, value: Any) -> bool:
        return (
            isinstance(value, str)
            and "@" in value
            and self.make_fingerprint("address", normal_form(value)) in self.fingerprints
        )

    def is_contact(self, account: str, contact_id: int | str) -> bool:
        return (
            self.make_fingerprint("contact", account, str(contact_id).strip()) in self.fingerprints
        )

    def is_named(self, account: str, text: str, *, is_id: bool) -> bool:
        """Whether a cell of a table is a forgotten person's address or, if it `is_id`, their
        contact id."""
        return self.is_address(text) or (is_id and self.is_contact(account, text))

    def is_about(self, account: str, operation: str, params: Mapping[str, str]) -> bool:
        """Whether a call names a forgotten person."""
        is_of_contact = operation in CONTACT_OPERATIONS
        return any(
            self.is_named(account, value, is_id=is_of_contact and name.lower() in CONTACT_ID_NAMES)
            for name, value in params.items()
        )

    def cut_exchange(self, exchange: Exchange) -> Exchange:
        """The exchange as it may be archived; the same object if it is about no forgotten person. A
        body in a spool file is replaced there.

        A call about one of them keeps neither parameters nor body. A body that cannot be read is
        not kept either, since it may name them."""
        call = exchange.call
        body = exchange.body
        if self.is_about(exchange.account, call.operation.name, call.params):
            _replace_file(body, [])
            empty = Call(call.operation, {})
            return replace(exchange, call=empty, error=None, body=b"", opened=None)
        pieces = _Cutting(self, exchange.account, call.operation).cut_body(body)
        if pieces is None:
            return exchange
        if isinstance(body, Path):
            _replace_file(body, pieces)
        else:
            body = b"".join(pieces)
        return replace(exchange, body=body, opened=None)


def _replace_file(body: bytes | Path, pieces: Iterable[bytes | memoryview]) -> None:
    if isinstance(body, Path):
        cut = body.with_name(f"{body.name}.cut")
        with cut.open("wb") as file:
            file.writelines(pieces)
        cut.replace(body)


@dataclass(frozen=True)
class _Cutting:
    """Cuts one response."""

    forgotten: Forgotten
    account: str
    operation: Operation

    def cut_body(self, body: bytes | Path) -> Collection[bytes | memoryview] | None:
        """The pieces of the cut body; None if nothing is cut."""
        if self.operation in AREAS["account"]:
            # the response is about the business, even if its owner is a forgotten person
            return None
        envelope = read_envelope(body)
        if envelope.flaw:
            return [] if envelope.text else None
        if self.operation.is_streamed:
            cut = list(self._cut_entries(envelope))
            return cut if len(cut) > 1 else None
        before = decode(envelope.text)
        try:
            after = self.cut_value(before)
        except _IsForgotten:
            return []
        return None if after == before else [msgspec.json.encode(after)]

    def _cut_entries(self, envelope: Envelope) -> Iterator[bytes | memoryview]:
        """The pieces of a listing that may be huge: its entries are decoded one by one."""
        text = memoryview(envelope.text)
        end = 0
        place = 0
        whole: Any = text.obj  # bytes or a mapped file: both can be searched
        start = len(whole) - len(text)  # after a byte-order mark
        for raw in envelope.list_entries(self.operation):
            entry = bytes(memoryview(raw))
            place = whole.find(entry, start + place) - start
            after = self._cut_entry(before := decode(entry))
            if after is not before:
                yield text[end:place]
                yield msgspec.json.encode(after)
                end = place + len(entry)
            place += len(entry)
        yield text[end:]

    def cut_value(self, value: Any) -> Any:
        """The value without list entries about forgotten people, and without their addresses in
        other entries. Raises _IsForgotten if the value itself is about one of them."""
        if isinstance(value, list):
            if any(map(self._has_address, value)) and not all(map(_may_have_address, value)):
                raise _IsForgotten  # like [address, clicks]
            return [self._cut_entry(item) for item in value]
        if isinstance(value, dict):
            return self._cut_object(value)
        return None if self.forgotten.is_address(value) else value

    def _cut_object(self, members: dict[str, Any]) -> dict[str, Any]:
        if any(self._is_person(name.lower(), member) for name, member in members.items()):
            raise _IsForgotten
        is_list = is_numbered(members)
        # other numbers in responses about contacts are ids of custom fields
        holds_texts = self.operation.name not in CONTACT_OPERATIONS
        return {
            name: self._cut_entry(member)
            if is_list and (holds_texts or isinstance(member, dict | list))
            else self.cut_value(member)
            for name, member in members.items()
            if not self.forgotten.is_address(name)  # like {address: clicks}
        }

    def _is_person(self, name: str, value: Any) -> bool:
        if name in ADDRESS_NAMES:
            return self.forgotten.is_address(value)
        return (
            name in CONTACT_ID_NAMES
            and self.operation.name in CONTACT_OPERATIONS
            and isinstance(value, str | int)
            and self.forgotten.is_contact(self.account, value)
        )

    def _cut_entry(self, entry: Any) -> Any:
        """The entry of a list, cut; a marker if it is about a forgotten person."""
        if self._has_address(entry):
            return self._make_marker(entry)
        try:
            after = self.cut_value(entry)
        except _IsForgotten:
            return self._make_marker(entry)
        return entry if after == entry else after

    def _has_address(self, text: Any) -> bool:
        """Whether it is a text with a forgotten address, like `address(2 clicks)`."""
        return _may_have_address(text) and any(
            map(self.forgotten.is_address, _SEPARATOR.split(text))
        )

    def _make_marker(self, entry: Any) -> dict[str, str]:
        """Equal for equal entries, so that an entry is recognized on another page."""
        content = msgspec.json.encode(entry, order="sorted").decode("utf-8", "replace")
        return {FORGOTTEN: self.forgotten.make_fingerprint("entry", content)}
