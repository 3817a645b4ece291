"""The state of an account before a push: its lists and contacts as the warehouse has them, overlaid
with what was sent since they were read.

Belongs here: queries for many contacts together, with their rows as values; the person that a row
is about; the state of a contact on a list. Not here: what a push makes of it (`kinds`)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import duckdb
import msgspec

from home.door import open_warehouse
from home.settings import Settings
from marketing_api.address import normal_form
from marketing_api.clock import unix_now
from marketing_api.contact_lookup import TimelineEntry
from marketing_api.exchange import order_of
from marketing_api.records.contacts import STATUSES
from marketing_api.write_result import unescape_html
from warehouse.errors import NoWarehouse
from warehouse.sql import load_statements
from write_back.input import values
from write_back.input.columns import fold_name, suggest_names
from write_back.input.rows import Cell, InputError, as_seen, cell_of, cell_text, show_name, text_of
from write_back.input.values import BadValue
from write_back.item import Past

_QUERIES = load_statements(Path(__file__).with_suffix(".sql"))
_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode
#: From one night to the next, and two hours to spare.
_NIGHT_S = 26 * 3600

#: An id as a spreadsheet may display it.
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3}){1,6}", re.ASCII)

# ---- lists and their custom fields, and their names in an input


@dataclass(frozen=True)
class Lists:
    """`names`: list id → name. `fields`: list id → field id → label. `by_name`: name, without case
    and outer blanks → ids."""

    names: Mapping[int, str]
    fields: Mapping[int, Mapping[str, str]]
    by_name: Mapping[str, tuple[int, ...]]

    @staticmethod
    def from_rows(
        lists: Iterable[tuple[int, str | None]], fields: Iterable[tuple[int, str, str | None]]
    ) -> Lists:
        """From rows of source.lists and source.list_fields."""
        names = {list_id: name or str(list_id) for list_id, name in lists}
        by_name: dict[str, tuple[int, ...]] = {}
        for list_id, name in names.items():
            folded = _fold_name(name)
            same = by_name.get(folded, ())
            by_name[folded] = (*same, list_id)
        labels: dict[int, dict[str, str]] = {list_id: {} for list_id in names}
        for list_id, field_id, label in fields:
            labels_of_list = labels.setdefault(list_id, {})
            labels_of_list[field_id] = label or field_id
        return Lists(names, labels, by_name)

    def field_names(self) -> list[str]:
        """Labels, then ids, of all lists' fields, each once."""
        labels: list[str] = []
        ids: list[str] = []
        for list_id, fields in self.fields.items():
            if list_id in self.names:
                labels += fields.values()
                ids += fields
        return list(dict.fromkeys([*labels, *ids]))

    def find_lists(self, cell: Cell) -> tuple[int, ...]:
        """The lists that a cell names by ids or names, each once: one, or several with commas
        between them, or with semicolons where names have commas."""
        text = cell_text(cell)
        if text is None:
            raise BadValue("the list is missing")
        only = self._find_list(text)
        if only:
            return (only,)
        digits = text.replace(",", "")
        if _GROUPED.fullmatch(text) and int(digits) in self.names:
            raise BadValue(
                f"{show_name(text)} may be one id or several: write one id without commas, or put "
                "; between several"
            )
        sign = ";" if ";" in text else ","
        found: dict[int, None] = {}
        words = map(str.strip, text.split(sign))
        for word in filter(None, words):
            list_id = self._find_list(word)
            if list_id is None:
                suggestion = suggest_names(word, self.names.values())
                raise BadValue(f"there is no list {show_name(word)}{suggestion}")
            found[list_id] = None
        if not found:
            raise BadValue("the list is missing")
        return tuple(found)

    def _find_list(self, word: str) -> int | None:
        plain = word.partition(".")[0] if word.endswith(".0") else word
        if plain.isdecimal() and int(plain) in self.names:
            return int(plain)
        found = self.by_name.get(_fold_name(word), ())
        if len(found) > 1:
            ids = " or ".join(map(str, found))
            raise BadValue(
                f"{len(found)} lists are called {show_name(word)}: use the id of the list, {ids}"
            )
        return found[0] if found else None

    def columns_of(self, list_id: int, titles: Iterable[str]) -> dict[str, str]:
        """Column title → the list's field that it names, by id or label. Raises BadValue when
        several fields have the label."""
        fields_by_name = _fields_by_name(self.fields.get(list_id, {}))
        list_name = show_name(self.names[list_id])
        found: dict[str, str] = {}
        for title in titles:
            same = fields_by_name.get(fold_name(title), [])
            if len(same) > 1:
                raise BadValue(
                    f"list {list_name} has {len(same)} fields {show_name(title)}: name the column "
                    "by the field's id"
                )
            if same:
                found[title] = same[0]
        named_fields = set(found.values())
        if len(named_fields) < len(found):
            raise BadValue(f"two columns name the same field of list {list_name}")
        return found


