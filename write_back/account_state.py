"""How the account stands: what the warehouse knows of its lists and contacts, and over it what was
sent since that was read.

Belongs here: queries to the tables, many contacts at once, with their rows as values; who a row is
about; how a contact stands on a list. Not here: what a push makes of it (`kinds`)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import duckdb
import msgspec

from home.door import open_warehouse
from home.settings import Settings
from marketing_api.address import normal_form
from marketing_api.clock import unix_now
from marketing_api.contact_lookup import TimelineEntry
from marketing_api.exchange import order_of
from marketing_api.records.contacts import STATUSES
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
#: From one night's reading to the next, and two hours to spare.
_NIGHT_S = 26 * 3600

#: An id as a spreadsheet may show it.
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3}){1,6}", re.ASCII)

# ---- lists and their custom fields, and how people name them in an input


@dataclass(frozen=True)
class Lists:
    """`names`: list id → name. `fields`: list id → field id → label. `by_name`: name, case and
    outer blanks aside → ids."""

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
            by_name[_fold_name(name)] = (*by_name.get(_fold_name(name), ()), list_id)
        labels: dict[int, dict[str, str]] = {list_id: {} for list_id in names}
        for list_id, field_id, label in fields:
            labels.setdefault(list_id, {})[field_id] = label or field_id
        return Lists(names, labels, by_name)

    def field_names(self) -> list[str]:
        """Labels, then ids, of all lists' fields, each once."""
        many = [labels for list_id, labels in self.fields.items() if list_id in self.names]
        names = [name for labels in many for name in labels.values()] + [
            name for ids in many for name in ids
        ]
        return list(dict.fromkeys(names))

    def find_lists(self, cell: Cell) -> tuple[int, ...]:
        """The lists that a cell names by ids or names, each once: one, or several with commas
        between them, or with semicolons where names have commas."""
        text = cell_text(cell)
        if text is None:
            raise BadValue("the list is missing")
        only = self._find_list(text)
        if only:
            return (only,)
        if _GROUPED.fullmatch(text) and int(text.replace(",", "")) in self.names:
            raise BadValue(
                f"{show_name(text)} may be one id or several: write it without commas, or put ; "
                "between"
            )
        sign = ";" if ";" in text else ","
        found = {
            word: self._find_list(word) for word in filter(None, map(str.strip, text.split(sign)))
        }
        if not found:
            raise BadValue("the list is missing")
        for word, list_id in found.items():
            if list_id is None:
                raise BadValue(
                    f"there is no list {show_name(word)}{suggest_names(word, self.names.values())}"
                )
        return tuple(dict.fromkeys(filter(None, found.values())))

    def _find_list(self, word: str) -> int | None:
        plain = word.partition(".")[0] if word.endswith(".0") else word
        if plain.isdecimal() and int(plain) in self.names:
            return int(plain)
        found = self.by_name.get(_fold_name(word), ())
        if len(found) > 1:
            raise BadValue(
                f"{len(found)} lists are called {show_name(word)}: name the list by its id, "
                f"{' or '.join(map(str, found))}"
            )
        return found[0] if found else None

    def columns_of(self, list_id: int, titles: Iterable[str]) -> dict[str, str]:
        """Column title → the list's field that it names, by id or label. BadValue when a label is
        not the only one."""
        named = _fields_by_name(self.fields.get(list_id, {}))
        found: dict[str, str] = {}
        for title in titles:
            same = named.get(fold_name(title), [])
            if len(same) > 1:
                name = show_name(self.names[list_id])
                raise BadValue(
                    f"list {name} has {len(same)} fields {show_name(title)}: name the column by "
                    "the field's id"
                )
            if same:
                found[title] = same[0]
        if len(set(found.values())) < len(found):
            raise BadValue(
                f"two columns name the same field of list {show_name(self.names[list_id])}"
            )
        return found


def _fold_name(name: str) -> str:
    return as_seen(name).casefold()


def _fields_by_name(labels: Mapping[str, str]) -> dict[str, list[str]]:
    """The fields of a list by their ids and labels, as `fold` has them; ids go before labels.
    `labels`: field id → label."""
    found: dict[str, list[str]] = {}
    for field_id, label in labels.items():
        found.setdefault(fold_name(label), []).append(field_id)
    return found | {fold_name(field_id): [field_id] for field_id in labels}


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
        return STATUSES.get(self.status_code) if self.status_code is not None else None


