"""What the warehouse knows of one account, as planning a push needs it: many contacts at once, joined where they are.

Belongs here: questions to the tables and their answers as values. Not here: what follows from them (`kinds`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import duckdb
import pyarrow as pa

from marketing_api.exchange import order_of
from pipelines.write_back.input.rows import InputError
from pipelines.write_back.planning.lists import Lists
from warehouse.connection import DEADLINE_S, OnWait, connect
from warehouse.errors import NoWarehouse

_LIVE = "account = $account and _deleted_at is null"
_MEMBER = "c.contact_id, c.list_id, c.email, c.status_code, c.status"
#: An address's contacts: active ones first, then the oldest.
_ORDER = "c.status_code is not distinct from 1 desc, c.contact_id, c.list_id"


class Member(NamedTuple):
    """One contact on one list. `fields`: custom-field values as JSON text, None when they were not asked for or not shown."""

    contact_id: int
    list_id: int
    email: str | None
    status_code: int | None
    status: str | None
    fields: str | None


class Entry(NamedTuple):
    """One event in a contact's timeline: its texts and when, in unix seconds."""

    contact_id: int
    at: int
    snippet: str | None
    details: str | None


@dataclass(frozen=True)
class Known:
    """One account. `zone`: its time zone. `as_of`: list → when all its contacts were last read, in the order of requests
    (`exchange.order_of`), and `read_at` in unix seconds. `is_all_known`: the contacts of every list were read, so that an id that is not
    among them belongs to nobody.
    """

    path: Path
    account: str
    zone: ZoneInfo
    lists: Lists
    as_of: Mapping[int, float] = field(default_factory=dict)
    read_at: Mapping[int, float] = field(default_factory=dict)
    is_all_known: bool = False
    deadline_s: float = DEADLINE_S
    on_wait: OnWait | None = None

    def by_address(self, addresses: Iterable[str], *, with_fields: bool = False) -> dict[str, list[Member]]:
        """Contacts by address in lower case, those without any left out; of each address active ones first, then the oldest."""
        wanted = list(dict.fromkeys(addresses))
        if not wanted:
            return {}
        fields = "c.custom_fields" if with_fields else "null"
        table = self._ask(
            f"""
            select k.number, {_MEMBER}, {fields} as fields
            from keys k join source.contacts c on lower(trim(c.email)) = lower(k.key)
            where c.account = $account and c._deleted_at is null
            order by k.number, {_ORDER}
            """,  # noqa: S608
            keys=_numbered(wanted, pa.string()),
        )
        found: dict[str, list[Member]] = {}
        numbers, *columns = (column.to_pylist() for column in table.columns)
        for number, member in zip(numbers, map(Member, *columns), strict=True):
            found.setdefault(wanted[number], []).append(member)
        return found

    def by_id(self, ids: Iterable[int]) -> dict[int, list[Member]]:
        """Contacts by id, one entry per list, those that do not exist left out."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return {}
        table = self._ask(
            f"select {_MEMBER}, null as fields from keys k join source.contacts c on c.contact_id = k.key"  # noqa: S608
            f" where c.account = $account and c._deleted_at is null order by {_ORDER}",
            keys=_numbered(wanted, pa.int64()),
        )
        found: dict[int, list[Member]] = {}
        for member in map(Member, *(column.to_pylist() for column in table.columns)):
            found.setdefault(member.contact_id, []).append(member)
        return found

    def shown_fields(self, list_ids: Collection[int]) -> dict[int, set[str]]:
        """List → the keys under which the service shows values of custom fields for any of its contacts."""
        table = self._ask(
            "select distinct list_id, unnest(json_keys(custom_fields)) as key from source.contacts where account = $account"
            " and _deleted_at is null and list_id in (select key from keys) and custom_fields is not null",
            keys=_numbered(list(list_ids), pa.int64()),
        )
        found: dict[int, set[str]] = {}
        for list_id, key in zip(*table.to_pydict().values(), strict=True):
            found.setdefault(list_id, set()).add(key)
        return found

    def timelines(self, moments: Iterable[tuple[int, int]]) -> list[Entry]:
        """Events of contacts in the same minute as these (contact id, unix seconds)."""
        pairs = sorted({(contact_id, at // 60) for contact_id, at in moments})
        if not pairs:
            return []
        keys = pa.table({"contact_id": pa.array([pair[0] for pair in pairs], pa.int64()), "minute": [pair[1] for pair in pairs]})
        table = self._ask(
            "select e.contact_id, epoch(e.occurred_at)::bigint as at, e.snippet, e.details::varchar as details "
            "from keys k join source.timeline_events e on e.contact_id = k.contact_id and epoch(e.occurred_at)::bigint // 60 = k.minute "
            "where e.account = $account order by all",
            keys=keys,
        )
        return [Entry(*row) for row in zip(*table.to_pydict().values(), strict=True)]

    def _ask(self, sql: str, *, keys: pa.Table) -> pa.Table:
        with connect(self.path, deadline_s=self.deadline_s, read_only=True, on_wait=self.on_wait) as connection:
            connection.register("keys", keys)
            return connection.sql(sql, params={"account": self.account}).to_arrow_table()

    def read_on(self, list_id: int | None = None) -> str:
        """When the list's contacts were last read (of all lists: the oldest reading), in the account's time, for what depends on it."""
        found = [at for each, at in self.read_at.items() if list_id in (None, each)]
        return dt.datetime.fromtimestamp(min(found), self.zone).strftime("%Y-%m-%d %H:%M") if found else "never"


def _numbered(keys: Sequence[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"number": pa.array(range(len(keys)), pa.int64()), "key": pa.array(keys, kind)})


def load_known(
    path: Path,
    account: str,
    *,
    zone: str | None = None,
    fallback_zone: str = "UTC",
    deadline_s: float = DEADLINE_S,
    on_wait: OnWait | None = None,
) -> Known:
    """What the warehouse at `path` knows of the account. `zone` goes before the account's own, `fallback_zone` stands for an
    unknown one. Raises InputError when business or lists were never read, and what `warehouse.connection.connect` raises.
    """
    try:
        with connect(path, deadline_s=deadline_s, read_only=True, on_wait=on_wait) as connection:
            business, lists, fields, read = (connection.execute(sql, {"account": account}).fetchall() for sql in _BASICS)
    except (NoWarehouse, duckdb.CatalogException, duckdb.BinderException):
        business = []
    if not business:
        raise InputError(
            f"nothing is known about the account {account} yet: run `marketing-sync sync --only business lists contacts` first"
        )
    listed = {int(scope.removeprefix("list_id=")): times for _, scope, *times in read if scope.startswith("list_id=") and times[0]}
    read_at = {list_id: at for list_id, (at, _) in listed.items()}
    as_of = {list_id: at if last is None else order_of(last) for list_id, (at, last) in listed.items()}
    is_all_known = bool(lists) and all(list_id in as_of for list_id, _ in lists)
    own_zone = _zone(zone, business[0][0], fallback_zone)
    return Known(path, account, own_zone, Lists.of(lists, fields), as_of, read_at, is_all_known, deadline_s, on_wait)


_BASICS = (
    "select timezone from source.business where account = $account",
    f"select list_id, name from source.lists where {_LIVE} order by 1",  # noqa: S608
    f"select list_id, field_id, label from source.list_fields where {_LIVE} order by 1, 2",  # noqa: S608
    # A warehouse that the version before has written last has no column of that name: then NULL.
    "select * from (select null::bigint as last_request) n, lateral (select scope, epoch(as_of), last_request"
    " from sync.coverage where account = $account and table_name = 'contacts' and is_complete)",
)


def _zone(*names: str | None) -> ZoneInfo:
    """The first that is one: an account may name a zone that nobody knows."""
    for name in filter(None, names):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return ZoneInfo("UTC")