def _fold_name(name: str) -> str:
    return as_seen(name).casefold()


def _fields_by_name(labels: Mapping[str, str]) -> dict[str, list[str]]:
    """The fields of a list by folded id or label; an id goes before a label. `labels`: field id →
    label."""
    found: dict[str, list[str]] = {}
    for field_id, label in labels.items():
        same = found.setdefault(fold_name(label), [])
        same.append(field_id)
    by_id = {fold_name(field_id): [field_id] for field_id in labels}
    return found | by_id


# ---- what the warehouse knows


class Member(NamedTuple):
    """One contact on one list. `fields`: custom-field values as JSON text, None when they were not
    requested or not shown."""

    contact_id: int
    list_id: int
    email: str | None
    status_code: int | None
    fields: str | None

    @property
    def status(self) -> str | None:
        """The word; None where it is not known."""
        if self.status_code is None:
            return None
        return STATUSES.get(self.status_code)


@dataclass(frozen=True)
class Known:
    """One account. `zone`: its time zone. `as_of`: list → when all its contacts were last read, in
    the order of requests (`exchange.order_of`); `read_at`: the same in unix seconds.
    `is_all_known`: the contacts of every list were read, so an id that is missing belongs to
    nobody."""

    settings: Settings
    account: str
    zone: ZoneInfo
    lists: Lists
    as_of: Mapping[int, float] = field(default_factory=dict)
    read_at: Mapping[int, float] = field(default_factory=dict)
    is_all_known: bool = False

    def by_address(
        self, addresses: Iterable[str], *, with_fields: bool = False
    ) -> dict[str, list[Member]]:
        """Contacts by the normal form of the address; active ones first, then the oldest. Addresses
        without contacts are left out."""
        return self._find_members("by_address", addresses, with_fields=with_fields)

    def find_gone(self, addresses: Iterable[str]) -> dict[str, list[Member]]:
        """Contacts that were taken off a list, as they were last seen there."""
        return self._find_members("gone", addresses)

    def by_id(self, ids: Iterable[int]) -> dict[int, list[Member]]:
        """Contacts by id, one entry per list. Ids that do not exist are left out."""
        return self._find_members("by_id", ids)

    def _find_members(
        self, statement: str, keys: Iterable[Any], **params: object
    ) -> dict[Any, list[Member]]:
        found: dict[Any, list[Member]] = {}
        rows = self._query_rows(statement, dict.fromkeys(keys), **params)
        for key, *member in rows:
            found.setdefault(key, []).append(Member._make(member))
        return found

    def shown_fields(self, list_ids: Iterable[int]) -> dict[int, set[str]]:
        """List → the keys under which any of its contacts shows custom fields."""
        rows = self._query_rows("shown_fields", list_ids)
        return {list_id: set(keys) for list_id, keys in rows}

    def find_events(
        self, minutes: Iterable[tuple[int, int]]
    ) -> dict[tuple[int, int], list[TimelineEntry]]:
        """What timelines show in these minutes (contact id, unix minute)."""
        found: dict[tuple[int, int], list[TimelineEntry]] = {}
        rows = self._query_rows("timelines", minutes)
        for contact_id, at, texts in rows:
            entry = TimelineEntry(tuple(texts), at, None)
            minute = (contact_id, at // 60)
            found.setdefault(minute, []).append(entry)
        return found

    def timelines_read_lately(self, contact_ids: Iterable[int]) -> set[int]:
        """The contacts whose timeline was read this night or last night."""
        rows = self._query_rows("timelines_read", dict.fromkeys(contact_ids))
        earliest = unix_now() - _NIGHT_S
        return {contact_id for contact_id, read_at in rows if read_at > earliest}

    def _query_rows(
        self, statement: str, keys: Iterable[Any], **params: object
    ) -> Iterable[tuple[Any, ...]]:
        """The rows for these `keys`; without keys, no rows. The keys are passed as JSON: for a
        Python table, DuckDB imports pandas if it is installed, and that takes longer than the
        query."""
        several = list(keys)
        if not several:
            return ()
        keys_json = _encode(several).decode()
        params |= {"keys": keys_json, "account": self.account}
        with open_warehouse(self.settings, read_only=True, memory_limit=None) as connection:
            found = connection.sql(_QUERIES[statement], params=params).to_arrow_table()
        columns = [column.to_pylist() for column in found.columns]
        return zip(*columns, strict=True)

    @property
    def oldest_reading(self) -> float | None:
        """When the list that was read longest ago was read, in the order of requests."""
        return min(self.as_of.values(), default=None)

    def read_on(self) -> str:
        """When contacts were last read (the list that was read longest ago), in the account's
        time."""
        if not self.read_at:
            return "never"
        oldest = min(self.read_at.values())
        read_on = dt.datetime.fromtimestamp(oldest, self.zone)
        return f"{read_on:%Y-%m-%d %H:%M}"


def load_known(settings: Settings, account: str) -> Known:
    """What the warehouse knows of the account. Raises InputError when business or lists were never
    read, and what `warehouse.connection.open_database` raises."""
    try:
        with open_warehouse(settings, read_only=True, memory_limit=None) as connection:
            business, lists, fields, read = (
                connection.execute(_QUERIES[name], {"account": account}).fetchall()
                for name in ("business", "lists", "fields", "read")
            )
    except (NoWarehouse, duckdb.CatalogException, duckdb.BinderException):
        business = []
    if not business:
        raise InputError(
            f"nothing is known about the account {account} yet: run `marketing-sync sync --only "
            "business lists contacts` first, or wait until the running sync has read them"
        )
    read_at: dict[int, float] = {}
    as_of: dict[int, float] = {}
    for list_id, at, last in read:
        read_at[list_id] = at
        as_of[list_id] = at if last is None else order_of(last)
    list_ids = {list_id for list_id, _ in lists}
    is_all_known = bool(lists) and list_ids <= as_of.keys()
    own = (connection.timezone for connection in settings.accounts if connection.account == account)
    zones = filter(None, (*own, business[0][0], settings.timezone))
    return Known(
        settings,
        account,
        ZoneInfo(next(zones)),
        Lists.from_rows(lists, fields),
        as_of,
        read_at,
        is_all_known,
    )


# ---- the person that a row is about


class Who(NamedTuple):
    """The address in a row as it is written (`key`: its normal form), or the contact's id, or
    both."""

    email: str | None
    contact_id: int | None
    key: str


class Person(NamedTuple):
    """A person with their known contacts. `ids`: the contacts, active ones first, then the oldest;
    empty for an address that has to be looked up. `email`: from the row or the warehouse; None if
    neither has it; `address`: its normal form."""

    who: Who
    members: list[Member]
    ids: list[int]
    email: str | None
    address: str

    @property
    def contacts(self) -> list[int | None]:
        """The contacts; None means that they have to be looked up."""
        return [*self.ids] or [None]

    def name_of(self, contact_id: int | None) -> str:
        """The name in effects: the contact's id, or the address."""
        return str(contact_id or self.address)

    def list_subjects(self, things: Iterable[object]) -> list[str]:
        """Every subject that effects may have for this person and one of the things."""
        names = [str(contact_id) for contact_id in self.ids]
        if self.address:
            names.append(self.address)
        return [f"{name}|{thing}" for thing in things for name in names]

    @property
    def display_name(self) -> str:
        return self.email or str(self.who.contact_id)


def read_who(cells: Mapping[str, list[Cell]], index: int) -> Who:
    """Raises BadValue when both are missing or one is invalid."""
    email = cells["email"][index] if "email" in cells else None
    number = cells["contact_id"][index] if "contact_id" in cells else None
    if email is None and number is None:
        raise BadValue("neither an e-mail address nor a contact id is given")
    address = None if email is None else values.read_address(email)
    contact_id = None if number is None else values.read_id(number, "the contact id")
    return Who(address, contact_id, normal_form(address or ""))


# ---- the state of a contact on a list


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a sync sends about one contact on one list, as an effect remembers it. `status` None:
    the status stays."""

    status: int | None = None
    fields: dict[str, str] = {}
    ip: str | None = None

    @property
    def text(self) -> str:
        return _encode(self).decode()

    @staticmethod
    def from_text(text: str) -> Content:
        return msgspec.json.decode(text, type=Content)


class Present(NamedTuple):
    """The state of the contacts with an address on a list. `status`: code; None when it is
    uncertain or differs between them. `fields`: field id → value, including sent ones that the
    service does not show. `is_ours`: a part was sent and not read yet; `is_queued`: a part is still
    to be sent."""

    exists: bool
    status: int | None = None
    fields: Mapping[str, str] = {}
    is_ours: bool = False
    is_queued: bool = False


class ListReader:
    """Reads the contacts of one list. `labels`: field id → label; `shown_keys`: keys under which
    any contact shows values."""

    def __init__(self, labels: Mapping[str, str], shown_keys: Collection[str]) -> None:
        fields_by_name = _fields_by_name(labels)
        ids = {name: same[0] for name, same in fields_by_name.items() if len(same) == 1}
        #: Key of a response → field: the key is its id, or a label that only this field has.
        self._field_of = cache(lambda key: ids.get(fold_name(key)))
        self._readable = set(map(self._field_of, shown_keys))

    def find_present(
        self, members: list[Member], past: Past | None, as_of: float | None
    ) -> Present:
        """The state that was read at `as_of`, overlaid with the syncs since."""
        status, fields = self._read_common(members)
        present = Present(bool(members), status, fields)
        changes: list[Past] = []
        while past is not None:
            changes.append(past)
            past = past.earlier
        for change in reversed(changes):
            is_newer = change.is_newer(as_of)
            if change.is_in_force or (change.is_drifted and is_newer):
                present = self._overlay_past(present, change, is_newer=is_newer)
        return present

    def _overlay_past(self, read: Present, past: Past, *, is_newer: bool) -> Present:
        sent = Content.from_text(past.content)
        if past.is_drifted:  # the values are neither the earlier ones nor those that were sent
            left = {name: text for name, text in read.fields.items() if name not in sent.fields}
            status = read.status if sent.status is None else None
            return read._replace(status=status, fields=left)
        if not is_newer:
            kept = {
                name: text for name, text in sent.fields.items() if self._may_keep(read, name, text)
            }
            return read._replace(fields={**read.fields, **kept})
        status = read.status if sent.status is None else sent.status
        fields = {**read.fields, **sent.fields}
        return Present(True, status, fields, is_ours=True, is_queued=read.is_queued or past.is_open)

    def _may_keep(self, read: Present, field_id: str, text: str) -> bool:
        """Whether the field may still have the value that was sent: it is not shown, or shown in
        another notation."""
        if field_id not in self._readable:
            return True
        return field_id in read.fields and is_shown_as(read.fields[field_id], text)

    def is_so(self, now: Present, field_id: str, text: str) -> bool:
        """Whether the field is known to have this value. A field that only other contacts show is
        empty."""
        value = now.fields.get(field_id)
        if value is None:
            return not text and field_id in self._readable
        return value == text

    def find_empty(self, now: Present, fields: Mapping[str, str]) -> dict[str, str]:
        """The fields that are known to be empty."""
        return {name: text for name, text in fields.items() if self.is_so(now, name, "")}

    def _read_common(self, members: list[Member]) -> tuple[int | None, dict[str, str]]:
        """The status and the fields that are equal for all contacts, since a sync changes every
        contact with the address on the list."""
        if not members:
            return None, {}
        statuses = {member.status_code for member in members}
        status = statuses.pop() if len(statuses) == 1 else None
        common, *others = [self._read_fields(member.fields) for member in members]
        for other in others:
            common = {name: text for name, text in common.items() if other.get(name) == text}
        return status, common

    def _read_fields(self, text: str | None) -> dict[str, str]:
        """Field id → value."""
        if not text:
            return {}
        shown = _decode(text)
        if not isinstance(shown, dict):
            return {}
        fields: dict[str, str] = {}
        for key, value in shown.items():
            field_id = self._field_of(key)
            comparable = _comparable_text(value)
            if field_id is not None and comparable is not None:
                fields[field_id] = comparable
        return fields


def is_shown_as(shown: Any, text: str) -> bool:
    """Whether the service may show a value like this that was sent as `text`: with other blanks or
    with HTML entities; an empty one as null."""
    return _plain_text(shown) == _plain_text(text)


def _plain_text(value: Any) -> str:
    if value is None or value in ([], {}):
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    words = unescape_html(str(value)).split()
    return " ".join(words)


def _comparable_text(value: Any) -> str | None:
    """None for a value that cannot be compared."""
    if type(value) is str:
        return value.strip()
    if isinstance(value, dict):
        if "value" not in value:
            return None
        return _comparable_text(value["value"])
    if value is None or value == []:
        return ""
    if isinstance(value, list):
        return None
    text = text_of(cell_of(value))
    return text or ""