@dataclass(frozen=True)
class Known:
    """One account. `zone`: its time zone. `as_of`: list → when all its contacts were last read, in
    the order of requests (`exchange.order_of`), and `read_at` in unix seconds. `is_all_known`: the
    contacts of every list were read, so that an id that is not among them belongs to nobody."""

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
        """Contacts by the normal form of the address, those without any left out; of each address
        active ones first, then the oldest."""
        return self._find_members("by_address", addresses, with_fields=with_fields)

    def find_gone(self, addresses: Iterable[str]) -> dict[str, list[Member]]:
        """Those who are on a list no more, as they were last seen there."""
        return self._find_members("gone", addresses)

    def by_id(self, ids: Iterable[int]) -> dict[int, list[Member]]:
        """Contacts by id, one entry per list, those that do not exist left out."""
        return self._find_members("by_id", ids)

    def _find_members(
        self, statement: str, keys: Iterable[Any], **params: object
    ) -> dict[Any, list[Member]]:
        found: dict[Any, list[Member]] = {}
        for key, *member in self._query_rows(statement, dict.fromkeys(keys), **params):
            found.setdefault(key, []).append(Member._make(member))
        return found

    def shown_fields(self, list_ids: Iterable[int]) -> dict[int, set[str]]:
        """List → the keys under which the service shows values of custom fields for any of its
        contacts."""
        return {list_id: set(keys) for list_id, keys in self._query_rows("shown_fields", list_ids)}

    def find_events(
        self, minutes: Iterable[tuple[int, int]]
    ) -> dict[tuple[int, int], list[TimelineEntry]]:
        """What timelines show in these minutes (contact id, unix minute)."""
        found: dict[tuple[int, int], list[TimelineEntry]] = {}
        for contact_id, at, texts in self._query_rows("timelines", minutes):
            found.setdefault((contact_id, at // 60), []).append(
                TimelineEntry(tuple(texts), at, None)
            )
        return found

    def timelines_read_lately(self, contact_ids: Iterable[int]) -> set[int]:
        """Those whose timeline was read in this night, or the last."""
        return {
            contact_id
            for contact_id, at in self._query_rows("timelines_read", dict.fromkeys(contact_ids))
            if unix_now() - at < _NIGHT_S
        }

    def _query_rows(
        self, statement: str, keys: Iterable[Any], **params: object
    ) -> Iterable[tuple[Any, ...]]:
        """The rows for these `keys`, none without any. They go as JSON: for a table of Python's,
        DuckDB imports pandas where it is installed, which takes longer than the query."""
        several = list(keys)
        if not several:
            return ()
        params |= {"keys": _encode(several).decode(), "account": self.account}
        with open_warehouse(self.settings, read_only=True, memory_limit=None) as connection:
            found = connection.sql(_QUERIES[statement], params=params).to_arrow_table()
        return zip(*(column.to_pylist() for column in found.columns), strict=True)

    def read_on(self) -> str:
        """When contacts were last read (the oldest reading of a list), in the account's time."""
        if not self.read_at:
            return "never"
        return f"{dt.datetime.fromtimestamp(min(self.read_at.values()), self.zone):%Y-%m-%d %H:%M}"


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
            "business lists contacts` first, or let the sync that runs get so far"
        )
    read_at = {list_id: at for list_id, at, _ in read}
    as_of = {list_id: at if last is None else order_of(last) for list_id, at, last in read}
    is_all_known = bool(lists) and all(list_id in as_of for list_id, _ in lists)
    own = (connection.timezone for connection in settings.accounts if connection.account == account)
    zone = _first_zone(*own, business[0][0], settings.timezone)
    return Known(
        settings, account, zone, Lists.from_rows(lists, fields), as_of, read_at, is_all_known
    )


def _first_zone(*names: str | None) -> ZoneInfo:
    """The first that is one: an account may name a zone that nobody knows."""
    for name in filter(None, names):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return ZoneInfo("UTC")


# ---- who a row is about


class Who(NamedTuple):
    """What a row says: the address as written (`key`: its normal form), or the contact's id, or
    both."""

    email: str | None
    contact_id: int | None
    key: str


class Person(NamedTuple):
    """Somebody with what is known: `ids` are the contacts meant, active ones first, then the
    oldest; empty for an address that has to be looked up. `email`: whenever the warehouse or the
    row says it, `address`: its normal form."""

    who: Who
    members: list[Member]
    ids: list[int]
    email: str | None
    address: str

    @property
    def contacts(self) -> list[int | None]:
        """The contacts meant; None stands for those that have to be looked up."""
        return [*self.ids] or [None]

    def name_of(self, contact_id: int | None) -> str:
        """What effects call the contact, or whoever has the address."""
        return str(contact_id or self.address)

    def list_subjects(self, things: Iterable[object]) -> list[str]:
        """All that effects may call them, with each of the things that happen to them."""
        names = [*map(str, self.ids), *([self.address] if self.address else [])]
        return [f"{name}|{thing}" for thing in things for name in names]

    @property
    def display_name(self) -> str:
        return self.email or str(self.who.contact_id)


