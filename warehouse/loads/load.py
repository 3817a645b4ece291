"""The definition of a load, the report of what it did, and where both are recorded: the load log
and `sync.loads`. Not here: applying (`warehouse`, `apply`), where the log is (`archive.ledger`)."""

import base64
import datetime as dt
import hashlib
import itertools
import json
import logging
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import duckdb

from marketing_api.clock import utc_now
from marketing_api.exchange import id_at, new_request_id
from warehouse.archive.archive import Archive
from warehouse.sql import fetch_rows, fetch_value

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Load:
    """Responses that are loaded together in one transaction. A rebuild needs only the log of loads
    and the archive.

    `tables` are filled from the responses in `request_ids`, in that order. `scope`: what was
    requested, if the calls do not say it: `{"from_on": …, "to_on": …}` (dates) for ranges, with the
    `reason` if it is not complete; for a load without responses, the scope that is gone
    (`{"list_id": [12, 13]}`). `is_complete`: all of it was read, so that missing rows are gone.
    `shrink_limit`: the share of its rows that a listing may lose (None: all). `zone`: the account's
    time zone."""

    account: str
    asset: str
    tables: tuple[str, ...]
    request_ids: tuple[int, ...]
    zone: str
    scope: Mapping[str, Any] = field(default_factory=dict)
    is_complete: bool = True
    shrink_limit: float | None = None
    service_count: int | None = None
    due_at: dt.datetime | None = None
    logged_at: dt.datetime = field(default_factory=utc_now)
    #: The place among requests of a load that has none; None: not yet noted.
    place: int | None = field(default_factory=new_request_id)

    @property
    def load_id(self) -> str:
        """Equal for loads of the same responses into the same tables, so that such a load is
        applied once (32 hex digits)."""
        # independent of how the log packs them
        event = self.to_event() | {"request_ids": list(self.request_ids)}
        for name in (
            "due_at",
            "service_count",
            "place",
            *(["logged_at"] if self.request_ids else []),
        ):
            del event[name]
        return hashlib.blake2b(
            json.dumps(event, sort_keys=True).encode(), digest_size=16
        ).hexdigest()

    @property
    def last_request(self) -> int:
        """The newest request of the load. A load without requests has about the id that a request
        at its time would have."""
        place = id_at(self.logged_at) if self.place is None else self.place
        return max(self.request_ids, default=place)

    def to_event(self) -> dict[str, Any]:
        """As JSON values, for the log."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {
            "tables": list(self.tables),
            "request_ids": pack_ids(self.request_ids),
            "logged_at": self.logged_at.astimezone(dt.UTC).isoformat(),
            "scope": json.loads(json.dumps(dict(self.scope), default=str)),
            "due_at": self.due_at.astimezone(dt.UTC).isoformat() if self.due_at else None,
        }

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> Self:
        """The load of a log entry; members from later versions of this program are ignored."""
        known = {"place": None} | {
            name: event[name] for name in cls.__dataclass_fields__ if name in event
        }
        for name in ("logged_at", "due_at"):
            if known.get(name):
                known[name] = dt.datetime.fromisoformat(known[name])
        known |= {"tables": tuple(event["tables"]), "request_ids": unpack_ids(event["request_ids"])}
        return cls(**known)


@dataclass
class TableReport:
    """What a load did to one table, in rows. `refused`: scopes that were not applied, and why."""

    table: str
    received: int = 0
    new: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    rejected: int = 0
    flawed: int = 0  # received rows with an unreadable value
    refused: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)  # why rows that were not listed are kept
    # differences from earlier responses, one line each
    drift: list[str] = field(default_factory=list)
    # scopes for which a newer response was already loaded
    stale: list[str] = field(default_factory=list)

    def add_report(self, other: Self) -> None:
        """Add what another load did to the same table."""
        for counter in fields(self)[1:]:
            setattr(self, counter.name, getattr(self, counter.name) + getattr(other, counter.name))


@dataclass
class LoadReport:
    """What a load did, by table name."""

    load_id: str
    tables: dict[str, TableReport]

    @property
    def refused(self) -> dict[str, str]:
        """What was not believed, and so not applied or only added: table name → a sentence that
        names the scopes."""
        found = {name: [*report.refused, *report.unproven] for name, report in self.tables.items()}
        return {name: f"{name}: {'; '.join(reasons)}" for name, reasons in found.items() if reasons}

    @property
    def stale(self) -> list[str]:
        """What was not applied because a newer response was already loaded, one sentence for each
        table."""
        return [
            f"{name}: {', '.join(report.stale)}"
            for name, report in self.tables.items()
            if report.stale
        ]


APPLIED = "applied"
FAILED = "failed"


def outcome_of(connection: duckdb.DuckDBPyConnection, load_id: str) -> str | None:
    """`applied`, or `failed` for a load that could not be applied; None if neither is known."""
    found: str | None = fetch_value(
        connection, "select outcome from sync.loads where load_id = ?", [load_id]
    )
    return found


def logged_last(connection: duckdb.DuckDBPyConnection, archive: Archive) -> dict[str, Load]:
    """The last loads of the log in their order, by id: beginning with the last one that has an
    outcome, so that all without one are included."""
    loads: list[Load] = []
    for event in archive.ledger.list_loads(newest_first=True):
        loads.append(Load.from_event(event))
        if outcome_of(connection, loads[-1].load_id):
            break
    return {load.load_id: load for load in reversed(loads)}


def write_load(
    connection: duckdb.DuckDBPyConnection,
    load: Load,
    as_of: dt.datetime | None,
    reports: Sequence[TableReport],
    error: str | None = None,
) -> None:
    """Record the load as applied, or as failed with its `error`; replaces an earlier record."""
    event = load.to_event()
    row = {
        "load_id": load.load_id,
        "logged_at": load.logged_at,
        "account": load.account,
        "asset": load.asset,
        "tables": list(load.tables),
        "scope": json.dumps(event["scope"]),
        "request_count": len(load.request_ids),
        "as_of": as_of,
        "last_request": max(load.request_ids, default=load.place),
        "outcome": FAILED if error else APPLIED,
        "error": error,
        **{
            f"{what}_count": sum(getattr(report, what) for report in reports)
            for what in ("new", "changed", "deleted", "rejected")
        },
    }
    fetch_rows(connection, "delete from sync.loads where load_id = ?", [load.load_id])
    fetch_rows(connection, "insert into sync.loads by name select unnest($row)", {"row": row})


#: The log lists up to this many ids readably. Longer lists are packed: the 400,000 ids of a night
#: would be 8 MB of digits.
_READABLE_IDS = 20


def pack_ids(ids: Sequence[int]) -> list[int] | str:
    """Ids for the log: a list, or their differences as deflated text in base 64 (about 5 bytes an
    id)."""
    if len(ids) <= _READABLE_IDS:
        return list(ids)
    differences = [ids[0], *(after - before for before, after in itertools.pairwise(ids))]
    return base64.b64encode(zlib.compress(" ".join(map(str, differences)).encode(), 9)).decode()


def unpack_ids(packed: Sequence[int] | str) -> tuple[int, ...]:
    if not isinstance(packed, str):
        return tuple(packed)
    return tuple(itertools.accumulate(map(int, zlib.decompress(base64.b64decode(packed)).split())))