def read_who(cells: Mapping[str, list[Cell]], index: int) -> Who:
    """BadValue when neither is given, or one of them cannot be."""
    email, number = (
        cells[name][index] if name in cells else None for name in ("email", "contact_id")
    )
    if email is None and number is None:
        raise BadValue("neither an e-mail address nor a contact id is given")
    address = None if email is None else values.read_address(email)
    contact_id = None if number is None else values.read_id(number, "the contact id")
    return Who(address, contact_id, normal_form(address or ""))


# ---- how a contact stands on a list


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a sync says about one contact on one list, as an effect remembers it. `status` None: it
    leaves it as it is."""

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
    """`status`: code, None when not known for sure, or not the same for all. `fields`: also those
    of our last sync that the service does not show. `is_ours`: some of it we sent and did not read
    yet; `is_queued`: some of it is still to be sent."""

    exists: bool
    status: int | None = None
    fields: Mapping[str, str] = {}
    is_ours: bool = False
    is_queued: bool = False


class ListReader:
    """Reads the contacts of one list. `labels`: field id → label; `shown_keys`: keys under which
    any contact shows values."""

    def __init__(self, labels: Mapping[str, str], shown_keys: Collection[str]) -> None:
        ids = {name: same[0] for name, same in _fields_by_name(labels).items() if len(same) == 1}
        #: The field that a key of a response stands for: its id, or its label where only one has
        #: it.
        self._field_of = cache(lambda key: ids.get(fold_name(key)))
        self._readable = set(map(self._field_of, shown_keys))

    def find_present(
        self, members: list[Member], past: Past | None, as_of: float | None
    ) -> Present:
        status, fields = self._read_common(members)
        is_newer = past is not None and past.is_newer(as_of)
        if past is None or not (past.is_in_force or (past.is_drifted and is_newer)):
            return Present(bool(members), status, fields)
        return self._overlay_past(Present(bool(members), status, fields), past, is_newer=is_newer)

    def _overlay_past(self, read: Present, past: Past, *, is_newer: bool) -> Present:
        """What was read, with what was sent over it."""
        sent = Content.from_text(past.content)
        fields = dict(read.fields)
        if past.is_drifted:  # neither as it was before, nor as it was sent
            left = {
                field_id: text for field_id, text in fields.items() if field_id not in sent.fields
            }
            return read._replace(
                status=None if sent.status is not None else read.status, fields=left
            )
        if not is_newer:
            hidden = {
                field_id: text
                for field_id, text in sent.fields.items()
                if field_id not in self._readable
            }
            return read._replace(fields=hidden | fields)
        status = read.status if sent.status is None else sent.status
        return Present(True, status, fields | sent.fields, is_ours=True, is_queued=past.is_open)

    def is_so(self, now: Present, field_id: str, text: str) -> bool:
        """Whether the field is known to have this value; what is shown for others and not here is
        empty."""
        value = now.fields.get(field_id)
        return value == text if value is not None else not text and field_id in self._readable

    def find_empty(self, now: Present, fields: Mapping[str, str]) -> dict[str, str]:
        """Of these, those that are known to have no value yet."""
        return {
            field_id: text for field_id, text in fields.items() if self.is_so(now, field_id, "")
        }

    def _read_common(self, members: list[Member]) -> tuple[int | None, dict[str, str]]:
        """Status and fields that all the contacts have alike (a sync changes every contact with the
        address on the list)."""
        statuses = {member.status_code for member in members}
        first, *other_contacts = [self._read_fields(member.fields) for member in members] or [{}]
        alike = {
            field_id: text
            for field_id, text in first.items()
            if all(other.get(field_id) == text for other in other_contacts)
        }
        return statuses.pop() if len(statuses) == 1 else None, alike

    def _read_fields(self, text: str | None) -> dict[str, str]:
        values = _decode(text) if text else None
        if not isinstance(values, dict):
            return {}
        pairs = ((self._field_of(key), _comparable_text(value)) for key, value in values.items())
        return {
            field_id: text for field_id, text in pairs if field_id is not None and text is not None
        }


def _comparable_text(value: Any) -> str | None:
    """None for what cannot be compared."""
    if type(value) is str:
        return value.strip()
    if isinstance(value, dict):
        return _comparable_text(value["value"]) if "value" in value else None
    if value is None or value == []:
        return ""
    return None if isinstance(value, list) else text_of(cell_of(value)) or ""
